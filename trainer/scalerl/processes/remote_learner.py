"""The run's side of a sharded learner, on either clock: orders to all ranks, one answer from each.

Ranks publish their weights themselves. A modelled generator, an evaluation or the model's folder needs whole weights in
the run's process, and fetches a publication.
"""

import pickle
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch.distributed import TCPStore  # pyright: ignore[reportPrivateImportUsage]  torch does not list it

from scalerl.cluster.placement import PlacedUnit
from scalerl.durable import Part
from scalerl.learner.learner import Learner, Update, go_on
from scalerl.learner.ranks import RankDied
from scalerl.model.build import new_policy
from scalerl.model.size import ModelSize
from scalerl.processes.fleet import Fleet
from scalerl.processes.launch import Launcher
from scalerl.processes.line import Death
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
)
from scalerl.processes.time_sheet import Pastime, ReportedAccount
from scalerl.processes.trainer_process import TrainerWork
from scalerl.recipe import ResolvedRecipe
from scalerl.rollout import Group
from scalerl.weights.hugging_face import Weights
from scalerl.weights.store import WeightStore

OBEY_LIMIT_S = 3600.0
"""Time limit for an order; the ranks' own limit for a message to each other is shorter."""
LOOK_S = 1.0
"""Longest wait for an answer before limits are checked again."""
CAUSE_S = 2.0
"""Time to find the cause when ranks die: one rank's death takes the others with it."""


class RemoteLearner(Learner):
    """The ranks of a learner, started on construction; every order waits until all have obeyed."""

    def __init__(
        self,
        *,
        recipe: ResolvedRecipe,
        launcher: Launcher,
        units: Sequence[PlacedUnit],
        work: TrainerWork,
        size: ModelSize,
        start: Path,
    ) -> None:
        """`launcher` starts the trainer ranks among `units`; each executes `work` with its rank. All meet here.

        `start` is the model folder that the run starts from.
        """
        self.start = start
        self.recipe, self.size, self.store, self.evaluations = recipe, size, work.store, work.evaluations
        self.check_stop: Callable[[], None] = go_on
        self.version = 0
        self.publication = 0
        """Last publication that generators were told of, or are about to be."""
        self._published: tuple[int, int] | None = None
        """Number and version of the last publication."""
        self._meeting = TCPStore(work.host, 0, is_master=True, wait_for_workers=False)
        ranks = [unit for unit in units if unit.role == "trainer"]
        self.accounts = [ReportedAccount(doing="wait_rollouts") for _ in ranks]
        """Time spent by each rank in this attempt."""
        works = [replace(work, rank=rank, world=len(ranks), port=self._meeting.port) for rank in range(len(ranks))]
        self.fleet = Fleet(launcher, ranks, [pickle.dumps(each) for each in works])
        self._owed = len(ranks)
        """Number of missing answers; at first, one first message per rank."""
        self.is_there = False
        """True if every rank has sent its first message."""

    @property
    def policy(self) -> None:
        """None: no single process holds the policy."""
        return None

    def wait_until_there(self) -> None:
        """Wait for every rank's first message."""
        list(self._answers())
        self.is_there = True

    def step(self, groups: Sequence[Group], compute_gpu_hours: float | None = None) -> Update:
        """Take an optimiser step; RankDied if a rank dies."""
        (update,) = (
            answer.update
            for answer in self._order(Step(groups=groups, compute_gpu_hours=compute_gpu_hours))
            if answer.update is not None
        )
        self.version += 1
        return update

    def publish(self, store: WeightStore, publication: int) -> None:
        if store is self.evaluations:
            self._order(Publish(publication=publication, is_to_measure=True))
            return
        assert store is self.store, "ranks publish only to the stores that they were started with"
        self.publication = publication
        self._publish(publication)

    def weights(self) -> Weights:
        """The policy's weights, fetched from the store, after publishing them if the last publication is older.

        Generators are never told about this publication, and its number is reused, so none reads it. Call this
        only if no generator is about to take the last publication but one, as in a pause.
        """
        if self._published is None or self._published[1] != self.version:
            self._publish(self.publication + 1)
        assert self._published is not None
        return self.store.fetch(*self._published)

    def save_model(self, folder: Path) -> None:
        policy = new_policy(self.recipe)
        if policy.has_adapter:
            policy.load_weights(self.start)
        policy.import_weights(self.weights())
        policy.save_weights(folder)

    def book(self, activity: Pastime) -> None:
        """Book the time of the ranks on this activity until the next order."""
        self._order(Book(activity=activity))

    def refuse_dead(self) -> None:
        """RankDied if a rank that owes nothing has died."""
        for rank, said in self.fleet.answers():
            self._take(rank, said)

    def state_dict(self) -> dict[str, Any]:
        """State common to all ranks; only while paused."""
        (state,) = (answer.state for answer in self._order(HandOver()) if answer.state is not None)
        return state

    def write_kept(self, folder: Path) -> list[Part]:
        """Have each rank write its own state; only while paused."""
        order = WriteKept(folder=folder.resolve())
        (kept,) = (answer.kept for answer in self._order(order) if answer.kept is not None)
        return kept

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Have every rank load its share, from any number of ranks; files named by `kept` are read by the ranks."""
        self._order(TakeOver(state=state))
        self.version = state["version"]
        self._published = None

    def close(self) -> None:
        self.fleet.close()

    def _publish(self, publication: int) -> None:
        self._order(Publish(publication=publication))
        self._published = publication, self.version

    def _order(self, order: Order) -> list[Obeyed]:
        """Send an order to all ranks; return their answers in the order of arrival."""
        self.wait_until_there()
        for rank in range(len(self.fleet)):
            self.fleet.send(rank, order)
        self._owed = len(self.fleet)
        return list(self._answers())

    def _answers(self) -> Iterator[Obeyed]:
        limit = time.monotonic() + OBEY_LIMIT_S
        while self._owed:
            if time.monotonic() > limit:
                raise RankDied(
                    f"{self._owed} of the learner's {len(self.fleet)} ranks have not answered for {OBEY_LIMIT_S:.0f} s"
                )
            for rank, said in self.fleet.answers(wait_s=LOOK_S):
                yield self._take(rank, said)
                if not self._owed:
                    return  # a message after the last answer is a death, which the next order finds

    def _take(self, rank: int, said: ProcessReply | Death) -> Obeyed:
        match said:
            case Obeyed():
                self._owed -= 1
                self.accounts[rank].report(said.seconds, said.doing)
                return said
            case CannotTrain(error=error):
                raise error
            case Death():
                raise RankDied(self._cause(rank, said))
        raise AssertionError(f"{type(said).__name__} is not an answer of a trainer rank")

    def _cause(self, rank: int, death: Death) -> str:
        """The rank that died, and how: the one that did not end by itself, if there is one."""
        limit = time.monotonic() + CAUSE_S
        while death.by_itself and (left_s := limit - time.monotonic()) > 0:
            for other, said in self.fleet.answers(wait_s=left_s):
                if isinstance(said, Death) and not said.by_itself:
                    rank, death = other, said
        return f"rank {rank} of the learner's {len(self.fleet)} {death.how}"
