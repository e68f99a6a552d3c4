"""Runs that were killed at random steps, one to three times, and resumed from random earlier ones.

Now and then one is resumed from the start, from its last step, or from a step with an evaluation. Every attempt
evaluates at steps of its own, some evaluate before they train, some log an evaluation late, and of some a late one
comes when the next attempt is under way. The curve that should be read is kept while the run is logged: what a resume
overwrites is taken out of it, and everything from the start if the run begins again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

GPUS, BEGAN, BETWEEN_S = 10, 1_700_000_000.0, 5_000.0
TIME, LOSS, SCORE = "perf/t", "loss", "val/acc"
Curve = list[tuple[float, float]]


@dataclass(frozen=True, kw_only=True)
class Event:
    """What one call logs: `Event(clock=1.7e9, step=5, values={"val/acc": 0.31}, attempt=0)`."""

    clock: float
    step: int
    values: Mapping[str, float]
    attempt: int


@dataclass(frozen=True, kw_only=True)
class ResumedRun:
    """A run as it was logged, and its curve without lost attempts."""

    events: Sequence[Event]
    resumed_from: Sequence[int]
    """The step of the checkpoint of each attempt after the first."""
    curve: Curve
    """Compute in GPU-hours, and score."""


@dataclass(kw_only=True)
class Kept:
    """What counts so far: the score and the time by step."""

    scores: dict[int, float] = field(default_factory=dict)
    times: dict[int, float] = field(default_factory=dict)

    def resume(self, step: int) -> None:
        """Forget what comes after a step; all if the run begins again."""
        for values in (self.scores, self.times):
            for one in [one for one in values if one > step or step == 0]:
                del values[one]

    def curve(self) -> Curve:
        return [
            (sum(time for at, time in self.times.items() if at <= step) * GPUS / 3600, score)
            for step, score in sorted(self.scores.items())
        ]


def resumed_run(rng: np.random.Generator, *, may_be_late: bool = True) -> ResumedRun:
    """A run with one to three resumes; `may_be_late` allows evaluations that are logged after later steps."""
    last, usual = int(rng.integers(30, 70)), int(rng.choice([3, 4, 5, 7, 10]))
    lag = int(rng.choice([0, 0, 1, 2, 3])) if may_be_late else 0
    is_together, is_before = bool(rng.random() < 0.3) and not lag, bool(rng.random() < 0.2)
    kept, events, resumed_from = Kept(), list[Event](), list[int]()
    clock, begin, overdue = BEGAN, 0, list[tuple[int, float]]()

    def log(step: int, values: dict[str, float], attempt: int) -> None:
        nonlocal clock
        clock += 0.5
        events.append(Event(clock=clock, step=step, values=values, attempt=attempt))
        if SCORE in values:
            kept.scores[step] = values[SCORE]
        if TIME in values:
            kept.times[step] = values[TIME]

    num_attempts = int(rng.integers(2, 5))
    for attempt in range(num_attempts):
        killed = last if attempt == num_attempts - 1 else int(rng.integers(begin + 1, last - 3 + attempt))
        every = usual if rng.random() < 0.6 else int(rng.integers(2, 11))
        origin = begin if rng.random() < 0.5 else 0
        waiting: list[tuple[int, float]] = []
        if rng.random() < 0.4:
            log(begin, {SCORE: score_of(begin, attempt)}, attempt)
        for step in range(begin + 1, killed + 1):
            training = {TIME: round(30 + 4 * attempt + rng.random(), 3), LOSS: round(float(rng.random()), 4)}
            is_scored = (step - origin) % every == 0
            scored = {SCORE: score_of(step, attempt)} if is_scored else {}
            if is_before and scored and not lag:
                log(step, scored, attempt)
                log(step, training, attempt)
            elif lag or not is_together:
                log(step, training, attempt)
                if scored:
                    waiting.append((step, scored[SCORE]))
            else:
                log(step, training | scored, attempt)
            while waiting and step - waiting[0][0] >= lag:
                at, score = waiting.pop(0)
                log(at, {SCORE: score}, attempt)
            if overdue and step == begin + 2:
                for at, score in overdue:  # the evaluator of the attempt before
                    clock += 0.5
                    events.append(Event(clock=clock, step=at, values={SCORE: score}, attempt=attempt))
                overdue = []
        if attempt == num_attempts - 1:
            for at, score in waiting:
                log(at, {SCORE: score}, attempt)
            break
        begin = next_begin(rng, killed, usual)
        resumed_from.append(begin)
        kept.resume(begin)
        overdue = [one for one in waiting if one[0] > begin + 3] if rng.random() < 0.5 else []
        clock += BETWEEN_S
    return ResumedRun(events=events, resumed_from=resumed_from, curve=kept.curve())


def next_begin(rng: np.random.Generator, killed: int, every: int) -> int:
    """The step of a checkpoint up to the one at which a run was killed."""
    kind = rng.random()
    if kind < 0.12:
        return 0
    if kind < 0.24:
        return killed - 1
    if kind < 0.5:
        return killed // every * every
    return int(rng.integers(0, killed + 1))


def score_of(step: int, attempt: int) -> float:
    """The score of an attempt, which no other attempt has."""
    return round(0.2 + 0.5 * step / (step + 40) + 0.01 * attempt, 4)
