"""The log of one run: its train rows, evaluations and kept rollouts, and windows of its steps."""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, pairwise
from typing import Any, TypeVar

from scalerl.run.health import EARLY, RECENT, SETTLED, column_mean
from scalerl.run.run_folder import RunFolder
from scalerl.run.run_log import log_fault, read_rows

LogRow = dict[str, Any]
FIRST_STEPS = 3
"""Number of first steps whose score replaces the score before training, if that was not measured."""
CLEAR_FALL, FALL_OF_BEST = 0.08, 0.2
"""Fall of the score from its best window, absolute and as a share of the best."""
STAYS = 0.05
"""Largest difference between two windows, noise included, at which a score counts as unchanged."""
LAST_SCORES = 3
"""Number of latest held-out scores whose mean is taken as the current score."""
STRIDE = 5
"""Steps between windows."""
KEYS_OF_ROW = ("kind", "step")


@dataclass(frozen=True, kw_only=True)
class History:
    """Log of a run: `History(name="dapo-s1", steps=[...], evaluations=[...], rollouts=[...])`."""

    name: str
    steps: Sequence[LogRow]
    """Train rows, in order."""
    evaluations: Sequence[LogRow] = ()
    """Rows of kind `eval`, in order."""
    rollouts: Sequence[LogRow] = ()
    """Rows of rollouts.jsonl, in order."""
    message: str = ""
    """The last message of the run."""
    fault: str = ""
    """Why the log cannot be read; empty if it can."""

    @property
    def unjudged(self) -> str:
        """Why the rules about steps were not applied; empty if they were."""
        if self.fault:
            return f"its log cannot be read ({self.fault})"
        least = 2 * RECENT
        return f"too few steps to judge them; rules need {least}" if len(self.steps) < least else ""

    @cached_property
    def compute(self) -> float:
        """Compute of the run, in GPU-hours."""
        rows = chain(self.steps, self.evaluations)
        return max((row["compute_gpu_hours"] for row in rows if "compute_gpu_hours" in row), default=0.0)

    def share_since(self, step: int) -> float | None:
        """Share of the compute that was spent after this step; None if the log knows no compute."""
        before = [row["compute_gpu_hours"] for row in self.steps if row["step"] <= step and "compute_gpu_hours" in row]
        return 1 - before[-1] / self.compute if before and self.compute > 0 else None


RunningValue = TypeVar("RunningValue")
Running = Callable[[Sequence[LogRow]], Sequence[RunningValue]]
"""Computes a figure about the steps so far, at every step."""


class Course:
    """The steps of a run, with figures that cover all steps up to each one."""

    def __init__(self, steps: Sequence[LogRow]) -> None:
        self.steps = steps
        self._found: dict[Running[Any], Sequence[Any]] = {}

    def of(self, running: Running[RunningValue]) -> Sequence[RunningValue]:
        """A figure at every step, computed once."""
        if running not in self._found:
            self._found[running] = running(self.steps)
        return self._found[running]


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """The held-out scores so far: `HeldOut(first=0.31, last=(0.44, 0.46), newest=0.46, best=0.46, ...)`."""

    first: float
    last: tuple[float, ...]
    """The last LAST_SCORES after the first."""
    newest: float
    best: float
    before_training: bool
    """True if the first score was measured before training."""


@dataclass(frozen=True, kw_only=True)
class StepWindow:
    """The last steps up to some point, with everything before it to compare with."""

    course: "Course"
    """The run of the window."""
    end: int
    """Number of steps up to the end of the window."""
    best: float | None
    """Largest mean score over RECENT steps so far; at least the score before training."""
    held_out: "HeldOut | None" = None
    """The held-out scores so far, if any."""

    def so_far(self, running: "Running[RunningValue]") -> RunningValue:
        """A figure about all steps up to the end of the window."""
        return self.course.of(running)[self.end - 1]

    @property
    def early(self) -> Sequence[LogRow]:
        """The first EARLY steps, without recent ones."""
        return self.course.steps[: min(EARLY, self.end - RECENT)]

    @property
    def recent(self) -> Sequence[LogRow]:
        """The last RECENT steps."""
        return self.course.steps[self.end - RECENT : self.end]

    def now(self, column: str) -> float | None:
        """Mean of a column over the recent steps."""
        return column_mean(self.recent, column)

    def before(self, column: str) -> float | None:
        """Mean of a column over the first SETTLED steps."""
        return column_mean(self.early[:SETTLED], column)

    def change(self, column: str) -> tuple[float, float] | None:
        """Means of a column before and now; None if either is not logged."""
        before, now = self.before(column), self.now(column)
        return None if before is None or now is None else (before, now)

    @property
    def start(self) -> float | None:
        """Mean training reward of the first steps, or of the first RECENT ones if that is larger."""
        first, settled = score_of(self.course.steps[:FIRST_STEPS]), self.score_before
        return first if settled is None else max(settled, first or 0.0)

    @property
    def score(self) -> float | None:
        """Mean training pass rate of the recent steps, or their mean reward."""
        return score_of(self.recent)

    @property
    def score_before(self) -> float | None:
        """Mean training pass rate of the first RECENT steps, or their mean reward."""
        return score_of(self.early[:RECENT])

    @property
    def has_risen(self) -> bool:
        """True if the held-out score or the training reward lies above its start by more than noise, or the training
        reward is not logged."""
        if (held_out := self.held_out_change) is not None and held_out[1] > held_out[0] + STAYS:
            return True
        return self.score is None or self.start is None or self.score > self.start + STAYS

    @property
    def held_out_change(self) -> tuple[float, float] | None:
        """The first held-out score, and the mean of the last ones; None with fewer than two."""
        if self.held_out is None or not self.held_out.last:
            return None
        return self.held_out.first, sum(self.held_out.last) / len(self.held_out.last)

    @property
    def has_fallen(self) -> bool:
        """True if the training reward has fallen, and the held-out score with it: a curriculum that leaves out mastered
        prompts lowers only the training reward."""
        pairs = [(self.best, self.score)]
        if self.held_out is not None and self.held_out.before_training:
            pairs.append((self.held_out.best, self.held_out.newest))
        return all(
            best is not None and now is not None and best - now > max(CLEAR_FALL, FALL_OF_BEST * abs(best))
            for best, now in pairs
        )


def score_of(rows: Sequence[LogRow]) -> float | None:
    """Mean training pass rate of the rows, or their mean reward if no pass rate is logged."""
    rate = column_mean(rows, "pass_rate")
    return column_mean(rows, "reward_mean") if rate is None else rate


def windows(history: History) -> Iterator[StepWindow]:
    """The windows of a run, the newest first; none if it has fewer than two windows' worth of steps."""
    steps = history.steps
    ends = range(len(steps), 2 * RECENT - 1, -STRIDE)
    best: dict[int, float | None] = {}
    measured = [row for row in history.evaluations if row.get("pass_rate") is not None]
    untrained = [row["pass_rate"] for row in measured[:1] if row["step"] == 0]
    so_far: float | None = untrained[0] if untrained else score_of(steps[:FIRST_STEPS])
    for end in reversed(ends):
        if (score := score_of(steps[end - RECENT : end])) is not None:
            so_far = score if so_far is None else max(so_far, score)
        best[end] = so_far
    course, scores = Course(steps), [row["pass_rate"] for row in measured]
    at, bests = [row["step"] for row in measured], [*accumulate(scores, max)]
    is_in_order = all(before <= after for before, after in pairwise(at))
    for end in ends:
        until, held_out = steps[end - 1]["step"], None
        if is_in_order:
            num = bisect_right(at, until)
        else:
            scores = [row["pass_rate"] for row in measured if row["step"] <= until]
            num, bests = len(scores), [*accumulate(scores, max)]
        if num:
            held_out = HeldOut(
                first=scores[0],
                last=tuple(scores[max(1, num - LAST_SCORES) : num]),
                newest=scores[num - 1],
                best=bests[num - 1],
                before_training=bool(untrained),
            )
        yield StepWindow(course=course, end=end, best=best[end], held_out=held_out)


def answer_text(row: LogRow) -> str:
    """The text of a kept answer; of an episode those of its turns, one a line."""
    answers = (turn.get("answer", ()) for turn in turns_of(row))
    return "\n".join("".join(span.get("text", "") for span in answer).strip() for answer in answers)


def turns_of(row: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The turns of a kept episode; a kept answer is its own only turn."""
    return row.get("turns", [row])


def history_of_run(folder: RunFolder, name: str) -> History:
    """The log of the run so far; for a damaged log only its fault, so that one run does not hide the others."""
    rows: dict[str, list[LogRow]] = {"train": [], "eval": []}
    is_whole = True
    try:
        for row in read_rows(folder.metrics):
            row.pop("prompt_counts", None)  # the answers to every prompt, longer than all else in a row
            is_whole = is_whole and all(key in row for key in KEYS_OF_ROW)
            rows.get(row.get("kind", ""), []).append(row)
        rollouts = list(read_rows(folder.rollouts))
        if not is_whole:
            raise ValueError(f"{folder.metrics}: a row without {' or '.join(KEYS_OF_ROW)}")
        if fault := log_fault(folder.metrics, folder.checkpoint):
            raise ValueError(fault)
    except (ValueError, OSError) as error:
        return History(name=name, steps=(), fault=str(error))
    return History(
        name=name,
        steps=rows["train"],
        evaluations=rows["eval"],
        rollouts=rollouts,
        message=folder.read_status().message or "",
    )
