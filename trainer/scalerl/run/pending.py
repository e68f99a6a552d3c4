"""Evaluations that are due but not in the run log yet; the evaluator measures them while training continues.

The weights of each lie in the run's folder `evaluations`, under the evaluation's number. Evaluations are measured in
order, and the number decides what is sampled, so each row equals that of an immediate evaluation. A checkpoint names
the evaluations whose rows it lacks. Their weights are deleted only when the last two checkpoints both have the row.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from scalerl.cluster.engine_agreement import refuse_to_disagree
from scalerl.errors import Interrupted
from scalerl.processes.messages import Measure, MeasuredWeights, Refused
from scalerl.processes.process_cluster import WallCluster
from scalerl.processes.remote_evaluator import RemoteEvaluator
from scalerl.run.checkpoint import damaged
from scalerl.run.run_log import Progress
from scalerl.weights.folder import KeptStore

MOST_PENDING = 2
"""Number of pending evaluations beyond which training waits."""
MOST_PUBLISHED = 3
"""Number of times that the weights of one evaluation are published if the evaluator rejects them."""


@dataclass(frozen=True, kw_only=True)
class Due:
    """An evaluation that is due: `Due(index=12, reading=12, progress=Progress(step=300, ...), wall_s=812.4)`."""

    index: int
    """Number of earlier points on the compute grid."""
    reading: int
    """Number of earlier evaluations."""
    progress: Progress
    """Progress of the run when the evaluation was due."""
    wall_s: float
    """Wall-clock seconds of the run when the evaluation was due."""


class PendingEvaluations:
    """Pending evaluations of one attempt."""

    def __init__(self, cluster: WallCluster, evaluator: RemoteEvaluator, store: KeptStore) -> None:
        self._cluster, self._evaluator, self._store = cluster, evaluator, store
        self._due: deque[Due] = deque()
        self._saved: set[int] = set()
        """Numbers named by the last checkpoint."""
        self._resumed: frozenset[int] = frozenset()
        """Numbers named by the checkpoint that the run resumed from."""
        self._published = 0
        """Number of times that the first evaluation's weights were published again."""

    def __len__(self) -> int:
        return len(self._due)

    def add(self, due: Due) -> None:
        """Publish the learner's current weights for an evaluation that is due now."""
        self._publish(due)
        self._due.append(due)
        self._ask()

    def take_measured(self) -> Iterator[tuple[Due, MeasuredWeights]]:
        """Evaluations that have finished since the last call, in order. Raises Interrupted if one can no longer be
        measured, or CannotResume if
        that one was already pending when the run resumed."""
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
        """The pending evaluations as plain values."""
        return [asdict(due) for due in self._due]

    def load_state_dict(self, state: list[dict[str, Any]]) -> None:
        """Restart the evaluations pending in a checkpoint; everything else in the folder is deleted."""
        self._due = deque(Due(**{**one, "progress": Progress(**one["progress"])}) for one in state)
        self._saved = {due.index for due in self._due}
        self._resumed = frozenset(self._saved)
        self._store.keep_only(self._saved)
        self._ask()

    def saved(self) -> None:
        """Note a new checkpoint: delete weights that neither it nor the previous one refers to."""
        before, self._saved = self._saved, {due.index for due in self._due}
        self._store.keep_only(before | self._saved)

    def clear(self) -> None:
        """Delete all weights once the run has ended and nothing is pending."""
        assert not self._due, "a run ends when all its evaluations are in the log"
        self._store.keep_only(())

    def _ask(self) -> None:
        """Ask for the first pending evaluation if the evaluator is free; it measures one at a time."""
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
        self._cluster.news.append(f"{what}. Publishing them again")
        self._publish(due)
