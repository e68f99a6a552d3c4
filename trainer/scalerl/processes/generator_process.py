"""The program of a generator process: decode, obey orders between two decode steps, report."""

import gc
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection

import torch

from scalerl.cluster.device_seconds import Activity
from scalerl.generator.generator import Maker
from scalerl.generator.request import Finished, StepWork
from scalerl.processes.messages import (
    GeneratorState,
    HandOver,
    NewRequests,
    NewWeights,
    Order,
    Pause,
    Paused,
    Refused,
    Report,
    Resume,
    TakeOver,
    from_bytes,
)
from scalerl.processes.time_sheet import TimeSheet
from scalerl.processes.voice import Voice
from scalerl.weights.store import UnusablePublication, WeightStore

LOOK_AT_ENGINE_EVERY_S = 1.0
"""Interval at which an idle generator checks that its engine is alive."""
BEAT_S = 5.0
"""Interval within which a working generator sends a message, if its decode steps are shorter."""


@dataclass(frozen=True, kw_only=True)
class GeneratorWork:
    """A generator's Work: everything its process needs before the first order."""

    maker: Maker
    """Makes the generator in its process, with weights of version 0."""
    store: WeightStore
    threads: int

    def __call__(self, connection: Connection) -> None:
        """Decode until the coordinator closes its end of the connection or dies."""
        torch.set_num_threads(self.threads)
        process = GeneratorProcess(self, connection)
        gc.freeze()  # libraries' objects, which take longer to look at than many decode steps
        process.work()


class GeneratorProcess:
    """A generator with its orders, its time sheet and its unreported results."""

    def __init__(self, work: GeneratorWork, connection: Connection) -> None:
        self.connection, self.store = connection, work.store
        self.generator = work.maker()
        self.voice = Voice(connection)
        self.sheet = TimeSheet()
        self.paused = True
        self.publication = 0
        self._done = StepWork()

    def work(self) -> None:
        """Obey pending orders, then take a decode step, or wait if there is nothing to decode."""
        self.voice.answer(Paused())
        while True:
            if self.paused or not self.generator.busy:
                self.sheet.switch("off" if self.paused else "wait_prompts")
                while not self.connection.poll(LOOK_AT_ENGINE_EVERY_S):
                    self.generator.check()
                self._obey(from_bytes(self.connection.recv_bytes()))
            elif self.connection.poll():
                self._obey(from_bytes(self.connection.recv_bytes()))
            else:
                self.sheet.switch(self._doing)
                self._step()

    @property
    def _doing(self) -> Activity:
        """What this process does until something comes."""
        if self.generator.awaits_environment:
            return "wait_environment"
        return "decode" if self.generator.busy else "wait_prompts"

    def _step(self) -> None:
        finished, work = self.generator.step()
        self._done += work
        if finished or time.monotonic() - self.voice.said > BEAT_S:
            self._report(finished)

    def _obey(self, order: Order) -> None:
        match order:
            case NewRequests():
                self.generator.submit(order.requests)
            case NewWeights():
                self._take_weights(order)
            case Pause():
                self.paused = True
                self.generator.pause()
                self.sheet.switch("off")
                self._report([])
                self.voice.answer(Paused())
            case Resume():
                self.paused = False
                self.generator.resume()
            case HandOver():
                self.voice.answer(GeneratorState(state=self.generator.state_dict()))
            case TakeOver():
                self.generator.load_state_dict(order.state)
                self._report([])

    def _take_weights(self, order: NewWeights) -> None:
        if not self.paused:
            waited = self.sheet.activity == "wait_prompts"
            self.sheet.switch("sync", was="wait_weights" if waited else None)
        try:
            weights = self.store.fetch(order.publication, order.version)
        except UnusablePublication as error:
            self.voice.answer(Refused(publication=order.publication, reason=str(error)))
            return
        self.generator.set_weights(weights, order.version)
        self.publication = order.publication
        self._report([], probe_gap=order.probe.gap(self.generator) if order.probe else None)

    def _report(self, finished: list[Finished], *, probe_gap: float | None = None) -> None:
        generator = self.generator
        report = Report(
            finished=finished,
            work=self._done,
            version=generator.version,
            publication=self.publication,
            first_waiting=generator.first_waiting,
            probe_gap=probe_gap,
            seconds=self.sheet.seconds(),
            doing=self._doing,
        )
        self._done = StepWork()
        self.voice.answer(report)
