"""The --budget option: `2` in the scale's unit, `160h` in device-hours, `2x` twice the file's budget."""

import math
import re
from dataclasses import dataclass

from ablations.cli.output import ask
from ablations.errors import AblationsError
from ablations.home.plan import Plan
from ablations.study.expand import Study
from ablations.text import counted, four_digits

BUDGET_PATTERN = re.compile(r"(?P<amount>[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)(?P<unit>h|x|)", re.IGNORECASE)
LARGE_JUMP = 10.0
"""Ratio to the file's budget above which a bare number needs confirmation: 160 may have been meant as hours."""


@dataclass(frozen=True, kw_only=True)
class AskedBudget:
    """A budget as typed: `160h` is AskedBudget(amount=160.0, unit="h")."""

    amount: float
    unit: str
    """Nothing, "h" or "x"."""

    def in_scale_units(self, *, unit_gpu_hours: float, own: float) -> float:
        """Convert to the scale's unit of `unit_gpu_hours`; `own` is the file's budget in that unit, doubled by `2x`."""
        return {"": self.amount, "h": self.amount / unit_gpu_hours, "x": self.amount * own}[self.unit]


def read_budget(text: str) -> AskedBudget:
    """Parse --budget; raises AblationsError if the text is not a budget."""
    found = BUDGET_PATTERN.fullmatch(text.strip())
    if found is None:
        raise AblationsError(
            f"--budget: found {text!r}; write 2 (in the scale's unit), 160h (GPU-hours) or 2x (twice the budget in "
            f"the file)"
        )
    amount = float(found["amount"])
    if not (math.isfinite(amount) and amount > 0):
        raise AblationsError(f"--budget: found {text}; must be a number greater than 0")
    return AskedBudget(amount=amount, unit=found["unit"].lower())


def budget_of(study: Study, asked: AskedBudget) -> float:
    """The budget for a sweep file, in the scale's unit."""
    unit = study.reference.recipe.compute_unit_gpu_hours
    return asked.in_scale_units(unit_gpu_hours=unit, own=study.sweep.budget.compute)


def ask_about_jump(asked: AskedBudget, plan: Plan, *, own: float) -> None:
    """Ask for confirmation, as `ask` does, if a bare number is many times the file's budget."""
    if said := jump_text(asked, plan, own=own):
        hours, times = four_digits(plan.budget_gpu_hours), four_digits(asked.amount / own)
        ask(f"{said}. Train for this long?", without_terminal=f"{said}; to confirm, write {hours}h or {times}x")


def jump_text(asked: AskedBudget, plan: Plan, *, own: float) -> str:
    """Warning about a bare number that is many times the file's budget; empty otherwise."""
    if asked.unit or asked.amount <= LARGE_JUMP * own:
        return ""
    return (
        f"--budget {asked.amount:g} is {plan.hours_text(plan.budget_gpu_hours)} for each of "
        f"{counted(len(plan.runs), 'run')}, {four_digits(asked.amount / own)} times the file's budget of {own:g}"
    )
