"""Whether a column of compute is a counter, which rises over the whole run, or has the value of each step.

`cumsum(x)` is right for values of each step, `x` for a counter, and `cumsum(where(diff(x) > 0, diff(x), x))` for a
counter that begins again at a resume. One mistaken for another gives compute that rises as well: the numbers decide.
"""

from collections.abc import Mapping

import numpy as np

from ablations.errors import AblationsError
from ablations.logs.expression import ColumnOf, Expression, calls_of
from ablations.text import counted

FEWEST_VALUES = 20
"""Minimum number of values from which a column is judged."""
SHARE_OF_FALLS = 0.05
"""Share of steps at which a counter does not fall, since it begins again at resumes only."""
RISES = 5.0
"""Ratio of the last to the first value from which a column that never falls is a counter."""
FAR_ABOVE_0 = 20.0
"""Number of usual increases below which the first value of a counter lies, if the log has its first steps."""
FIRST_STEP = 3.0
"""Largest first step of a log that has the beginning of its run."""
LOST_STEPS = 0.05
"""Share of the last step by which compute may lag behind the steps before the first row."""


def check_sum(place: str, name: str, values: np.ndarray) -> None:
    """Raise AblationsError if a column whose values are summed is a sum so far; `values` are those by step."""
    known = values[~np.isnan(values)]
    if known.size < FEWEST_VALUES or np.any(np.diff(known) < 0) or not known[-1] > RISES * known[0] >= 0:
        return
    over = f"{counted(known.size, 'step')}, from {known[0]:g} to {known[-1]:g}"
    raise AblationsError(
        f"{place}: {name} never falls over {over}, so it is a sum already; leave out cumsum, or write diff({name}) for "
        "the increase at each step"
    )


def check_counters(place: str, expression: Expression, columns: Mapping[str, np.ndarray], compute: np.ndarray) -> None:
    """Raise AblationsError if compute, or a column whose increases are summed, falls too often for a counter."""
    named = [call.arguments[0] for call in calls_of(expression, "diff")]
    found = {one.name: columns[one.name] for one in named if isinstance(one, ColumnOf) and one.name in columns}
    if not any(calls_of(expression, "cumsum")):
        found |= {expression.name if isinstance(expression, ColumnOf) else "compute": compute}
    for name, values in found.items():
        known = values[np.isfinite(values)]
        falls = int(np.sum(np.diff(known) < 0))
        if known.size >= FEWEST_VALUES and falls > SHARE_OF_FALLS * known.size:
            raise AblationsError(
                f"{place}: {name} falls at {falls} of {counted(known.size, 'step')}, as a value of each step does and "
                f"a counter does not; the total is cumsum({name if name in columns else 'x'})"
            )


def beginning_note(step: np.ndarray, compute: np.ndarray, text: str) -> str:
    """A note if compute, whose expression is `text`, seems to count from another step than the run, or not to count."""
    known = np.isfinite(compute)
    step, compute = step[known], compute[known]
    if step.size < FEWEST_VALUES or step[0] < 0:
        return ""
    paces = np.diff(compute) / np.diff(step)
    usual = float(np.median(paces))
    if usual <= 0:
        return ""
    if step[0] <= FIRST_STEP and compute[0] > FAR_ABOVE_0 * usual * max(step[0], 1.0):
        return (
            f"compute is {compute[0]:g} at step {step[0]:g} already, and rises by {usual:.3g} a step; if {text} is the "
            f"compute of each step, write cumsum({text}); if it counts from before training, subtract its first value"
        )
    least = float(np.min(paces[:3]))
    missing = step[0] - 1 - (compute[0] / least if least > 0 else np.inf)
    if missing > max(LOST_STEPS * step[-1], 2 * (step[1] - step[0])):
        return (
            f"the log begins at step {step[0]:g} with compute {compute[0]:g}, so that of the steps before is missing; "
            "if this run continues another, add what that one took, or join both logs"
        )
    return ""
