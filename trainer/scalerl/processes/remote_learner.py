"""A sharded learner as the run's process sees it, on either clock: orders to all ranks, one answer from each.

Ranks publish their weights themselves. What needs them whole in the run's process, a modelled generator, an evaluation
or the model's folder, fetches a publication.
"""

import atexit
import pickle
import queue
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch.distributed import TCPStore  # pyright: ignore[reportPrivateImportUsage]  torch does not list it

from scalerl.cluster.placement import PlacedUnit
from scalerl.durable import Part
from scalerl.learner.learner import Update
from scalerl.learner.ranks import RankDied
from scalerl.model.build import new_policy
from scalerl.model.size import ModelSize
from scalerl.processes.launch import Launcher
from scalerl.processes.line import Death, UnitLine
from scalerl.processes.messages import (
    AwaitEvaluator,
    CannotTrain,
    HandOver,
    Obeyed,
    Order,
    Pause,
    Publish,
    Resume,
    Step,
    TakeOver,
    WriteKept,
)
from scalerl.processes.time_sheet import ReportedAccount
from scalerl.processes.trainer_process import TrainerWork
from scalerl.recipe import ResolvedRecipe
from scalerl.rollout import Group
from scalerl.weights.hugging_face import Weights
from scalerl.weights.store import WeightStore

OBEY_LIMIT_S = 3600.0
"""For an order; the ranks' own limit for one of their messages is shorter."""
LOOK_S = 1.0
"""The longest wait for an answer before limits are looked at again."""
CAUSE_S = 2.0
"""A rank that dies takes the others with it; which was killed is seen within this time."""


class RemoteLearner:
    """The ranks of a learner, started with the object; every order waits until all have obeyed."""

    def __init__(
        self,
        *,
        recipe: ResolvedRecipe,
        launcher: Launcher,
        units: Sequence[PlacedUnit],
        work: TrainerWork,
        size: ModelSize,
    ) -> None:
        """`launcher` starts the trainer ranks among `units`; each executes `work` with its rank, all meet here."""
        self.recipe, self.size, self.store, self.evaluations = recipe, size, work.store, work.evaluations
        self.version = 0
        self.publication = 0
        """The last that generators were told of, or are about to be."""
        self._published: tuple[int, int] | None = None
        """Number and version of what was published last."""
        self._inbox: queue.SimpleQueue[UnitLine] = queue.SimpleQueue()
        self._meeting = TCPStore(work.host, 0, is_master=True, wait_for_workers=False)
        ranks = [unit for unit in units if unit.role == "trainer"]
        self.accounts = [ReportedAccount(doing="wait_rollouts") for _ in ranks]
        """How each rank has spent its time in this attempt."""
        self._lines: list[UnitLine] = []
        atexit.register(self.close)
        for rank, unit in enumerate(ranks):
            own = replace(work, rank=rank, world=len(ranks), port=self._meeting.port)
            self._lines.append(UnitLine(unit, launcher.start(unit, pickle.dumps(own)), self._inbox))
        self._owed = len(ranks)
        """Answers that have not come yet: of each its first word."""
        self.is_there = False
        """Whether every rank has said its first word."""

    @property
    def policy(self) -> None:
        """It lies in no single process."""
        return None

    def wait_until_there(self) -> None:
        """Until every rank has said its first word."""
        list(self._answers())
        self.is_there = True

    @property
    def process_ids(self) -> list[int]:
        """Of the ranks, in order."""
        return [line.body.process_id for line in self._lines]

    def step(self, groups: Sequence[Group], compute_gpu_hours: float | None = None) -> Update:
        """As every learner; RankDied where a rank does."""
        (update,) = (
            answer.update
            for answer in self._order(Step(groups=groups, compute_gpu_hours=compute_gpu_hours))
            if answer.update is not None
        )
        self.version += 1
        return update

    def publish(self, store: WeightStore, publication: int) -> None:
        """Each rank publishes its share."""
        if store is self.evaluations:
            self._order(Publish(publication=publication, is_to_measure=True))
            return
        assert store is self.store, "ranks publish to the stores that they were started with"
        self.publication = publication
        self._publish(publication)

    def weights(self) -> Weights:
        """The policy's weights, fetched from the store; they are published first, unless the last publication is it.

        That is never told to generators, and its number is used again: no generator reads its place. Only where none
        is about to take the last but one, as in a pause.
        """
        if self._published is None or self._published[1] != self.version:
            self._publish(self.publication + 1)
        assert self._published is not None
        return self.store.fetch(*self._published)

    def save_model(self, folder: Path) -> None:
        """Write the policy's weights in Hugging Face's format."""
        policy = new_policy(self.recipe)
        policy.import_weights(self.weights())
        policy.save_weights(folder)

    def pause(self) -> None:
        """From here on the time of the ranks is not counted."""
        self._order(Pause())

    def resume(self) -> None:
        """Their time is counted again."""
        self._order(Resume())

    def await_evaluator(self) -> None:
        """From here to `resume` they wait for the evaluator."""
        self._order(AwaitEvaluator())

    def refuse_dead(self) -> None:
        """RankDied where a rank has died that owes nothing."""
        while True:
            try:
                line = self._inbox.get_nowait()
            except queue.Empty:
                return
            self._take(line)

    def state_dict(self) -> dict[str, Any]:
        """What all ranks have alike; only while paused."""
        (state,) = (answer.state for answer in self._order(HandOver()) if answer.state is not None)
        return state

    def write_kept(self, folder: Path) -> list[Part]:
        """Each rank writes its own; only while paused."""
        order = WriteKept(folder=folder.resolve())
        (kept,) = (answer.kept for answer in self._order(order) if answer.kept is not None)
        return kept

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Every rank takes its share, whatever their number was; where `kept` names files, it reads it there."""
        self._order(TakeOver(state=state))
        self.version = state["version"]
        self._published = None

    def close(self) -> None:
        """End the ranks; there is nothing in them that a checkpoint has not."""
        atexit.unregister(self.close)
        for line in self._lines:
            line.kill()
        for line in self._lines:
            line.close()

    def _publish(self, publication: int) -> None:
        self._order(Publish(publication=publication))
        self._published = publication, self.version

    def _order(self, order: Order) -> list[Obeyed]:
        """All obey; their answers in the order in which they came."""
        self.wait_until_there()
        for line in self._lines:
            line.send(order)
        self._owed = len(self._lines)
        return list(self._answers())

    def _answers(self) -> Iterator[Obeyed]:
        limit = time.monotonic() + OBEY_LIMIT_S
        while self._owed:
            try:
                line = self._inbox.get(timeout=LOOK_S)
            except queue.Empty:
                if time.monotonic() > limit:
                    raise RankDied(
                        f"{self._owed} of the learner's {len(self._lines)} ranks have not answered for "
                        f"{OBEY_LIMIT_S:.0f} s"
                    ) from None
                continue
            yield self._take(line)

    def _take(self, line: UnitLine) -> Obeyed:
        match line.hear():
            case Obeyed() as answer:
                self._owed -= 1
                self.accounts[line.unit.index].report(answer.seconds, answer.doing)
                return answer
            case CannotTrain(error=error):
                raise error
            case Death() as death:
                raise RankDied(self._cause(line, death))
            case answer:
                raise AssertionError(f"{type(answer).__name__} is no answer of a trainer rank")

    def _cause(self, line: UnitLine, death: Death) -> str:
        """Which rank died and how: the one that did not end by itself, if there is one."""
        limit = time.monotonic() + CAUSE_S
        while death.by_itself and time.monotonic() < limit:
            try:
                other = self._inbox.get(timeout=max(0.0, limit - time.monotonic()))
            except queue.Empty:
                break
            said = other.hear()
            if isinstance(said, Death) and not said.by_itself:
                line, death = other, said
        return f"rank {line.unit.index} of the learner's {len(self._lines)} {death.how}"
