"""vLLM in this process: one step chooses one token for every running sequence, and no work happens between steps.

The exact driver, for the virtual clock, tests, and processes that only decode.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from scalerl.errors import Interrupted
from scalerl.generator.vllm_engine import (
    PROBE_NAME,
    Ask,
    Piece,
    VllmEngine,
    probing,
    sampling,
    scores_of_probe,
    weights_file,
)
from scalerl.generator.vllm_import import environment_of_engine, vllm_module
from scalerl.generator.vllm_together import Together
from scalerl.weights.hugging_face import Weights


class SteppedEngine(VllmEngine):
    """Driver of vLLM's `LLMEngine`."""

    def __init__(self, arguments: dict[str, Any], *, temperature: float, eos: tuple[int, ...]) -> None:
        super().__init__(temperature, eos)
        self.version = 0
        self._has_workers = arguments["tensor_parallel_size"] > 1
        self._pieces: list[Piece] = []
        """Pieces chosen while a probe was scored."""
        with process_kept(), environment_of_engine():
            engine_args = vllm_module("engine.arg_utils").EngineArgs(**arguments)
            self.engine = vllm_module("v1.engine.llm_engine").LLMEngine.from_engine_args(
                engine_args, stat_loggers=[self.preemptions.logger], enable_multiprocessing=False
            )
        self._workers: Together | None = None
        if self._has_workers:
            self._workers = Together([worker.proc.pid for worker in self._executor.workers])

    @property
    def _executor(self) -> Any:
        return self.engine.engine_core.engine_core.model_executor

    def ask(self, ask: Ask) -> None:
        prompt = {"prompt_token_ids": list(ask.tokens), "cache_salt": ask.salt}
        self.engine.add_request(ask.name, prompt, sampling(ask, self.temperature, self.eos))

    def drop(self, name: str) -> None:
        self.engine.abort_request([name])

    def step(self) -> list[Piece]:
        """Choose one token for every running sequence."""
        pieces, self._pieces = self._pieces, []
        return pieces or [self._piece(output) for output in self.engine.step()]

    def _piece(self, output: Any) -> Piece:
        (new,) = output.outputs
        tokens = list(new.token_ids)
        logprobs: list[float] = [of[token].logprob for token, of in zip(tokens, new.logprobs or [], strict=True)]
        return Piece(
            name=output.request_id, tokens=tokens, logprobs=logprobs, version=self.version, is_last=output.finished
        )

    def set_weights(self, weights: Weights, version: int, *, recompute: bool) -> None:
        if self._has_workers:
            with weights_file(weights) as path:
                self.engine.collective_rpc("receive_file", args=(str(path),))
        else:
            self.engine.collective_rpc("receive_weights", args=(weights.items(),))
        if recompute:
            self.engine.reset_prefix_cache(reset_running_requests=True)
        self.version = version

    def score(self, tokens: tuple[int, ...]) -> NDArray[np.float32]:
        self.engine.add_request(PROBE_NAME, {"prompt_token_ids": list(tokens), "cache_salt": PROBE_NAME}, probing())
        while True:
            outputs = self.engine.step()
            self._pieces += [self._piece(output) for output in outputs if output.request_id != PROBE_NAME]
            for output in outputs:
                if output.request_id == PROBE_NAME and output.finished:
                    return scores_of_probe(output, tokens)

    def check(self) -> None:
        """Raises Interrupted if a worker has ended; an engine without workers ends with this process."""
        if self._has_workers and self._executor.is_failed:
            raise Interrupted("a worker of vLLM has ended")

    def close(self) -> None:
        if self._workers is not None:
            self._workers.part()
        self.engine.engine_core.shutdown()
        if self._workers is not None:
            self._workers.end()
            self._workers = None


@contextmanager
def process_kept() -> Iterator[None]:
    """Undo what vLLM's CPU worker does to this process.

    The worker replaces `torch.set_num_threads` by a no-op and binds all new memory to one NUMA node. Here the function
    is restored, and the binding prevented."""
    set_num_threads, threads = torch.set_num_threads, torch.get_num_threads()
    operators: Any = torch.ops._C
    operators.init_cpu_memory_env = lambda nodes: None
    try:
        yield
    finally:
        del operators.init_cpu_memory_env
        torch.set_num_threads = set_num_threads
        torch.set_num_threads(threads)
