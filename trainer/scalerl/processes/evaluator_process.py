"""The program of the evaluator's process: fetch the weights named by an order, measure them, answer."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection

import torch

from scalerl.evaluation.meter import Meter
from scalerl.generator.generator import Generator, decode_all
from scalerl.generator.request import Finished, Request
from scalerl.processes.generator_process import BEAT_S, LOOK_AT_ENGINE_EVERY_S
from scalerl.processes.messages import (
    CannotMeasure,
    Measure,
    MeasuredWeights,
    Measuring,
    Paused,
    Refused,
    from_bytes,
)
from scalerl.processes.time_sheet import TimeSheet
from scalerl.processes.voice import Voice
from scalerl.prompts.judge import VerifierFailed
from scalerl.weights.hugging_face import Weights
from scalerl.weights.store import UnusablePublication, WeightStore

MeterMaker = Callable[[], tuple[Generator, Meter]]
"""Builds a generator and a meter in the process that calls it; can be pickled."""


@dataclass(frozen=True, kw_only=True)
class EvaluatorWork:
    """The evaluator's Work: everything its process needs before the first order."""

    maker: MeterMaker
    store: WeightStore
    """Store of the weights to measure."""
    threads: int

    def __call__(self, connection: Connection) -> None:
        """Measure until the coordinator closes its end of the connection or dies."""
        torch.set_num_threads(self.threads)
        EvaluatorProcess(self, connection).work()


class EvaluatorProcess:
    """A sampler that decodes with the weights named by the current order."""

    def __init__(self, work: EvaluatorWork, connection: Connection) -> None:
        self.connection, self.store = connection, work.store
        self.generator, self.meter = work.maker()
        self.voice = Voice(connection)
        self._weights: Weights = {}
        self._version = 0

    def work(self) -> None:
        """Send the first message, then obey orders one by one."""
        self.voice.answer(Paused())
        while True:
            while not self.connection.poll(LOOK_AT_ENGINE_EVERY_S):
                self.generator.check()
            self.voice.answer(self._measure(from_bytes(self.connection.recv_bytes())))

    def sample(self, requests: list[Request]) -> list[Finished]:
        """Decode the requests, sending a sign of life now and then."""
        if self.generator.version != self._version:
            self.generator.set_weights(self._weights, self._version)
        self.voice.answer(Measuring(doing="decodes"))
        finished = decode_all(self.generator, requests, self._beat)
        self.voice.answer(Measuring(doing="judges"))
        return finished

    def _beat(self) -> None:
        if time.monotonic() - self.voice.said > BEAT_S:
            self.voice.answer(Measuring(doing="decodes"))

    def _measure(self, order: Measure) -> MeasuredWeights | Refused | CannotMeasure:
        sheet = TimeSheet()
        sheet.switch("sync")
        try:
            self._weights = self.store.fetch(order.publication, order.version)
        except UnusablePublication as error:
            return Refused(publication=order.publication, reason=str(error))
        self._version = order.version
        self.generator.set_weights(self._weights, self._version)
        gap = order.probe.gap(self.generator) if order.probe else None
        sheet.switch("evaluate")
        try:
            measured = self.meter.measure(self, order.publication, order.reading)
        except VerifierFailed as error:
            return CannotMeasure(reason=str(error))
        return MeasuredWeights(**vars(measured), publication=order.publication, seconds=sheet.seconds(), probe_gap=gap)
