"""The program of a trainer rank: meet the other ranks and obey orders, one by one.

All ranks get the same orders in the same order, so collective operations match.
"""

from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection

import torch
from torch.distributed import TCPStore  # pyright: ignore[reportPrivateImportUsage]  torch does not list it

from scalerl.cluster.device_seconds import Activity
from scalerl.errors import Diverged
from scalerl.learner.learner import Learner
from scalerl.learner.ranks import LIMIT, Ranks, join
from scalerl.model.device import Rejected
from scalerl.processes.messages import (
    Book,
    CannotTrain,
    HandOver,
    Obeyed,
    Order,
    ProcessReply,
    Publish,
    Step,
    TakeOver,
    WriteKept,
    from_bytes,
    to_bytes,
)
from scalerl.processes.time_sheet import TimeSheet
from scalerl.weights.store import WeightStore

LOCAL = "127.0.0.1"
"""Meeting address for ranks of one machine."""
LearnerMaker = Callable[[Ranks], Learner]
"""Builds a rank's learner in the process that calls it; a collective operation; can be pickled."""


@dataclass(frozen=True, kw_only=True)
class TrainerWork:
    """One rank's Work: `TrainerWork(rank=1, world=2, host="127.0.0.1", port=40123, ...)`."""

    rank: int = 0
    world: int = 1
    """Number of ranks; `RemoteLearner` fills in rank, world and port."""
    host: str
    port: int = 0
    """Port of the ranks' meeting, served by the coordinator."""
    maker: LearnerMaker
    store: WeightStore
    threads: int
    evaluations: WeightStore | None = None
    """Store for weights to be measured, if there is an evaluator."""

    def __call__(self, connection: Connection) -> None:
        """Obey until the coordinator closes its end of the connection or dies."""
        torch.set_num_threads(self.threads)
        meeting = TCPStore(self.host, self.port, is_master=False, timeout=LIMIT)
        ranks = join(meeting, rank=self.rank, world=self.world, are_together=self.host == LOCAL)
        try:
            learner = self.maker(ranks)
        except Rejected as error:
            connection.send_bytes(to_bytes(CannotTrain(error=error)))
            raise
        TrainerProcess(learner, ranks, self, connection).work()


class TrainerProcess:
    """The learner of one rank, with its orders and its time sheet."""

    def __init__(self, learner: Learner, ranks: Ranks, work: TrainerWork, connection: Connection) -> None:
        self.learner, self.ranks, self.orders, self.connection = learner, ranks, work, connection
        self.sheet = TimeSheet()

    def work(self) -> None:
        """Send the first message, then obey orders."""
        self._answer(self._obeyed())
        while True:
            self._answer(self._obey(from_bytes(self.connection.recv_bytes())))

    def _obey(self, order: Order) -> ProcessReply:
        match order:
            case Step():
                self.sheet.switch("forward_backward")
                try:
                    update = self.learner.step(order.groups, order.compute_gpu_hours)
                except Diverged as error:
                    return CannotTrain(error=error)
                self.sheet.switch("wait_rollouts")
                return self._obeyed(update=update if self.ranks.is_first else None)
            case Publish():
                before = self.sheet.activity
                if before != "off":
                    self.sheet.switch("sync")
                store = self.orders.evaluations if order.is_to_measure else self.orders.store
                assert store is not None, "only a run with an evaluator publishes weights to measure"
                self.learner.publish(store, order.publication)
                self.sheet.switch(before)
            case Book():
                self.sheet.switch(order.activity)
            case HandOver():
                state = self.learner.state_dict()
                return self._obeyed(state=state if self.ranks.is_first else None)
            case WriteKept():
                kept = self.learner.write_kept(order.folder)
                return self._obeyed(kept=kept if self.ranks.is_first else None)
            case TakeOver():
                self.learner.load_state_dict(order.state)
            case _:
                raise AssertionError(f"{type(order).__name__} is not an order to a trainer rank")
        return self._obeyed()

    def _obeyed(self, **found: object) -> Obeyed:
        waits_for_evaluator = self.sheet.activity == "wait_evaluator"
        doing: Activity = "wait_evaluator" if waits_for_evaluator else "wait_rollouts"
        return Obeyed(seconds=self.sheet.seconds(), doing=doing, **found)  # pyright: ignore[reportArgumentType]  one of its fields

    def _answer(self, answer: ProcessReply) -> None:
        self.connection.send_bytes(to_bytes(answer))
