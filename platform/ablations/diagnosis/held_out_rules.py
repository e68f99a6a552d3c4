"""Rules about evaluations and kept rollouts, over a whole run."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median_high

from ablations.diagnosis.answer_rules import contradicted, one_answer
from ablations.diagnosis.history import History, LogRow
from ablations.diagnosis.symptom import Symptom
from scalerl.run.health import RECENT, column_mean

NOISY_EVALUATION = 0.05
"""Standard error of one evaluation's pass rate above which few differences show."""
FEWEST_RATES, MOST_ANSWERS = 4, 100
"""Minimum number of different pass rates from which the number of answers is inferred if unknown, and the largest
number inferred."""
WIDE_GAP = 0.2
"""Training pass rate above the held-out one; a curriculum that leaves out mastered prompts makes it smaller."""
BY_HEART, FEWEST_EVALUATIONS = 0.4, 4
"""Share of the evaluations with such a gap, and the fewest evaluations."""
HeldOutRule = Callable[[History], Symptom | None]


def standard_error(row: LogRow) -> float | None:
    """Standard error of an evaluation's pass rate, as of independent prompts."""
    rate, prompts = row.get("pass_rate"), row.get("num_prompts")
    return None if rate is None or not prompts else math.sqrt(max(rate * (1 - rate), 1 / prompts / 4) / prompts)


def _memorised(history: History) -> Symptom | None:
    """A training pass rate far above the held-out one, for most of the run: the prompts are learned by heart."""
    gaps = []
    for row in history.evaluations:
        before = [one for one in history.steps if row["step"] - RECENT < one["step"] <= row["step"]]
        if before and row.get("pass_rate") is not None and (rate := column_mean(before, "pass_rate")) is not None:
            gaps.append((rate - row["pass_rate"], rate, row))
    wide = [found for found in gaps if found[0] > WIDE_GAP]
    if len(gaps) < FEWEST_EVALUATIONS or len(wide) < BY_HEART * len(gaps):
        return None
    _, rate, row = wide[-1]
    text = f"training prompts are solved at {rate:.2f}, held-out ones at {row['pass_rate']:.2f}: learned by heart"
    since = int(wide[0][2]["step"])
    return Symptom(text=text, change="use more training prompts, or a smaller budget", since=since)


def _prompts_run_out(history: History) -> Symptom | None:
    """A run whose training prompts are all mastered and left out; it ended, or they all came back."""
    change = "use more or harder training prompts, or curriculum: {type: uniform}"
    if "training prompts are retired" in history.message:
        return Symptom(text=history.message.partition(":")[0], change=change)
    retired = [(int(row["retired"]), int(row["step"])) for row in history.steps if row.get("retired") is not None]
    for (before, _), (after, step) in pairwise(retired):
        if before > 0 and after == 0:
            text = f"all training prompts were mastered, and started again at step {step}"
            return Symptom(text=text, change=change, since=step)
    return None


def _answers_of(evaluations: Sequence[LogRow]) -> int | None:
    """The number of answers of an evaluation, if all pass rates are multiples of one over it; None if it is large."""
    rates = {row["pass_rate"] for row in evaluations if row.get("pass_rate") is not None}
    if len(rates) < FEWEST_RATES:
        return None
    return next((n for n in range(2, MOST_ANSWERS) if all(abs(n * one - round(n * one)) < 1e-4 for one in rates)), None)


def _noisy_evaluation(history: History) -> Symptom | None:
    prompts = history.evaluations[-1].get("num_prompts") if history.evaluations else None
    number = prompts or _answers_of(history.evaluations)
    errors = [
        error for row in history.evaluations if (error := standard_error({"num_prompts": number, **row})) is not None
    ]
    if not errors or (error := median_high(errors)) <= NOISY_EVALUATION:
        return None
    text = (
        f"one evaluation of {number} {'prompts' if prompts else 'answers'} has a standard error of {error:.3f}, so "
        f"differences below {2 * math.sqrt(2) * error:.2f} are noise"
    )
    return Symptom(text=text, change="hold out more prompts of the task, or raise evaluation.samples")


HELD_OUT_RULES: dict[str, HeldOutRule] = {
    "verifier contradicted": contradicted,
    "one answer for everything": one_answer,
    "learned by heart": _memorised,
    "prompts run out": _prompts_run_out,
    "noisy evaluation": _noisy_evaluation,
}
