"""Messages between the coordinator and the process of a unit: pickled, in order, none lost.

to a generator          NewRequests, NewWeights, Pause, Resume, HandOver, TakeOver
from a generator        Report, Refused, Paused, GeneratorState
to a trainer rank       Step, Publish, AwaitEvaluator, Pause, Resume, HandOver, TakeOver, WriteKept
from a trainer rank     Obeyed, once at the start and once per order; CannotTrain instead if it ends the run
to the evaluator        Measure, once the last has been answered
from the evaluator      Paused, then for each order signs of life, Measuring, and one of MeasuredWeights, Refused and
                        CannotMeasure
"""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from scalerl.cluster.device_seconds import Activity
from scalerl.cluster.probe import WeightProbe
from scalerl.durable import Part
from scalerl.generator.request import Finished, Request, StepWork
from scalerl.learner.learner import Diverged, Update
from scalerl.model.device import Rejected
from scalerl.rollout import Group


@dataclass(frozen=True, kw_only=True)
class NewRequests:
    """Request for the rollouts of one group."""

    requests: list[Request]


@dataclass(frozen=True, kw_only=True)
class NewWeights:
    """Notice of weights to fetch, also sent to wake a waiting generator: `NewWeights(publication=7, version=6)`."""

    publication: int
    version: int
    probe: WeightProbe | None = None
    """The learner's log-probs of some tokens under these weights, for generators of another engine."""


@dataclass(frozen=True, kw_only=True)
class Pause:
    """Order to stop between two decode steps; answered by Paused."""


@dataclass(frozen=True, kw_only=True)
class Resume:
    """Order to continue."""


@dataclass(frozen=True, kw_only=True)
class HandOver:
    """Order to send the state, only while paused; answered by GeneratorState."""


@dataclass(frozen=True, kw_only=True)
class TakeOver:
    """Order to continue from this state, only while paused."""

    state: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Report:
    """A generator's results since its last report.

    Report(finished=[one], work=StepWork(sequences=128, prefill_tokens=6, prefill_context_tokens=21,
           context_tokens=1290), version=12, publication=12, first_waiting=331,
           seconds={"decode": 41.2, "sync": 0.3}, doing="decode")
    """

    finished: list[Finished]
    work: StepWork
    version: int
    """Version of the weights in use."""
    publication: int
    """Last publication taken."""
    first_waiting: int | None
    """Lowest number of a group with no rollout begun; None if every group has begun. This group and all later ones will
    begin under `version` or newer weights."""
    seconds: dict[Activity, float]
    """Time spent by this process since its start, without pauses."""
    doing: Activity
    """Activity that continues after the report."""
    probe_gap: float | None = None
    """Gap in nats between the generator's log-probs and those of the probe that came with its last weights."""


@dataclass(frozen=True, kw_only=True)
class Refused:
    """Rejection of an unusable publication; the sender keeps the weights it has."""

    publication: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Paused:
    """Notice that nothing is decoded until Resume; also the first message of a new process."""


@dataclass(frozen=True, kw_only=True)
class GeneratorState:
    """Everything that the generator's next step depends on."""

    state: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Step:
    """Order to take an optimiser step on these groups, together with the other ranks."""

    groups: Sequence[Group]
    compute_gpu_hours: float | None


@dataclass(frozen=True, kw_only=True)
class Publish:
    """Order to publish this rank's share of the present weights under this number; all ranks gather them."""

    publication: int
    is_to_measure: bool = False
    """True for the evaluator's store, False for that of the generators."""


@dataclass(frozen=True, kw_only=True)
class AwaitEvaluator:
    """Notice that training waits for the evaluator until the next order."""


@dataclass(frozen=True, kw_only=True)
class WriteKept:
    """Order to write this rank's learner state into the folder; sent to all ranks, only while paused."""

    folder: Path


@dataclass(frozen=True, kw_only=True)
class Obeyed:
    """Order completed: `Obeyed(seconds={"forward_backward": 3.1, "wait_rollouts": 0.2}, doing="wait_rollouts")`."""

    seconds: dict[Activity, float]
    """Time spent by this process since its start, without pauses."""
    doing: Activity
    """Activity that continues after the order."""
    update: Update | None = None
    """Update after a step, from the first rank only."""
    state: dict[str, Any] | None = None
    """State common to all ranks after HandOver, from the first rank only."""
    kept: list[Part] | None = None
    """Files of all ranks after WriteKept, from the first rank only."""


@dataclass(frozen=True, kw_only=True)
class CannotTrain:
    """Notice that training cannot begin, or cannot continue, on this machine."""

    error: Rejected | Diverged


@dataclass(frozen=True, kw_only=True)
class Measure:
    """Order to measure a publication: `Measure(publication=12, version=300, reading=12)`."""

    publication: int
    """Number of the evaluation, which decides what is sampled."""
    version: int
    reading: int
    """Number of earlier evaluations, which decides if downstream files are due and what is sampled for them."""
    probe: WeightProbe | None = None
    """Probe as in `NewWeights`, for an evaluator with another engine."""


@dataclass(frozen=True, kw_only=True)
class Measuring:
    """Notice of the evaluator's current activity: `Measuring(doing="decodes")`."""

    doing: Literal["decodes", "judges"]


@dataclass(frozen=True, kw_only=True)
class MeasuredWeights:
    """Result: `MeasuredWeights(publication=12, held_out=[{"pass_rate": .48}], seconds={"evaluate": 9.0})`."""

    publication: int
    held_out: list[dict[str, Any]]
    downstream: list[dict[str, Any]]
    seconds: dict[Activity, float]
    """Time spent on this evaluation."""
    probe_gap: float | None = None
    """Gap in nats between the evaluator's log-probs and those of the probe."""
    rollouts: list[dict[str, Any]] = field(default_factory=list)
    """Sample rollouts of the held-out prompts, for people to read."""


@dataclass(frozen=True, kw_only=True)
class CannotMeasure:
    """Notice that no evaluation is possible, with the verifier's reason."""

    reason: str


Order = (
    NewRequests
    | NewWeights
    | Pause
    | Resume
    | HandOver
    | TakeOver
    | Step
    | Publish
    | AwaitEvaluator
    | Measure
    | WriteKept
)
Reply = Report | Refused | Paused | GeneratorState | Obeyed | CannotTrain | Measuring | MeasuredWeights | CannotMeasure


def to_bytes(message: object) -> bytes:
    """Encode a message for `Connection.send_bytes`; `Connection.send` would pass each tensor as a file."""
    return pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)


def from_bytes(content: bytes) -> Any:
    """Decode a message."""
    return pickle.loads(content)
