"""Other engines in place of the built-in ones, as small as their protocols allow."""

from collections import deque
from itertools import cycle
from pathlib import Path

import numpy as np
import safetensors.torch

from scalerl.generator.request import Finished, Request, StepWork
from scalerl.rollout import Rollout
from scalerl.weights.hugging_face import Weights

LOGPROB = -0.25


class ListGenerator:
    """Answers every request with the next answer of a list, one rollout per decode step; it has no model."""

    def __init__(self, answers: list[tuple[int, ...]]) -> None:
        self.answers = cycle(answers)
        self.queue: deque[Request] = deque()
        self.version = 0
        self.weights: dict[str, float] = {}
        """Of each tensor it was given last, its sum: enough to see which weights came."""

    @property
    def busy(self) -> bool:
        return bool(self.queue)

    @property
    def has_room(self) -> bool:
        return len(self.queue) < 8

    @property
    def first_waiting(self) -> int | None:
        return next((request.group for request in self.queue if request.index == 0), None)

    def submit(self, requests: list[Request]) -> None:
        self.queue.extend(requests)

    def set_weights(self, weights: Weights, version: int) -> None:
        self.weights = {name: float(tensor.double().sum()) for name, tensor in weights.items()}
        self.version = version

    def step(self) -> tuple[list[Finished], StepWork]:
        request = self.queue.popleft()
        tokens = np.array(next(self.answers), dtype=np.int64)
        rollout = Rollout(
            prompt=request.prompt,
            tokens=tokens,
            logprobs=np.full(len(tokens), LOGPROB, dtype=np.float32),
            versions=np.full(len(tokens), self.version, dtype=np.int32),
            forced=np.zeros(len(tokens), dtype=np.bool_),
            truncated=False,
        )
        work = StepWork(sequences=1, prefill_tokens=len(request.prompt.tokens), context_tokens=len(tokens))
        return [Finished(request=request, rollout=rollout)], work

    def state_dict(self) -> dict:
        return {"queue": list(self.queue), "version": self.version}

    def load_state_dict(self, state: dict) -> None:
        self.queue, self.version = deque(state["queue"]), state["version"]


class FolderChannel:
    """Publications as files of a folder, which any machine that mounts it reads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def publish(self, publication: int, version: int, weights: Weights) -> None:
        copies = {name: tensor.contiguous().clone() for name, tensor in weights.items()}
        safetensors.torch.save_file(copies, self.folder / f"{publication}.safetensors")
        (self.folder / f"{publication}.version").write_text(str(version))
        (self.folder / f"{publication - 2}.safetensors").unlink(missing_ok=True)

    def receive(self, publication: int) -> tuple[int, Weights]:
        version = int((self.folder / f"{publication}.version").read_text())
        return version, safetensors.torch.load_file(self.folder / f"{publication}.safetensors")

    def close(self) -> None:
        """The files stay, for the test to look at."""
