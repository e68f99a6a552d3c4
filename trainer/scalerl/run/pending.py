"""Evaluations that are due and not in the run log yet, where an evaluator measures while training goes on.

Each has its weights in the run's folder `evaluations`, under its number. They are measured in order, and an evaluation
draws by its number, so its row is the one that measuring on the spot would have given. A checkpoint names those whose
rows it has not; the weights of an evaluation stay until the last checkpoint has its row, and so has the one before.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from scalerl.cluster.probe import refuse_to_disagree
from scalerl.errors import Interrupted
from scalerl.processes import WallCluster
from scalerl.processes.messages import Measure, MeasuredWeights, Refused
from scalerl.processes.remote_evaluator import RemoteEvaluator
from scalerl.run.checkpoint import damaged
from scalerl.run.metrics import Progress
from scalerl.weights.kept_folder import KeptStore

MOST_PENDING = 2
"""With more, training waits."""
MOST_PUBLISHED = 3
"""Times that the weights of one evaluation are published, where the evaluator refuses them."""


@dataclass(frozen=True, kw_only=True)
class Due:
    """`Due(index=12, reading=12, progress=Progress(step=300, ...), wall_s=812.4)`."""

    index: int
    """Points of the grid of compute before it."""
    reading: int
    """Evaluations before it."""
    progress: Progress
    """When it was due."""
    wall_s: float
    """When it was due."""


class PendingEvaluations:
    """Those of one attempt."""

    def __init__(self, cluster: WallCluster, evaluator: RemoteEvaluator, store: KeptStore) -> None:
        self._cluster, self._evaluator, self._store = cluster, evaluator, store
        self._due: deque[Due] = deque()
        self._saved: set[int] = set()
        """Numbers that the last checkpoint names."""
        self._resumed: frozenset[int] = frozenset()
        """Numbers that the checkpoint named which the run resumed from."""
        self._published = 0
        """Times that the weights of the first were published again."""

    def __len__(self) -> int:
        return len(self._due)

    def add(self, due: Due) -> None:
        """Publish the learner's present weights for an evaluation that is due now."""
        self._publish(due)
        self._due.append(due)
        self._ask()

    def take_measured(self) -> Iterator[tuple[Due, MeasuredWeights]]:
        """Those whose numbers have come since, in order. Interrupted where one cannot be measured any more, and
        CannotResume where that is so for one that was pending when the run resumed."""
        answer = self._evaluator.take()
        match answer:
            case MeasuredWeights():
                if answer.probe_gap is not None:
                    refuse_to_disagree(self._cluster.recipe, answer.probe_gap, self._due[0].progress.step)
                self._published = 0
                yield self._due.popleft(), answer
            case Refused():
                self._publish_again(answer)
        self._ask()

    def state_dict(self) -> list[dict[str, Any]]:
        """Plain values."""
        return [asdict(due) for due in self._due]

    def load_state_dict(self, state: list[dict[str, Any]]) -> None:
        """Measure what was pending in a checkpoint, from the start; what else lies in the folder is deleted."""
        self._due = deque(Due(**{**one, "progress": Progress(**one["progress"])}) for one in state)
        self._saved = {due.index for due in self._due}
        self._resumed = frozenset(self._saved)
        self._store.keep_only(self._saved)
        self._ask()

    def saved(self) -> None:
        """A checkpoint has been written: weights that neither it nor the one before names are deleted."""
        before, self._saved = self._saved, {due.index for due in self._due}
        self._store.keep_only(before | self._saved)

    def clear(self) -> None:
        """The run has ended, and nothing is pending: nothing is kept."""
        assert not self._due, "a run ends when all its evaluations are in the log"
        self._store.keep_only(())

    def _ask(self) -> None:
        """The evaluator measures one at a time."""
        if not self._due or not self._evaluator.is_free:
            return
        due, learner = self._due[0], self._cluster.learner
        probe = self._cluster.probe_of_present() if learner.version == due.progress.step else None
        self._evaluator.ask(Measure(publication=due.index, version=due.progress.step, reading=due.reading, probe=probe))

    def _publish(self, due: Due) -> None:
        self._store.begin(due.index)
        self._cluster.learner.publish(self._store, due.index)

    def _publish_again(self, refused: Refused) -> None:
        due = self._due[0]
        what = f"the weights of the evaluation at step {due.progress.step} cannot be measured: {refused.reason}"
        present = self._cluster.learner.version
        if present != due.progress.step and due.index in self._resumed:
            raise damaged([f"{what}; the learner is at step {present}"], self._store.folder.parent / "checkpoint")
        if present != due.progress.step:
            raise Interrupted(f"{what}; the learner is at step {present} and cannot publish them again")
        self._published += 1
        if self._published == MOST_PUBLISHED:
            raise Interrupted(f"{what}; they were published {MOST_PUBLISHED} times")
        self._cluster.news.append(f"{what}; they are published again")
        self._publish(due)
