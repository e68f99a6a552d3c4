"""vLLM in its own process, which runs ahead while this process handles the tokens chosen so far.

The driver for throughput: an `AsyncLLM` and its event loop live in a thread. The number of tokens per step depends on
the machine, so this driver is for the wall clock. New weights are taken between two tokens: the engine pauses with
everything it decodes, its workers read a file, and it resumes. The engine labels each token with the weights that
chose it.
"""

import asyncio
import threading
from collections.abc import Coroutine, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

import numpy as np
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

ENGINE_START_LIMIT_S = 900.0
ANSWER_LIMIT_S = 300.0
"""Time limit for new weights, a probe, a pause, or the next token of any ask."""
CLOSE_LIMIT_S = 5.0
PROCESS_ENDED = "one of its processes has ended"

Returned = TypeVar("Returned")


class AsyncEngine(VllmEngine):
    """Driver of vLLM's `AsyncLLM`."""

    def __init__(self, arguments: dict[str, Any], *, temperature: float, eos: tuple[int, ...]) -> None:
        super().__init__(temperature, eos)
        self.is_paused = self._is_closed = False
        self._pieces: SimpleQueue[Piece | BaseException] = SimpleQueue()
        self._following: dict[str, asyncio.Task[None]] = {}
        """Unfinished asks; used only by the loop's thread."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="vllm", daemon=True)
        self._thread.start()
        self.engine: Any = None
        self._together: Together | None = None
        self._call(self._start(arguments), "start", ENGINE_START_LIMIT_S)

    async def _start(self, arguments: dict[str, Any]) -> None:
        with environment_of_engine():
            engine_args = vllm_module("engine.arg_utils").AsyncEngineArgs(**arguments, disable_log_stats=True)
            self.engine = vllm_module("v1.engine.async_llm").AsyncLLM.from_engine_args(
                engine_args, stat_loggers=[self.preemptions.logger]
            )
        await self.engine.update_weight_version("0")
        workers = await self.engine.collective_rpc("process_id")
        self._together = Together(sorted({process.pid for process in self.processes if process.pid} | set(workers)))
        self._together.broken.add_done_callback(lambda _: self._pieces.put(RuntimeError(PROCESS_ENDED)))

    @property
    def processes(self) -> list[BaseProcess]:
        """Processes of the engine, which in turn start its workers."""
        manager = self.engine.engine_core.resources.engine_manager
        return list(manager.processes) if manager else []

    @property
    def _is_broken(self) -> bool:
        return self._together is not None and self._together.broken.done()

    def ask(self, ask: Ask) -> None:
        self._loop.call_soon_threadsafe(self._begin, ask)

    def drop(self, name: str) -> None:
        self._loop.call_soon_threadsafe(self._end, name)

    def step(self) -> list[Piece]:
        try:
            pieces = [self._taken(self._pieces.get(timeout=ANSWER_LIMIT_S))]
        except Empty:
            self.close()
            raise Interrupted(f"vLLM's engine chose no token for {ANSWER_LIMIT_S:g} s") from None
        with suppress(Empty):
            while True:
                pieces.append(self._taken(self._pieces.get_nowait()))
        return pieces

    def set_weights(self, weights: Weights, version: int, *, recompute: bool) -> None:
        with weights_file(weights) as path:
            self._call(self._swap(path, version, recompute), "take new weights")

    def score(self, tokens: tuple[int, ...]) -> NDArray[np.float32]:
        return self._call(self._score(tokens), "score a probe")

    def pause(self) -> None:
        self.is_paused = True
        self._call(self._hold(), "pause")

    def resume(self) -> None:
        self.is_paused = False
        self._call(self.engine.resume_generation(), "resume")

    def check(self) -> None:
        if self._is_closed or self.engine.errored or self._is_broken:
            raise Interrupted("vLLM's engine has ended")

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if self.engine is not None:
            processes = self.processes
            if self._together is not None:
                self._together.part()
            stopping = asyncio.run_coroutine_threadsafe(self._stop(), self._loop)
            with suppress(Exception):
                stopping.result(2 * CLOSE_LIMIT_S)
            for process in processes:
                process.kill()  # a process that hangs
                process.join(CLOSE_LIMIT_S)
            if self._together is not None:
                self._together.end()
            self.engine = None  # its finaliser needs modules that interpreter shutdown removes first
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSE_LIMIT_S)
        if not self._thread.is_alive():
            self._loop.close()

    # --- from this thread to the loop's thread ----------------------------------------------------------------------

    def _call(self, work: Coroutine[Any, Any, Returned], what: str, limit_s: float = ANSWER_LIMIT_S) -> Returned:
        """Result of the work; an engine that fails or times out is closed, because its state is unknown."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        # vLLM answers pending calls only while its engine is alive.
        events: list[Future[Any]] = [future, self._together.broken] if self._together else [future]
        wait(events, limit_s, FIRST_COMPLETED)
        try:
            if self._is_broken and not future.done():
                raise RuntimeError(PROCESS_ENDED)
            return future.result(0)
        except Exception as error:
            self.close()
            why = f"within {limit_s:g} s" if isinstance(error, TimeoutError) else f"({error or type(error).__name__})"
            raise Interrupted(f"vLLM's engine did not {what} {why}") from error

    def _taken(self, piece: Piece | BaseException) -> Piece:
        if isinstance(piece, BaseException):
            self.close()
            raise Interrupted(f"vLLM's engine has ended ({piece or type(piece).__name__})") from piece
        return piece

    # --- in the loop's thread ---------------------------------------------------------------------------------------

    def _begin(self, ask: Ask) -> None:
        task = self._loop.create_task(self._follow(ask))
        self._following[ask.name] = task
        task.add_done_callback(lambda _: self._following.pop(ask.name, None))

    def _end(self, name: str) -> None:
        if name in self._following:
            self._following[name].cancel()

    async def _follow(self, ask: Ask) -> None:
        """Pass on the pieces of an ask until it ends or is cancelled."""
        prompt = {"prompt_token_ids": list(ask.tokens), "cache_salt": ask.salt}
        try:
            collector = await self.engine.add_request(ask.name, prompt, sampling(ask, self.temperature, self.eos))
            state = self.engine.output_processor.request_states.get(collector.request_id)
            taken, is_last = 0, False
            while not is_last:
                output = collector.get_nowait() or await collector.get()
                (new,), is_last = output.outputs, output.finished
                spans = [(of.version, of.start) for of in new.weight_versions or ()]
                starts = spans if is_last else state.weight_version_starts
                for piece in pieces_by_weights(ask.name, new, taken, starts, is_last=is_last):
                    self._pieces.put(piece)
                taken += len(new.token_ids)
        except asyncio.CancelledError:
            with suppress(Exception):
                await self.engine.abort(ask.name)
            raise
        except Exception as error:
            self._pieces.put(error)

    async def _swap(self, path: Path, version: int, recompute: bool) -> None:
        await self._hold(clear_cache=recompute)
        await self.engine.collective_rpc("receive_file", args=(str(path),))
        await self.engine.update_weight_version(str(version))
        if not self.is_paused:
            await self.engine.resume_generation()

    async def _hold(self, *, clear_cache: bool = False) -> None:
        await self.engine.pause_generation(mode="keep", clear_cache=clear_cache)

    async def _score(self, tokens: tuple[int, ...]) -> NDArray[np.float32]:
        prompt = {"prompt_token_ids": list(tokens), "cache_salt": PROBE_NAME}
        if self.is_paused:
            await self.engine.resume_generation()
        output = None
        async for output in self.engine.generate(prompt, probing(), PROBE_NAME):  # noqa: B007, the last one is complete
            pass
        if self.is_paused:
            await self._hold()
        return scores_of_probe(output, tokens)

    async def _stop(self) -> None:
        self.engine.shutdown(timeout=CLOSE_LIMIT_S)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        self.engine.engine_core.resources.ctx.destroy(linger=0)


def pieces_by_weights(
    name: str, new: Any, taken: int, starts: Sequence[tuple[str, int]], *, is_last: bool
) -> Iterator[Piece]:
    """Split the tokens after the first `taken` into one piece per version of the weights.

    `starts` gives the first token of each version, counted over all tokens of the ask."""
    tokens = list(new.token_ids)
    logprobs: list[float] = [of[token].logprob for token, of in zip(tokens, new.logprobs or [], strict=True)]
    past_all = taken + len(tokens)
    ends = [*(start for _, start in starts[1:]), past_all]
    for (version, start), end in zip(starts, ends, strict=True):
        own = slice(max(start - taken, 0), max(end - taken, 0))
        if tokens[own]:
            yield Piece(
                name=name,
                tokens=tokens[own],
                logprobs=logprobs[own],
                version=int(version),
                is_last=is_last and end == past_all,
            )
