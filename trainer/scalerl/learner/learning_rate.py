"""The learning rate of a step: warm-up times a schedule.

rate = peak min(1, (step + 1) / warm-up) (final + (1 - final) fall(x)),    x = progress / horizon, at most 1

The fall is 1 at 0 and 0 at 1; half a cosine is that of SGDR (arXiv 1608.03983).
"""

import math
from collections.abc import Callable

from scalerl.recipe import Optimiser

FALLS: dict[str, Callable[[float], float]] = {
    "cosine": lambda x: (1 + math.cos(math.pi * x)) / 2,
    "linear": lambda x: 1 - x,
}


def learning_rate(optimiser: Optimiser, *, step: int, compute: float | None) -> float:
    """Learning rate of the step after `step` steps and `compute` compute units of the scale.

    `compute` may be None if no time is kept; a horizon in compute then raises ValueError.
    """
    warm = optimiser.learning_rate * min(1.0, (step + 1) / max(1, optimiser.warmup_steps))
    schedule = optimiser.schedule
    if schedule.type == "constant":
        return warm
    done = step if schedule.unit == "steps" else compute
    if done is None:
        raise ValueError(
            f"optimiser.schedule: the horizon of {schedule.horizon:g} is in compute, but step {step} has no compute; "
            f"pass compute, or set unit: steps"
        )
    x = min(1.0, done / schedule.horizon)
    return warm * (schedule.final + (1 - schedule.final) * FALLS[schedule.type](x))
