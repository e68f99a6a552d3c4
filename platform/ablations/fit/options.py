"""Settings of curve fits in a sweep file and in `platform fit`; imports little, because a dry run reads them too."""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from ablations.fit.engine import R0Mode
from scalerl.frozen import Frozen

FitLoss = Literal["squares", "huber"]
Auto = Literal["auto"]
MIN_READINGS = 6
"""Minimum number of readings after step 0 for a fit: two more than eq. 1 has parameters, to estimate the noise."""


class FitOptions(Frozen):
    """Settings for fitting eq. 1 to each curve of a sweep."""

    r0: R0Mode = "anchored"
    """How R_0 is tied to the evaluation before RL: `fixed` takes this evaluation as R_0, `anchored` as a measurement
    that may lie off the law, `free` ignores it."""
    loss: FitLoss = "squares"
    """`huber` down-weights outliers: beyond 1.345 standard deviations (by the median) a residual counts linearly."""
    cutoff: Literal["given", "auto"] = "given"
    """`auto` fits each curve from the point at which it begins to follow the law, instead of from `budget.fit_from`."""
    ceiling: Annotated[float, Field(gt=0, le=1)] | None = None
    """Highest pass rate that the task allows within the answer budget; A cannot exceed this value. null uses the known
    limit of task `k_smallest`, and no limit for other tasks."""
    task: str | None = None
    """The task whose pass rate to fit: a task of the scale or of its downstream evaluations. Default: the only task, or
    the mean over all tasks of a mix."""


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """Settings of one fit: `FitSettings(fit_from=1500.0, fit_to=8000.0)`."""

    fit_from: float | Auto = 0.0
    """Readings up to this compute are not fitted; "auto" starts where the curve begins to follow the law."""
    fit_to: float = math.inf
    r0: R0Mode = "anchored"
    loss: FitLoss = "squares"
    ceiling: float | None = None
    """Upper limit of A, as `FitOptions.ceiling`."""
    task: str | None = None
    """Task of the curve, as `FitOptions.task`."""

    @property
    def highest(self) -> float:
        """The highest pass rate that is possible: the known ceiling, else 1."""
        return 1.0 if self.ceiling is None else self.ceiling
