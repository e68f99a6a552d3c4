"""Rules about evaluations and kept rollouts, over a whole run."""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from statistics import median_high

import numpy as np

from ablations.diagnosis.history import History, LogRow, answer_text
from ablations.diagnosis.second_opinion import audit_rollouts
from ablations.diagnosis.symptom import Symptom
from ablations.fit.curve import Curve
from ablations.fit.fall import find_fall
from scalerl.run.health import RECENT

FEWEST_ANSWERS = 8
"""Minimum number of kept answers to different prompts for the finding of one answer."""
ONE_ANSWER = 0.75
"""Share of these answers that have the same text."""

FEWEST_CONTRADICTED, CONTRADICTED = 3, 0.05
"""Answers on which the two readings must disagree before the verifier is doubted: minimum number, and share of those
judged twice."""


def one_answer(history: History) -> Symptom | None:
    """Evaluations, up to the last one, in which most held-out answers have one and the same text."""
    held = [row for row in history.rollouts if row.get("kind") == "held_out" and not row.get("truncated")]
    of_step: dict[int, list[LogRow]] = {}
    for row in held:
        of_step.setdefault(row["step"], []).append(row)
    steps = sorted(of_step)
    found: Symptom | None = None
    for at in range(len(steps) - 1, -1, -1):
        recent = [row for step in steps[max(0, at - 2) : at + 1] for row in of_step[step]]
        texts = Counter(answer_text(row) for row in {(row["prompt_id"], row["step"]): row for row in recent}.values())
        prompts = len({row["prompt_id"] for row in recent})
        text, count = texts.most_common(1)[0]
        is_enough = prompts >= FEWEST_ANSWERS // 2 and texts.total() >= FEWEST_ANSWERS
        if not text or not is_enough or count < ONE_ANSWER * texts.total():
            break
        found = Symptom(
            text=f"{count} of {texts.total()} kept answers to different prompts are the same: `{text[:40]}`",
            change="look at what the reward pays for; balance the right answers of the task",
            since=int(steps[at]),
        )
    return found


def contradicted(history: History) -> Symptom | None:
    """Kept answers that the verifier calls right and a second, independent reading wrong."""
    second = audit_rollouts(history.name, history.rollouts)
    paid = [one for one in second.disagreements if one.verdict == "right"]
    if len(paid) < FEWEST_CONTRADICTED or len(paid) < CONTRADICTED * second.num_judged:
        return None
    first = paid[0]
    text = (
        f"the verifier calls {len(paid)} of {second.num_judged} kept answers right that a second reading calls wrong, "
        f"such as `{first.stated[:40]}` for `{first.right_answer[:40]}`"
    )
    return Symptom(text=text, change="look at them with `platform audit`, then correct the task or its verifier")


NOISY_EVALUATION = 0.05
"""Standard error of one evaluation's pass rate above which only large differences show."""
FEWEST_RATES, MOST_ANSWERS = 4, 100
"""Minimum number of different pass rates needed to infer an unknown number of answers, and the largest number
inferred."""
WIDE_GAP = 0.2
"""Excess of the training pass rate over the held-out one; a curriculum that leaves out mastered prompts makes it
smaller."""
BY_HEART, FEWEST_EVALUATIONS = 0.4, 4
"""Minimum share of evaluations with such a gap, and minimum number of evaluations."""
HeldOutRule = Callable[[History], Symptom | None]


def standard_error(row: LogRow) -> float | None:
    """Standard error of an evaluation's pass rate, treating prompts as independent."""
    rate, prompts = row.get("pass_rate"), row.get("num_prompts")
    return None if rate is None or not prompts else math.sqrt(max(rate * (1 - rate), 1 / prompts / 4) / prompts)


def _held_out_fell(history: History) -> Symptom | None:
    """The test of `platform compare` on the evaluations of the log, tasks averaged; those of the last one's tasks."""
    by_step: dict[int, list[LogRow]] = {}
    for row in history.evaluations:
        if row.get("pass_rate") is not None:
            by_step.setdefault(int(row["step"]), []).append(row)
    if not by_step:
        return None
    tasks = {step: {row.get("task") for row in rows} for step, rows in by_step.items()}
    last_tasks = tasks[max(tasks)]
    steps = sorted(step for step in tasks if tasks[step] == last_tasks)
    counts = [sum(row.get("num_samples") or 0 for row in by_step[step]) for step in steps]
    scores = np.array([sum(row["pass_rate"] for row in by_step[step]) / len(by_step[step]) for step in steps])
    if not all(0 <= one <= 1 for one in scores):
        return None
    samples = np.array(counts, dtype=float) if all(counts) else None
    fall = find_fall(Curve(name=history.name, compute=np.array(steps, dtype=float), score=scores, samples=samples))
    if fall is None:
        return None
    since, last = steps[fall.peak], steps[fall.last]
    return Symptom(
        text=f"the held-out score fell from {scores[fall.peak]:.3f} at step {since:,} to {scores[fall.last]:.3f} at "
        f"step {last:,}: the model got worse",
        change="follow the findings below; without any, lower optimiser.learning_rate, and look at what the reward "
        "pays for",
        since=since,
    )


def _memorised(history: History) -> Symptom | None:
    """A training pass rate far above the held-out one, for most of the run: the prompts are learned by heart."""
    gaps = []
    in_steps = sorted(history.steps, key=_step)
    steps, rates = [*map(_step, in_steps)], [row.get("pass_rate") for row in in_steps]
    for row in history.evaluations:
        if row.get("pass_rate") is None:
            continue
        recent = rates[bisect_right(steps, row["step"] - RECENT) : bisect_right(steps, row["step"])]
        if known := [rate for rate in recent if rate is not None]:
            rate = sum(known) / len(known)
            gaps.append((rate - row["pass_rate"], rate, row))
    wide = [found for found in gaps if found[0] > WIDE_GAP]
    if len(gaps) < FEWEST_EVALUATIONS or len(wide) < BY_HEART * len(gaps):
        return None
    _, rate, row = wide[-1]
    text = (
        f"the pass rate is {rate:.2f} on training prompts and {row['pass_rate']:.2f} on held-out ones: learned by heart"
    )
    since = int(wide[0][2]["step"])
    return Symptom(text=text, change="use more training prompts, or a smaller budget", since=since)


def _step(row: LogRow) -> int:
    return row["step"]


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
    "held-out score fell": _held_out_fell,
    "verifier contradicted": contradicted,
    "one answer for everything": one_answer,
    "learned by heart": _memorised,
    "prompts run out": _prompts_run_out,
    "noisy evaluation": _noisy_evaluation,
}
