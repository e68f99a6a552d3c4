"""Rules about what a library did behind a run and only its log shows, over a whole run.

Each was checked against logs that the library wrote: TRL 1.16.0, transformers 5.19.0, DeepSpeed 0.19.8, wandb 0.31.0,
tensorboard 2.21.0.
"""

import sys
from collections.abc import Sequence
from itertools import accumulate, pairwise

from ablations.diagnosis.held_out_rules import HeldOutRule
from ablations.diagnosis.history import History, LogRow
from ablations.diagnosis.symptom import Symptom
from ablations.text import counted
from scalerl.run.health import RECENT

UNMOVED_CLIPPED, FEWEST_PASSES = 0.05, 3
"""Share of the ratios that is clipped before a step has moved the policy, and minimum number of such passes."""
LEAST_JUMP, STEEPER = 0.02, 5.0
"""Jump of the learning rate as a share of the highest, and of one downwards as a multiple of the changes beside it."""
RESTART = 0.999
"""Share of the highest rate at which a rate that rises at once begins a cycle again, as schedules with restarts do."""
FEWEST_OVERWRITTEN = 3
"""Minimum number of lost rows; a resume may log one step again."""
STEPS_NAMED = 3
"""Steps in a finding."""


def not_a_number(history: History) -> Symptom | None:
    """Losses, gradients or entropies that were NaN, or infinite; of gradients, overflows of FP16 at the start are
    usual."""
    rows = [row for row in history.steps if row.get("not_finite")]
    names = sorted({name for row in rows for name in row["not_finite"]})
    is_last = bool(rows) and rows[-1] is history.steps[-1]
    if not rows or (names == ["grad_norm"] and not is_last and rows[-1]["step"] <= RECENT):
        return None
    after = "at the last step too, so the weights may be NaN" if is_last else "not later, so the last value hides it"
    return Symptom(
        text=f"{' and '.join(names)} {'was' if len(names) == 1 else 'were'} NaN or infinite at "
        f"{counted(len(rows), 'step')}, {after}; transformers logs 0 or a mean for a loss that is NaN",
        change="look at the batch of the first such step, set logging_nan_inf_filter: false, and compare only what "
        "comes before it",
        since=int(rows[0]["step"]),
    )


def clipped_before_a_step(history: History) -> Symptom | None:
    """Ratios that are clipped in the first pass over new rollouts, whose weights are those that generated."""
    rows = [row for row in history.steps if row.get("ratio_clipped_unmoved") is not None]
    share = sum(row["ratio_clipped_unmoved"] for row in rows) / max(1, len(rows))
    if len(rows) < FEWEST_PASSES or share <= UNMOVED_CLIPPED:
        return None
    return Symptom(
        text=f"{share:.0%} of the ratios were clipped in the first pass over new rollouts, before a step had moved the "
        "policy: dropout, or another rounding, makes the ratios",
        change="set lora_dropout and the model's dropout to 0, or take one step on each generation",
        since=int(rows[0]["step"]),
    )


def rate_jumps(history: History) -> Symptom | None:
    """A learning rate that leaves the course of its schedule, as after a resume with another number of steps."""
    rows = [row for row in history.steps if row.get("learning_rate") is not None]
    at, rates = ([row[name] for row in rows] for name in ("step", "learning_rate"))
    slopes = _slopes(rows, "step")
    by_compute = _slopes(rows, "compute_gpu_hours")  # the schedule's progress may be compute
    highest = [*accumulate(rates, max)]
    for place in range(1, len(slopes) - 1):
        before, slope, after = slopes[place - 1 : place + 2]
        rate, now = rates[place : place + 2]
        # A cycle that begins again may have begun between two rows.
        began_at = now - after * (at[place + 1] - at[place])
        is_up = before < 0 < slope and after <= 0 and began_at < RESTART * highest[place]
        is_down = (
            before < 0
            and after < 0
            and all(each[place] < STEEPER * min(each[place - 1], each[place + 1]) for each in (slopes, by_compute))
        )
        if (is_up or is_down) and abs(now - rate) > LEAST_JUMP * highest[place]:
            return Symptom(
                text=f"the learning rate went from {rate:.3g} at step {at[place]:,} to {now:.3g} at step "
                f"{at[place + 1]:,}, off the course of its schedule: a resume with another number of steps does this",
                change="train again in one piece, or resume with the max_steps of the first start; transformers takes "
                "a new one in a resumed run, and ignores a new learning rate",
                since=int(at[place + 1]),
            )
    return None


def _slopes(rows: Sequence[LogRow], progress: str) -> list[float]:
    """Change of the learning rate from each row to the next, by the progress between them."""
    return [
        (row["learning_rate"] - before["learning_rate"])
        / max(sys.float_info.epsilon, row.get(progress, row["step"]) - before.get(progress, before["step"]))
        for before, row in pairwise(rows)
    ]


def rate_zero(history: History) -> Symptom | None:
    """Logged steps one after another at a learning rate of 0; schedules begin, end or turn with a single one."""
    rows = [row for row in history.steps if row.get("learning_rate") is not None]
    is_zero = [row["learning_rate"] == 0 for row in rows]
    pairs = [row for row, *both in zip(rows[1:], is_zero, is_zero[1:], strict=False) if all(both)]
    if not pairs or all(is_zero):
        return None
    return Symptom(
        text=f"{sum(is_zero)} of {len(rows):,} logged steps had a learning rate of 0, up to step "
        f"{pairs[-1]['step']:,}: they spent compute and changed no weight",
        change="compare by steps of a rate above 0; DeepSpeed's warm-up from 0 begins with two such steps "
        "(warmup_min_lr), and others follow where training goes on after its schedule's end",
    )


def rows_overwritten(history: History) -> Symptom | None:
    """Rows of training of which another call or process has written over the values."""
    rows = [row for row in history.steps if row.get("overwritten")]
    if (number := sum(row["overwritten"] for row in rows)) < FEWEST_OVERWRITTEN:
        return None
    return Symptom(
        text=f"{number} rows of training are overwritten or lost, at or just before steps {_first(rows)}",
        change="log from one process, and give every call of wandb.log its step: a call without one fills or ends the "
        "row of the call before, and W&B drops what comes later for that step",
    )


def off_page(history: History) -> Symptom | None:
    """Evaluations that TensorBoard's page does not show although the file has them."""
    if not (hidden := [row for row in history.evaluations if row.get("off_page")]):
        return None
    return Symptom(
        text=f"TensorBoard's page hides {len(hidden)} of {len(history.evaluations)} evaluations, which the file has "
        f"and which count here: of steps {_first(hidden)}",
        change="log evaluations in the order of their steps, and read no curve off the page",
    )


def _first(rows: Sequence[LogRow]) -> str:
    return ", ".join(f"{row['step']:,}" for row in rows[:STEPS_NAMED]) + " ..." * (len(rows) > STEPS_NAMED)


LIBRARY_RULES: dict[str, HeldOutRule] = {
    "not a number": not_a_number,
    "clipped before a step": clipped_before_a_step,
    "rate jumps": rate_jumps,
    "steps at rate 0": rate_zero,
    "rows overwritten": rows_overwritten,
    "evaluations off the page": off_page,
}
