"""Curves: pass rate against compute, the input of every fit."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ablations.errors import AblationsError

if TYPE_CHECKING:
    from pandas import DataFrame

COUNTS = ("prompts", "samples", "step")
"""Names of the counts that a reading may have."""
VARIANCES = ("answer_variance", "prompt_variance")
"""Variances of readings whose right answers were counted by prompt; NaN for other readings."""
FIELDS_OF_READINGS = ("compute", "score", *COUNTS, *VARIANCES)
DATES = tuple((1.4e9 * unit, 2.2e9 * unit) for unit in (1 / 3600, 1.0, 1e3))
"""Times from 2014 to 2039 in hours, seconds and milliseconds since 1970; numbers like these are not compute."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """Held-out readings of one run, in ascending compute.

    `compute` is in any unit; a reading at compute 0 is the pass rate before RL. `samples` counts the generations behind
    each score and gives the sampling noise, unless `answer_variance` does: the variance for fixed prompts
    (`ablations.fit.prompt_noise`). `prompt_variance` is the additional variance of drawing other prompts. `prompts` and
    `step` are carried along. Runs with equal `start` began with the same model, weights, tasks and seed; "" if unknown.

        Curve(name="scalerl-s0", compute=np.array([0.0, 213.0]), score=np.array([0.31, 0.33]), samples=None)
    """

    name: str
    compute: np.ndarray
    score: np.ndarray
    samples: np.ndarray | None = None
    prompts: np.ndarray | None = None
    step: np.ndarray | None = None
    answer_variance: np.ndarray | None = None
    prompt_variance: np.ndarray | None = None
    start: str = ""

    @property
    def sampling_variance(self) -> np.ndarray | None:
        """Variance of each score due to its finite number of answers; None if unknown.

        Without counts by prompt, p (1 - p) / n for n samples, as if all prompts were drawn anew.
        """
        if self.samples is None:
            return None
        of_samples = self.score * (1 - self.score) / self.samples
        if self.answer_variance is None:
            return of_samples
        return np.where(np.isnan(self.answer_variance), of_samples, self.answer_variance)

    def first(self, size: int) -> "Curve":
        """The curve as it was after `size` readings."""
        known = {name: values for name in FIELDS_OF_READINGS if (values := getattr(self, name)) is not None}
        return replace(self, **{name: values[:size] for name, values in known.items()})

    def to_frame(self) -> "DataFrame":
        """A pandas DataFrame with a row per reading: `curve`, `compute`, `score`, and all other data."""
        from pandas import DataFrame

        columns = {name: getattr(self, name) for name in FIELDS_OF_READINGS}
        known = {name: value for name, value in columns.items() if value is not None and not np.isnan(value).all()}
        return DataFrame({"curve": self.name} | known)

    def __repr__(self) -> str:
        ends = " to ".join(f"{compute:g}" for compute in self.compute[[0, -1]])
        return f"<Curve {self.name!r}: {self.compute.size} evaluations, compute {ends}>"

    def __post_init__(self) -> None:
        compute = np.asarray(self.compute, dtype=float)
        if compute.ndim != 1 or compute.size == 0:
            raise AblationsError(
                f"curve {self.name!r}: compute has shape {compute.shape}; pass a list of one or more evaluations"
            )
        for field in FIELDS_OF_READINGS:
            if getattr(self, field) is None:
                continue
            values = np.array(getattr(self, field), dtype=float)
            if values.shape != compute.shape:
                raise AblationsError(
                    f"curve {self.name!r}: {field} has shape {values.shape}, compute {compute.shape}; shapes must agree"
                )
            edge = 1.0 if field == "score" else math.inf
            for index in np.flatnonzero(~((values > 0) & (values < edge))):  # values in between are always valid
                if right := requirement(field, float(values[index])):
                    raise AblationsError(
                        f"curve {self.name!r}, evaluation {index + 1}: {field} is {values[index]:g}; {right}"
                    )
            values.flags.writeable = False
            object.__setattr__(self, field, values)
        assert self.answer_variance is None or self.samples is not None, "answer_variance needs samples"
        first, last = self.compute[[0, -1]]
        if first < last < 1.01 * first and any(low < first < high for low, high in DATES):
            raise AblationsError(
                f"curve {self.name!r}: compute {first:.10g} to {last:.10g} is the time since 1970; subtract the time "
                "at which the run began"
            )
        for before, after in zip(self.compute[:-1], self.compute[1:], strict=True):
            if after <= before:
                raise AblationsError(
                    f"curve {self.name!r}: compute {after:g} comes after {before:g}; "
                    "compute must increase, with one score at each value"
                )


def requirement(field: str, value: float) -> str | None:
    """The requirement that `value` fails as a `field` of a reading; None if it is valid."""
    if field in VARIANCES and math.isnan(value):
        return None
    if not math.isfinite(value):
        return "must be a finite number"
    if field == "score" and not 0 <= value <= 1:
        return "a pass rate must lie in [0, 1]" + ("; divide percent by 100" if 1 < value <= 100 else "")
    if field in ("samples", "prompts", "samples_per_prompt") and value <= 0:
        return "must be above 0"
    return "must not be negative" if value < 0 else None
