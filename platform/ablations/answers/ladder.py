"""Does a difference carry from one scale to the next? The differences of a variant at several scales, as one answer.

    y_i = a + b x_i + e_i        e_i ~ N(0, v_i)

with y_i the difference from the reference at scale i (of compute: ln of the ratio), x_i the scale's size as log10, and
v_i from the interval of the comparison at that scale. a and b are those of least squares weighted by 1 / (v_i + v), v
the mean of v_i, as a variance of few seeds may be small by chance. Every interval is Student's t with Satterthwaite's
(1946) degrees of freedom. At 95 %:

    flips      two scales differ from the reference in opposite directions
    fades      the smallest scale differs, the trend leads back to no difference, and the estimate at the largest lies
               on the same side, or less than half as far on the other
    carries    the largest scale and the mean of all differ, all estimates lie on one side, and it does not fade
    cannot tell    otherwise

    forecast at x = a + b x +- t sqrt(var(a + b x) + m^2)        m = (x - x_last) sqrt(b^2 + var(b)) / 2

m is the doubt about the line beyond the trained scales: the slope may change there by half of itself. `left_out` checks
the forecast: made from all scales but the largest, for the largest. `benchmarks/ladders_simulated.py` measures how
often words are wrong and forecasts miss.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy.special import stdtrit

from ablations.answers.answer import Answer, Question
from ablations.answers.interval import TAIL, Interval
from ablations.answers.student import LEAST_VARIANCE, Student, interval_of, quantile

LadderWord = Literal["carries", "fades", "flips", "cannot tell"]
SMALL = 0.5
"""Maximum size of a fading difference at the largest scale, on the other side, as a share of its first size."""
SLOPE_DOUBT = 0.5
"""Standard deviation of a change of slope beyond the trained scales, as a share of the slope and its error."""


@dataclass(frozen=True, kw_only=True)
class Rung:
    """The difference of a variant from the reference at one scale.

    Rung(scale="bench", x=4.97, difference=Student(estimate=-0.049, variance=0.0001, freedom=16.0))
    """

    scale: str
    x: float
    """log10 of the scale's size, or its place if sizes are unknown."""
    difference: Student
    """In pass rate, or in ln of a ratio."""


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """One difference over at least two scales, from the smallest to the largest."""

    question: Question
    rungs: tuple[Rung, ...]

    @property
    def trend(self) -> Student:
        """The slope b: the change of the difference over a tenfold size, or over one scale."""
        return self._contrast(slope_weights(self.rungs))

    @property
    def mean(self) -> Student:
        """The mean of the differences, weighted."""
        return self._contrast(mean_weights_of(self.rungs))

    @property
    def word(self) -> LadderWord:
        """How the difference changes over the scales; see the module."""
        sides = [side_of(rung.difference) for rung in self.rungs]
        estimates = [rung.difference.estimate for rung in self.rungs]
        first, last = sides[0], sides[-1]
        if 1 in sides and -1 in sides:
            return "flips"
        if first and side_of(self.trend) == -first and estimates[-1] * first > -SMALL * abs(estimates[0]):
            return "fades"
        is_one_sided = all(estimate * last > 0 for estimate in estimates)
        return "carries" if is_one_sided and side_of(self.mean) == last else "cannot tell"

    def forecast(self, x: float) -> Interval:
        """The difference at another size with its 95 % interval, in the number of the question: a ratio for compute."""
        mean, slope = mean_weights_of(self.rungs), slope_weights(self.rungs)
        centre = float(mean @ np.array([rung.x for rung in self.rungs]))
        found = self._contrast(mean + (x - centre) * slope)
        beyond = max(0.0, x - self.rungs[-1].x, self.rungs[0].x - x)
        doubt = SLOPE_DOUBT * beyond * math.hypot(self.trend.estimate, math.sqrt(self.trend.variance))
        return self.interval(replace(found, variance=found.variance + doubt**2))

    def interval(self, difference: Student) -> Interval:
        """The 95 % interval of a difference, in the number of the question."""
        return self.question.in_unit(interval_of([difference], difference.estimate))

    @property
    def left_out(self) -> Interval | None:
        """The forecast for the largest scale from the others; None if fewer than two are left."""
        if len(self.rungs) < 3:
            return None
        return Ladder(question=self.question, rungs=self.rungs[:-1]).forecast(self.rungs[-1].x)

    def _contrast(self, weights: np.ndarray) -> Student:
        """sum_i c_i y_i with its variance and Satterthwaite's degrees of freedom."""
        found = [rung.difference for rung in self.rungs]
        parts = weights**2 * np.array([one.variance for one in found])
        freedom = np.array([one.freedom for one in found])
        return Student(
            estimate=float(weights @ np.array([one.estimate for one in found])),
            variance=float(parts.sum()),
            freedom=float(parts.sum() ** 2 / np.sum(parts**2 / freedom)),
        )


def rung_of(scale: str, x: float, answer: Answer, freedom: float) -> Rung | None:
    """The rung of an answer, whose 95 % interval is read as Student's with these degrees of freedom.

    None for an answer without an interval, and for one that is read at less compute than the others at its scale.
    """
    question = answer.question
    if answer.read_at is not None:
        return None
    lo, hi = question.scaled(answer.lo), question.scaled(answer.hi)
    if lo is None or hi is None or freedom <= 0 or not math.isfinite(hi - lo):
        return None
    half = (hi - lo) / 2 / float(stdtrit(freedom, 1 - TAIL))
    variance = max(half**2, LEAST_VARIANCE)
    return Rung(scale=scale, x=x, difference=Student(estimate=(lo + hi) / 2, variance=variance, freedom=freedom))


def side_of(difference: Student) -> int:
    """1 or -1 if the 95 % interval lies above or below no difference, else 0."""
    lo, hi = quantile([difference], TAIL), quantile([difference], 1 - TAIL)
    return (lo > 0) - (hi < 0)


def mean_weights_of(rungs: Sequence[Rung]) -> np.ndarray:
    """Weights c_i of the mean, shape (num_rungs,): 1 / (v_i + mean v) over their sum."""
    variances = np.array([rung.difference.variance for rung in rungs])
    weights = 1 / (variances + variances.mean())
    return np.asarray(weights / weights.sum())


def slope_weights(rungs: Sequence[Rung]) -> np.ndarray:
    """Weights c_i of the slope, shape (num_rungs,): w_i (x_i - mean x) / sum_j w_j (x_j - mean x)^2."""
    weights = mean_weights_of(rungs)
    x = np.array([rung.x for rung in rungs])
    away = weights * (x - weights @ x)
    return np.asarray(away / (away @ x))
