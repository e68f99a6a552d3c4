"""Other engines in place of the built-in ones, as small as their protocols allow."""

import copy
import multiprocessing
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Container, Mapping
from contextlib import suppress
from functools import partial
from itertools import cycle
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from scalerl.cluster.placement import PlacedUnit
from scalerl.generator.generator import Generator
from scalerl.generator.request import Finished, StepWork
from scalerl.processes.generator_process import GeneratorProcess, GeneratorWork
from scalerl.rollout import Rollout
from scalerl.weights.folder import FolderStore
from scalerl.weights.hugging_face import Weights
from scalerl.weights.store import WeightStore

LOGPROB = -0.25


class ListGenerator(Generator):
    """Answers every request with the next answer of a list, one rollout per decode step; it has no model."""

    def __init__(self, answers: list[tuple[int, ...]]) -> None:
        super().__init__(slots=8)
        self.answers = cycle(answers)
        self.version = 0
        self.weights: dict[str, float] = {}
        """Of each tensor it was given last, its sum: enough to see which weights came."""

    @property
    def active(self) -> int:
        return 0

    def set_weights(self, weights: Weights, version: int) -> None:
        self.weights = {name: float(tensor.double().sum()) for name, tensor in weights.items()}
        self.version = version

    def score(self, tokens: tuple[int, ...]) -> NDArray[np.float32]:
        return np.full(len(tokens) - 1, LOGPROB, dtype=np.float32)

    def step(self) -> tuple[list[Finished], StepWork]:
        request = self.waiting.popleft()
        tokens = np.array(next(self.answers), dtype=np.int64)
        rollout = Rollout(
            prompt=request.prompt,
            tokens=tokens,
            logprobs=np.full(len(tokens), LOGPROB, dtype=np.float32),
            versions=np.full(len(tokens), self.version, dtype=np.int32),
            forced=np.zeros(len(tokens), dtype=np.bool_),
            truncated=False,
        )
        size = len(request.prompt.tokens)
        work = StepWork(
            sequences=1,
            prefill_tokens=size,
            prefill_context_tokens=size * (size + 1) // 2,
            context_tokens=len(tokens),
        )
        return [Finished(request=request, rollout=rollout)], work

    def state_dict(self) -> dict:
        return {"queue": list(self.waiting), "version": self.version}

    def load_state_dict(self, state: dict) -> None:
        self.waiting, self.version = deque(state["queue"]), state["version"]


class DamagingStore(FolderStore):
    """Tears what it has published under the numbers in `damaged`."""

    def __init__(self, folder: Path, weights: Weights, damaged: Container[int]) -> None:
        super().__init__(folder, weights)
        self.damaged = damaged

    def publish(self, publication: int, version: int, weights: Weights, *, rank: int = 0, ranks: int = 1) -> None:
        super().publish(publication, version, weights, rank=rank, ranks=ranks)
        if publication in self.damaged:
            path = self.folder / str(publication) / f"{rank}-of-{ranks}.safetensors"
            path.write_bytes(path.read_bytes()[:-4])


class SlowGenerator(ListGenerator):
    """Takes a while over every decode step."""

    def step(self) -> tuple[list[Finished], StepWork]:
        time.sleep(0.05)
        return super().step()


class ThreadLauncher:
    """Generators as threads of this process, behind the pipes and messages of real ones."""

    def __init__(
        self, generators: list[ListGenerator], store: WeightStore, late: Mapping[int, threading.Event]
    ) -> None:
        """Those in `late` say nothing before their event."""
        self.works = [GeneratorWork(maker=partial(copy.deepcopy, each), store=store, threads=1) for each in generators]
        self.late = late
        self.bodies: dict[int, list[ThreadBody]] = {}
        """Of each generator, one after the other."""

    def start(self, unit: PlacedUnit, work: bytes) -> "ThreadBody":
        ours, theirs = multiprocessing.Pipe()
        body = ThreadBody(self.works[unit.index], ours, theirs, self.late.get(unit.index))
        self.bodies.setdefault(unit.index, []).append(body)
        return body

    def reaches(self, node: int) -> bool:
        return True

    def node_name(self, node: int) -> str:
        return f"fake{node}"


class ThreadBody:
    """One of them; it is killed by taking its connection away."""

    process_id = 0

    def __init__(
        self, orders: GeneratorWork, ours: Connection, theirs: Connection, late: threading.Event | None
    ) -> None:
        self.orders, self.ours, self.theirs, self.late, self.is_killed = orders, ours, theirs, late, False
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self) -> None:
        if self.late:
            self.late.wait()
        with suppress(EOFError, OSError):
            GeneratorProcess(self.orders, self.theirs).work()
        self.theirs.close()

    def connect(self) -> Connection:
        return self.ours

    def kill(self) -> None:
        self.is_killed = True
        with suppress(OSError), socket.socket(fileno=os.dup(self.ours.fileno())) as end:
            end.shutdown(socket.SHUT_RDWR)

    def bury(self) -> int | None:
        self.thread.join(10)
        return -9 if self.is_killed else 0
