"""Messages between the coordinator, the processes of units and the agents of nodes: pickled, in order, none lost.

to a generator          NewRequests, NewWeights, Pause, Resume, HandOver, TakeOver
from a generator        Report, Refused, Paused, GeneratorState
to a trainer rank       Step, Publish, Book, HandOver, TakeOver, WriteKept
from a trainer rank     Obeyed, once at the start and once per order; CannotTrain instead if it ends the run
to the evaluator        Measure, once the last has been answered
from the evaluator      Paused, then for each order signs of life, Measuring, and one of MeasuredWeights, Refused and
                        CannotMeasure
from an agent           Hello, Started, Exited, Took
to an agent             StartUnit, EndUnit, TakeShare, Leave
from what it starts     Called, which is answered with the work
from a keeper           Share, which is answered with its bytes
"""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from scalerl.cluster.device_seconds import Activity
from scalerl.cluster.engine_agreement import WeightProbe
from scalerl.durable import Part
from scalerl.errors import Diverged
from scalerl.evaluation.measured_rows import MeasuredRows
from scalerl.generator.request import Finished, Request, StepWork
from scalerl.learner.learner import Update
from scalerl.model.device import Rejected
from scalerl.processes.time_sheet import Pastime
from scalerl.rollout import Group
from scalerl.weights.keeper import TakeShare, Took
from scalerl.weights.node_memory import Share


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
    """Order to publish this rank's share of the current weights under this number; all ranks gather them."""

    publication: int
    is_to_measure: bool = False
    """True for the evaluator's store, False for that of the generators."""


@dataclass(frozen=True, kw_only=True)
class Book:
    """Order to a trainer rank to book its time, until the next order, as `Book(activity="wait_evaluator")`."""

    activity: Pastime
    """`off` while the clock stands still."""


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
class MeasuredWeights(MeasuredRows):
    """Result: `MeasuredWeights(publication=12, held_out=[{"pass_rate": .48}], seconds={"evaluate": 9.0}, ...)`."""

    publication: int
    seconds: dict[Activity, float]
    """Time spent on this evaluation."""
    probe_gap: float | None = None
    """Gap in nats between the evaluator's log-probs and those of the probe."""


@dataclass(frozen=True, kw_only=True)
class CannotMeasure:
    """Notice that no evaluation is possible, with the verifier's reason."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class Hello:
    """First message of an agent: `Hello(node=1, name="n2", devices=8, host="10.0.0.11", process_id=4711)`."""

    node: int
    """Number of the node, from 1; the coordinator is on node 0."""
    name: str
    """Name of the node, for messages."""
    devices: int
    """Number of GPUs available to the agent; 0 if processes compute on the CPU."""
    host: str
    """Host under which the agent found the coordinator."""
    process_id: int
    address: str
    port: int
    """Address and port on which other keepers reach the agent's."""


@dataclass(frozen=True, kw_only=True)
class StartUnit:
    """Order to start a process: `StartUnit(ticket="generator 3 (1)", devices=(6, 7))`."""

    ticket: str
    """Unique name of the process, never used twice."""
    devices: tuple[int, ...]
    """GPUs of the node, from 0; the process sees no others."""


@dataclass(frozen=True, kw_only=True)
class EndUnit:
    """Order to kill a process and all that it has started."""

    ticket: str


@dataclass(frozen=True, kw_only=True)
class Leave:
    """Order to end all started processes and then the agent: the attempt is over."""


@dataclass(frozen=True, kw_only=True)
class Started:
    """Report that the process is running."""

    ticket: str
    process_id: int


@dataclass(frozen=True, kw_only=True)
class Exited:
    """Report that the process and all that it had started are gone."""

    ticket: str
    code: int
    """Exit code; negative for a signal."""


@dataclass(frozen=True, kw_only=True)
class Called:
    """First message of a process."""

    ticket: str


Order = NewRequests | NewWeights | Pause | Resume | HandOver | TakeOver | Step | Publish | Book | Measure | WriteKept
OfTrainer = Obeyed | CannotTrain
OfEvaluator = Measuring | MeasuredWeights | CannotMeasure
ProcessReply = Report | Refused | Paused | GeneratorState | OfTrainer | OfEvaluator

ToAgent = StartUnit | EndUnit | TakeShare | Leave
FromAgent = Started | Exited | Took
FirstWord = Hello | Called | Share
MOST_MESSAGE_BYTES = 1 << 16
"""Size limit of messages from and to agents; the work of a process has no such limit."""


def to_bytes(message: object) -> bytes:
    """Encode a message for `Connection.send_bytes`; `Connection.send` would pass each tensor as a file."""
    return pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)


def from_bytes(content: bytes) -> Any:
    """Decode a message."""
    return pickle.loads(content)
