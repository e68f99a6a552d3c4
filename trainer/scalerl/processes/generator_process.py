"""What a generator process executes: decode, obey between two decode steps, report."""

import os
import pickle
from dataclasses import dataclass
from multiprocessing.connection import Connection

import torch
from torch import Tensor

from scalerl.generator.generator import Generator
from scalerl.generator.request import Finished, StepWork
from scalerl.processes.messages import (
    Answer,
    HandOver,
    NewRequests,
    NewWeights,
    Order,
    Pause,
    Paused,
    Report,
    Resume,
    State,
    TakeOver,
    from_bytes,
    to_bytes,
)
from scalerl.processes.time_sheet import Activity, TimeSheet
from scalerl.weights.channel import WeightChannel

NO_WORK = StepWork(sequences=0, prefill_tokens=0, context_tokens=0)


@dataclass(frozen=True, kw_only=True)
class Outfit:
    """What a generator process is started with."""

    connection: Connection
    generator: bytes
    """Pickled, so that its tensors are the process's own and not shared."""
    channel: WeightChannel
    seconds: Tensor
    """Shared [2]: how long it was busy and idle, for the trainer's process to read at any time."""
    threads: int


def generate(outfit: Outfit) -> None:
    """Decode until the trainer's process closes its end of the connection or dies."""
    torch.set_num_threads(outfit.threads)
    try:
        GeneratorProcess(outfit).work()
    except (EOFError, ConnectionError):
        # Nothing here needs an orderly end, and taking torch down takes a busy machine seconds.
        os._exit(0)


class GeneratorProcess:
    """The generator with its orders, its time sheet and what it has not reported yet."""

    def __init__(self, outfit: Outfit) -> None:
        self.connection, self.channel, self._seconds = outfit.connection, outfit.channel, outfit.seconds
        self.generator: Generator = pickle.loads(outfit.generator)
        self.sheet = TimeSheet()
        self.paused = True
        self.publication = 0
        self._work = NO_WORK

    def work(self) -> None:
        """Obey what has come, wait where there is nothing to decode, else take a decode step."""
        self._answer(Paused())
        while True:
            if self.paused or not self.generator.busy:
                self._spend("off" if self.paused else "idle")
                self._obey(from_bytes(self.connection.recv_bytes()))
            elif self.connection.poll():
                self._obey(from_bytes(self.connection.recv_bytes()))
            else:
                self._spend("busy")
                self._step()

    def _spend(self, activity: Activity) -> None:
        self.sheet.switch(activity)
        self._seconds[0], self._seconds[1] = self.sheet.seconds("busy"), self.sheet.seconds("idle")

    def _step(self) -> None:
        finished, work = self.generator.step()
        self._work = StepWork(
            sequences=self._work.sequences + work.sequences,
            prefill_tokens=self._work.prefill_tokens + work.prefill_tokens,
            context_tokens=self._work.context_tokens + work.context_tokens,
        )
        if finished:
            self._report(finished)

    def _obey(self, order: Order) -> None:
        match order:
            case NewRequests():
                self.generator.submit(order.requests)
            case NewWeights():
                self._take_weights(order.publication)
            case Pause():
                self.paused = True
                self._spend("off")
                self._report([])
                self._answer(Paused())
            case Resume():
                self.paused = False
            case HandOver():
                self._answer(State(state=self.generator.state_dict()))
            case TakeOver():
                self.generator.load_state_dict(order.state)
                self._report([])

    def _take_weights(self, publication: int) -> None:
        version, weights = self.channel.receive(publication)
        self.generator.set_weights(weights, version)
        self.publication = publication
        self._report([])

    def _report(self, finished: list[Finished]) -> None:
        generator = self.generator
        report = Report(
            finished=finished,
            work=self._work,
            version=generator.version,
            publication=self.publication,
            first_waiting=generator.first_waiting,
        )
        self._work = NO_WORK
        self._answer(report)

    def _answer(self, answer: Answer) -> None:
        self.connection.send_bytes(to_bytes(answer))
