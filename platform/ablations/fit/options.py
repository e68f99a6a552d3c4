"""How curves are fitted: what a sweep file and `platform fit` may say of it. Light, as a dry run reads it too."""

import math
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from ablations.fit.engine.modes import R0Mode
from scalerl.frozen import Frozen

FitLoss = Literal["squares", "huber"]
Auto = Literal["auto"]
MIN_POINTS = 6
"""Readings after step 0 that a fit needs: two more than eq. 1 has parameters, to judge the noise by."""


class FitOptions(Frozen):
    """How eq. 1 is fitted to each curve of a sweep."""

    r0: R0Mode = "anchored"
    """How R_0 is tied to the reading before RL: `fixed` takes it as R_0, `anchored` as a reading that may lie off the
    law, `free` ignores it."""
    loss: FitLoss = "squares"
    """`huber` pulls outliers in: beyond 1.345 standard deviations (by the median) a residual counts linearly."""
    cutoff: Literal["given", "auto"] = "given"
    """`auto` fits each curve from where it begins to follow the law, instead of from `budget.fit_from`."""
    ceiling: Annotated[float, Field(gt=0, le=1)] | None = None
    """The highest pass rate that the task allows within the budget of an answer, if it is known: A is no higher."""
    task: str | None = None
    """Whose pass rate the curves are of: a task of the scale or of its downstream evaluations; null takes the only
    task, or the mean over all tasks of a mix."""


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """Everything a fit is told beside its curve: `FitSettings(fit_from=1500.0, fit_to=8000.0)`."""

    fit_from: float | Auto = 0.0
    """Readings up to this compute are left out; "auto" where the curve begins to follow the law."""
    fit_to: float = math.inf
    r0: R0Mode = "anchored"
    loss: FitLoss = "squares"
    ceiling: float | None = None
    """What A cannot exceed, as `FitOptions.ceiling`."""
    task: str | None = None
    """Whose readings make the curve, as `FitOptions.task`."""
