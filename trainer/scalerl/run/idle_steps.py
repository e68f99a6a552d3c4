"""Steps that trained on nothing: why, and the warnings about them; never decisions. This module does not load torch.

A run warns if a quarter of its last steps trained on nothing; if all did, as soon as it is PATIENT steps old or ends.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

TrainRows = Sequence[dict[str, Any]]

MAX_SKIPPED = 0.25
IDLE_STEPS = re.compile(r"(?P<idle>\d+) of the last (?P<steps>\d+) steps trained on nothing: (?P<why>.+)")
"""The warning of `skipped`."""
ALL_REWARDS_EQUAL = "no group had answers with different rewards"
UNCHANGED = "so the weights have not changed"
"""Part of the warning about a run whose weights no step has moved."""
PATIENT = 5
"""Number of idle steps at the start of a run before a warning; a run that ends sooner warns at its end."""


def skipped(early: TrainRows, recent: TrainRows) -> str | None:
    """Warn if too many steps trained on nothing."""
    if not recent:
        return None
    idle = Counter(why_nothing(row) for row in recent if row["skipped"])
    if idle.total() < MAX_SKIPPED * len(recent):
        return None
    return f"{idle.total()} of the last {len(recent)} steps trained on nothing: {_reasons(idle)}"


def why_nothing(row: dict[str, Any]) -> str:
    """The reason why this step trained on nothing."""
    if row["loss"] is None:
        return "the loss or its gradient was not finite"
    if row.get("grad_norm", 0.0) is None:
        return "the gradient overflowed FP16"
    return "every token was masked" if row.get("survivors") else ALL_REWARDS_EQUAL


def _reasons(idle: Counter[str]) -> str:
    if len(idle) == 1:
        return next(iter(idle))
    return ", ".join(f"in {number} {why}" for why, number in idle.most_common())


def nothing_trained(idle: Counter[str]) -> str:
    """Message for a run whose weights no step has moved; `idle` counts its steps by the reason."""
    steps = idle.total()
    which = "the only step trained on nothing" if steps == 1 else f"none of the {steps} steps trained on anything"
    return f"{which}, {UNCHANGED}: {_reasons(idle)}"
