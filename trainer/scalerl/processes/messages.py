"""What the coordinator tells the process of a unit, and what that answers; pickled, in order, nothing is lost.

to a generator          NewRequests, NewWeights, Pause, Resume, HandOver, TakeOver
from a generator        Report, Refused, Paused, GeneratorState
to a trainer rank       Step, Publish, AwaitEvaluator, Pause, Resume, HandOver, TakeOver, WriteKept
from a trainer rank     Obeyed, first without an order, then one for each; CannotTrain instead if the run ends with it
to the evaluator        Measure, when it has answered the last
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
    """The rollouts of one group."""

    requests: list[Request]


@dataclass(frozen=True, kw_only=True)
class NewWeights:
    """Weights can be fetched; sent also to wake a generator that waits: `NewWeights(publication=7, version=6)`."""

    publication: int
    version: int
    probe: WeightProbe | None = None
    """What the learner makes of some tokens with these weights, for generators of another engine."""


@dataclass(frozen=True, kw_only=True)
class Pause:
    """Stop between two decode steps; the answer is Paused."""


@dataclass(frozen=True, kw_only=True)
class Resume:
    """Go on."""


@dataclass(frozen=True, kw_only=True)
class HandOver:
    """Tell your state; the answer is GeneratorState. Only while paused."""


@dataclass(frozen=True, kw_only=True)
class TakeOver:
    """Go on from this state. Only while paused."""

    state: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a generator did since its last report.

    Report(finished=[one], work=StepWork(sequences=128, prefill_tokens=6, prefill_context_tokens=21,
           context_tokens=1290), version=12, publication=12, first_waiting=331,
           seconds={"decode": 41.2, "sync": 0.3}, doing="decode")
    """

    finished: list[Finished]
    work: StepWork
    version: int
    """Weights it decodes with."""
    publication: int
    """The last it has taken."""
    first_waiting: int | None
    """Lowest number of a group none of whose rollouts has begun; it and all later ones will begin under `version` or
    newer weights. None if every group has begun."""
    seconds: dict[Activity, float]
    """How this process has spent its time since it was started, pauses left out."""
    doing: Activity
    """What it goes on with."""
    probe_gap: float | None = None
    """Nats between its log-probs and those of the probe that came with its last weights."""


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A publication cannot be used; the generator goes on with the weights it has."""

    publication: int
    reason: str


@dataclass(frozen=True, kw_only=True)
class Paused:
    """Nothing is decoded until Resume; also the first word of a new process."""


@dataclass(frozen=True, kw_only=True)
class GeneratorState:
    """All that the generator's next step depends on."""

    state: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Step:
    """Take an optimiser step on these groups, together with the other ranks."""

    groups: Sequence[Group]
    compute_gpu_hours: float | None


@dataclass(frozen=True, kw_only=True)
class Publish:
    """Publish your share of the present weights under this number; all ranks gather them."""

    publication: int
    is_to_measure: bool = False
    """Into the store of the evaluator, not that of the generators."""


@dataclass(frozen=True, kw_only=True)
class AwaitEvaluator:
    """From here to the next order training waits for the evaluator."""


@dataclass(frozen=True, kw_only=True)
class WriteKept:
    """Write what you keep of the learner into this folder; all ranks do. Only while paused."""

    folder: Path


@dataclass(frozen=True, kw_only=True)
class Obeyed:
    """An order is done: `Obeyed(seconds={"forward_backward": 3.1, "wait_rollouts": 0.2}, doing="wait_rollouts")`."""

    seconds: dict[Activity, float]
    """How this process has spent its time since it was started, pauses left out."""
    doing: Activity
    """What it goes on with."""
    update: Update | None = None
    """The first rank's, after a step."""
    state: dict[str, Any] | None = None
    """The first rank's, asked for by HandOver: what all of them have alike."""
    kept: list[Part] | None = None
    """The first rank's, after WriteKept: the files of all of them."""


@dataclass(frozen=True, kw_only=True)
class CannotTrain:
    """Training cannot begin on this machine, or cannot go on."""

    error: Rejected | Diverged


@dataclass(frozen=True, kw_only=True)
class Measure:
    """Measure a publication: `Measure(publication=12, version=300, reading=12)`."""

    publication: int
    """Numbered as the evaluations are: it decides what is drawn."""
    version: int
    reading: int
    """Evaluations taken before it: what is drawn for downstream files, and whether they are due."""
    probe: WeightProbe | None = None
    """As for a generator of another engine."""


@dataclass(frozen=True, kw_only=True)
class Measuring:
    """The evaluator is at work: `Measuring(doing="decodes")`."""

    doing: Literal["decodes", "judges"]


@dataclass(frozen=True, kw_only=True)
class MeasuredWeights:
    """What was found: `MeasuredWeights(publication=12, held_out=[{"pass_rate": .48}], seconds={"evaluate": 9.0})`."""

    publication: int
    held_out: list[dict[str, Any]]
    downstream: list[dict[str, Any]]
    seconds: dict[Activity, float]
    """That this evaluation took."""
    probe_gap: float | None = None
    """Nats between its log-probs and those of the probe."""
    rollouts: list[dict[str, Any]] = field(default_factory=list)
    """Some of those of the held-out prompts, for people to read."""


@dataclass(frozen=True, kw_only=True)
class CannotMeasure:
    """No evaluation can be taken, for this reason, which is the verifier's."""

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


def to_bytes(message: Order | Reply) -> bytes:
    """For `Connection.send_bytes`: its own `send` would pass tensors as files, one a tensor."""
    return pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)


def from_bytes(content: bytes) -> Any:
    """The message."""
    return pickle.loads(content)
