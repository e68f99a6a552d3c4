"""The log of one run: its train rows, evaluations and kept rollouts, and windows of its steps."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from scalerl.run.health import EARLY, RECENT, SETTLED, column_mean
from scalerl.run.run_folder import RunFolder
from scalerl.run.run_log import log_fault, read_rows

LogRow = dict[str, Any]
FIRST_STEPS = 3
"""Steps whose score replaces the score before training, if that was not measured."""
CLEAR_FALL, FALL_OF_BEST = 0.08, 0.2
"""Fall of the score from its best window, absolute and as a share of the best."""
STAYS = 0.05
"""Largest difference between windows of a score that stays, with the noise of both."""
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
        """Why no rule about steps was asked; empty if they were."""
        if self.fault:
            return f"its log cannot be read ({self.fault})"
        least = 2 * RECENT
        return f"too few steps to judge them; rules need {least}" if len(self.steps) < least else ""

    @property
    def compute(self) -> float:
        """Compute of the run, in GPU-hours."""
        rows = [*self.steps, *self.evaluations]
        return max((row["compute_gpu_hours"] for row in rows if "compute_gpu_hours" in row), default=0.0)

    def share_since(self, step: int) -> float | None:
        """Share of the compute that was spent after this step; None if the log knows no compute."""
        before = [row["compute_gpu_hours"] for row in self.steps if row["step"] <= step and "compute_gpu_hours" in row]
        return 1 - before[-1] / self.compute if before and self.compute > 0 else None


@dataclass(frozen=True, kw_only=True)
class StepWindow:
    """The last steps up to some point, with everything before it to compare with."""

    steps: Sequence[LogRow]
    """All steps up to the end of the window."""
    best: float | None
    """Largest mean score over RECENT steps so far; at least the score before training."""
    held_out: tuple[float, ...] = ()
    """The held-out scores so far, from the one before training on; empty if that was not measured."""

    @property
    def early(self) -> Sequence[LogRow]:
        """The first EARLY steps, without recent ones."""
        return self.steps[: min(EARLY, len(self.steps) - RECENT)]

    @property
    def recent(self) -> Sequence[LogRow]:
        """The last RECENT steps."""
        return self.steps[-RECENT:]

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
        """Mean training score of the first steps, or of the first RECENT ones if that is larger."""
        first, settled = score_of(self.steps[:FIRST_STEPS]), self.score_before
        return first if settled is None else max(settled, first or 0.0)

    @property
    def score(self) -> float | None:
        """Mean training pass rate of the recent steps, or their mean reward."""
        return score_of(self.recent)

    @property
    def score_before(self) -> float | None:
        """The same of the first RECENT steps."""
        return score_of(self.early[:RECENT])

    @property
    def has_risen(self) -> bool:
        """True if the training score lies above that of the first steps by more than noise, or is not logged."""
        return self.score is None or self.start is None or self.score > self.start + STAYS

    @property
    def has_fallen(self) -> bool:
        """True if the training score has fallen, and the held-out score with it: a curriculum that leaves out mastered
        prompts lowers the first alone."""
        pairs = [(self.best, self.score)]
        if self.held_out:
            pairs.append((max(self.held_out), self.held_out[-1]))
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
    for end in ends:
        until = steps[end - 1]["step"]
        held_out = tuple(row["pass_rate"] for row in measured if row["step"] <= until) if untrained else ()
        yield StepWindow(steps=steps[:end], best=best[end], held_out=held_out)


def answer_text(row: LogRow) -> str:
    """The text of a kept answer."""
    return "".join(span.get("text", "") for span in row.get("answer", ())).strip()


def history_of_run(folder: RunFolder, name: str) -> History:
    """The log of the run so far; for a damaged log only its fault, so that one run hides no other."""
    try:
        rows, rollouts = list(read_rows(folder.metrics)), list(read_rows(folder.rollouts))
        if any(key not in row for row in rows for key in KEYS_OF_ROW):
            raise ValueError(f"{folder.metrics}: a row without {' or '.join(KEYS_OF_ROW)}")
        if fault := log_fault(folder.metrics, folder.checkpoint):
            raise ValueError(fault)
    except (ValueError, OSError) as error:
        return History(name=name, steps=(), fault=str(error))
    return History(
        name=name,
        steps=[row for row in rows if row["kind"] == "train"],
        evaluations=[row for row in rows if row["kind"] == "eval"],
        rollouts=rollouts,
        message=folder.read_status().message or "",
    )
