"""A fitted curve, with everything needed to doubt it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ablations.fit.alternatives import Alternatives
from ablations.fit.asymptote import DOUBTED, VERDICT_MEANINGS, WITHOUT_RISE, AsymptoteEstimate, Verdict, asymptote_of
from ablations.fit.ceiling import Ceiling
from ablations.fit.ends import ends_around
from ablations.fit.law_fit import LawFit, eq1
from ablations.fit.oddities import oddities
from ablations.fit.options import R0Mode
from ablations.text import compute_interval_text, compute_text, interval_text

OFF_THE_LAW = 0.5
"""Probability above which the step-0 reading is reported to lie off the law."""
OFF_AT_0 = "the evaluation at step 0 lies off the law, so nothing ties R_0; check it, or leave it out with r0: free"
MUCH_AUTOCORRELATION = 0.5
"""Autocorrelation above which the run wanders, or eq. 1 is not exactly the law of the curve."""
SHOWN_KEYS = (
    *("curve", "asymptote", "A", "A_lo", "A_hi", "asymptote_under_eq1", "A_eq1", "A_eq1_lo", "A_eq1_hi", "eq1_p"),
    *("weights", "B", "B_lo", "B_hi", "C_mid", "C_mid_lo", "C_mid_hi", "R_0", "R_0_lo", "R_0_hi", "r0", "r0_slack"),
    *("fit_verdict", "points", "window", "r_squared", "noise_sd", "autocorrelation", "posterior"),
)
"""Keys of a fit in JSON."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit(LawFit):
    """Eq. 1 fitted to one curve, with 95 % intervals and a verdict. Printing a fit gives a report of eleven lines.

        Fit(curve=..., eq1_A=0.612, eq1_lo=0.590, eq1_hi=0.633, B=1.93, C_mid=2540.0, R_0=0.31, verdict="resolved", ...)

    `A`, `A_lo` and `A_hi` are over all families that fit; `A_eq1`, `A_eq1_lo` and `A_eq1_hi` hold if eq. 1 is the law.
    A and its upper end are None if a ceiling of 1 fits as well or the curve does not rise; rank by `A_lo`. An end of B
    or C_mid is None if the interval leaves the search range. Without A, C_mid (half of the way to A) has no meaning;
    under the verdict "no rise", B has none either. `to_json` leaves out values without meaning.
    """

    eq1_A: float
    """A of the curve itself under eq. 1, with its interval, even if A is unbounded; use `A` or `A_eq1` as results."""
    eq1_lo: float
    eq1_hi: float | None
    B: float
    B_lo: float | None
    B_hi: float | None
    C_mid: float
    C_mid_lo: float | None
    C_mid_hi: float | None
    R_0: float
    R_0_lo: float
    R_0_hi: float
    ceiling: Ceiling
    """A averaged over the families that fit, for the verdict and `asymptote`."""
    alternatives: Alternatives
    """The other families on the same readings."""
    eq1_p: float
    """p-value of the test that eq. 1 fits (`ablations.fit.engine.lack_of_fit`); below 0.05 eq. 1 is doubted."""
    verdict: Verdict
    rise_deviance: float
    """Twice the log likelihood ratio of the curve to a flat line; chi-squared with RISE_PARAMETERS degrees of freedom
    for readings that do not rise."""
    later_rise_deviance: float
    """`rise_deviance` of only the readings from the third on; chi-squared if the whole rise lies before them."""
    r0: R0Mode
    """Mode in which R_0 was tied to the step-0 reading; "free" even for "anchored" if the curve has no such reading."""
    r0_slack: float | None
    """Probability that the step-0 reading lies off the law, for an anchored fit; above 0.5 the early phase is off."""
    residuals: np.ndarray
    noise_sd: float
    autocorrelation: float
    """Lag-1 autocorrelation of the noise, corrected for the part that the fit absorbs."""
    binned_from: int | None = None
    """Number of readings in the window before `curve` was binned; None if it was not."""

    @property
    def points(self) -> int:
        """Number of readings fitted."""
        return self.readings.score.size

    @property
    def r_squared(self) -> float:
        """1 - SSE / SST over the window; 0 if all scores are equal."""
        first, last = self.window
        y = self.curve.score[(first <= self.curve.compute) & (self.curve.compute <= last)]
        spread = float(np.sum((y - y.mean()) ** 2))
        return 1 - float(self.residuals @ self.residuals) / spread if spread > 0 else 0.0

    @property
    def rises(self) -> bool:
        """True if the readings support a rising curve over a flat line."""
        return self.verdict not in WITHOUT_RISE

    @property
    def asymptote(self) -> AsymptoteEstimate:
        """A over all families with its interval."""
        return asymptote_of(self.ceiling.estimate, lo=self.ceiling.lo, hi=self.ceiling.hi, verdict=self.verdict)

    @property
    def asymptote_under_eq1(self) -> AsymptoteEstimate:
        """A with the interval that holds if eq. 1 is the law."""
        return asymptote_of(self.eq1_A, lo=self.eq1_lo, hi=self.eq1_hi, verdict=self.verdict)

    @property
    def A(self) -> float | None:
        """A over all families; None if nothing bounds it from above or the curve does not rise."""
        return self.asymptote.A

    @property
    def A_lo(self) -> float:
        """The lower end of the 95 % interval of A, which always exists."""
        return self.asymptote.lo

    @property
    def A_hi(self) -> float | None:
        """The upper end of the 95 % interval of A."""
        return self.asymptote.hi

    @property
    def A_eq1(self) -> float | None:
        """A if eq. 1 is the law; None like `A`."""
        return self.asymptote_under_eq1.A

    @property
    def A_eq1_lo(self) -> float:
        """The lower end of the 95 % interval of A if eq. 1 is the law."""
        return self.asymptote_under_eq1.lo

    @property
    def A_eq1_hi(self) -> float | None:
        """The upper end of the 95 % interval of A if eq. 1 is the law."""
        return self.asymptote_under_eq1.hi

    @property
    def doubts_eq1(self) -> bool:
        """True if the residuals contradict eq. 1."""
        return self.rises and self.eq1_p < DOUBTED

    @property
    def has_midpoint(self) -> bool:
        """True if eq. 1's C_mid, half of the way to A, is meaningful: A is bounded by eq. 1 and over all families."""
        return self.asymptote.is_bounded and self.asymptote_under_eq1.is_bounded

    @property
    def doubts(self) -> list[str]:
        """Reasons not to trust the fit, as text; empty for a fit without doubts."""
        found = [] if self.verdict == "resolved" else [VERDICT_MEANINGS[self.verdict]]
        if self.autocorrelation > MUCH_AUTOCORRELATION:
            found.append(
                "errors of neighbouring evaluations are correlated, or eq. 1 is not exactly the law of this curve"
            )
        if self.doubts_eq1:
            found.append(f"eq. 1 is doubted (p {self.eq1_p:.3f})")
        if self.r0_slack is not None and self.r0_slack > OFF_THE_LAW:
            found.append("the early phase is off the law")
        return found + self.oddities

    @property
    def oddities(self) -> list[str]:
        """Sentences about readings that look wrong: outliers, a fall, impossible samples, B at its bound."""
        first, last = self.window
        inside = (first <= self.curve.compute) & (self.curve.compute <= last)
        by_prompt = self.curve.answer_variance
        is_counted = by_prompt is not None and not np.isnan(by_prompt[inside]).any()
        off_the_law = (
            self.rises and self.ceiling.hi is None and self.r0_slack is not None and self.r0_slack > OFF_THE_LAW
        )
        return ([OFF_AT_0] if off_the_law else []) + oddities(
            self.curve.compute[inside],
            self.curve.score[inside],
            self.residuals,
            start=float(self.curve.compute[0]),
            # Answers counted by prompt leave no doubt about the number of samples.
            sampling_variance=0.0 if is_counted else self.readings.sampling_variance,
            B=self.B,
            rises=self.rises,
        )

    def predict(self, compute: ArrayLike) -> np.ndarray:
        """Fitted pass rate at each compute."""
        return eq1(np.atleast_1d(compute), *(np.array(value) for value in (self.eq1_A, self.B, self.C_mid, self.R_0)))

    def predict_interval(self, compute: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """The 95 % interval of the curve itself (not of a noisy reading) at each compute."""
        lo, hi = ends_around(self.predict(compute), self.predict_draws(compute))
        return np.asarray(lo), np.asarray(hi)

    def summary(self) -> dict[str, dict[str, float | None]]:
        """Median, 80 % and 95 % intervals of eq. 1's A, B, C_mid and R_0: {"A": {"lo_95": 0.59, ...}, ...}.

        The intervals of 95 % are those of the fit, and both include its estimates (`ablations.fit.ends`). If nothing
        bounds A from above, A and C_mid have lower ends only.
        """
        found: dict[str, dict[str, float | None]] = {}
        for name, draws in vars(self.draws).items():
            estimate, lo, hi = (getattr(self, one) for one in ENDS[name])
            lo_80, hi_80 = map(float, ends_around(estimate, draws, 0.8))
            found[name] = {
                "lo_95": lo,
                # Where the search range cuts an end off, an estimate farther out than the draws is at its edge.
                "lo_80": None if lo is None and lo_80 == estimate else lo_80,
                "median": float(np.median(draws)),
                "hi_80": None if hi is None and hi_80 == estimate else hi_80,
                "hi_95": hi,
            }
        if not self.has_midpoint:
            for name in ("A", "C_mid"):
                found[name] |= dict.fromkeys(("median", "hi_80", "hi_95"))
        return found

    def compute_to_reach(self, score: float) -> tuple[float | None, float | None, float | None]:
        """Compute at which the curve reaches `score`, with its 95 % interval; None means never.

        C = C_mid ((R - R_0) / (A - R))^(1/B), the inverse of ScaleRL eq. 1; 0 if R_0 is at least `score`.
        """
        estimate = self.compute_at(score)
        draws = self.compute_draws(score)
        lo, hi = ends_around(np.inf if estimate is None else estimate, draws, method="closest_observation")
        return estimate, _finite(float(lo)), _finite(float(hi))

    def compute_at(self, score: float) -> float | None:
        """Compute at which the curve reaches `score`, None for never; a thousand times faster than the interval."""
        return _finite(_inverse(score, *(np.array([value]) for value in (self.eq1_A, self.B, self.C_mid, self.R_0)))[0])

    def compute_draws(self, score: np.ndarray | float) -> np.ndarray:
        """Compute at which every draw reaches `score` (one value, or one per draw); infinite if it never does."""
        return _inverse(score, self.draws.A, self.draws.B, self.draws.C_mid, self.draws.R_0)

    def midpoint_cell(self) -> str:
        """C_mid with its interval; only the lower end if A has no upper end."""
        if not self.rises:
            return ""
        if not self.has_midpoint:
            return compute_interval_text(None, self.C_mid_lo, None)
        return compute_interval_text(self.C_mid, self.C_mid_lo, self.C_mid_hi)

    def __repr__(self) -> str:
        return f"<Fit of {self.curve.name!r}: {self.asymptote}; {self.verdict}>"

    def __str__(self) -> str:
        """A report of eleven lines: A over all families and under eq. 1, eq. 1's other parameters, the fitted readings,
        the noise, the verdict, the doubts.
        """
        lines = {
            "A": self.asymptote.cell(),
            "A_eq1": f"{self.asymptote_under_eq1.cell()}, weight {self.alternatives.eq1_weight:.2f}"
            if self.rises
            else "",
            "B": interval_text(self.B, self.B_lo, self.B_hi, ".2f") if self.rises else "",
            "C_mid": self.midpoint_cell(),
            "R_0": interval_text(self.R_0, self.R_0_lo, self.R_0_hi, ".3f"),
            "window": " to ".join(map(compute_text, self.window)),
            "points": f"{self.points}, R² {self.r_squared:.3f}",
            "noise": f"{self.noise_sd:.4f}, lag-1 autocorrelation {self.autocorrelation:.2f}",
            "verdict": self.verdict,
            "doubts": "; ".join(self.doubts) or "none",
        }
        title = f"Eq. 1 fitted to {self.curve.name!r}, with 95 % intervals"
        return "\n".join([title, *(f"  {name:<8} {text}".rstrip() for name, text in lines.items())])

    def to_json(self) -> dict[str, Any]:
        """The fit as plain data, without residuals and draws; None for numbers that must not be shown.

        If A has no upper end, A, C_mid and their upper ends are None, and likewise for A under eq. 1. Under "no rise",
        A_hi, B, the rest of C_mid, the interval of R_0 and the posterior are None too.
        """
        meaningless = set() if self.has_midpoint else {"C_mid", "C_mid_hi"}
        if not self.rises:
            meaningless |= {"B", "B_lo", "B_hi", "C_mid_lo", "R_0_lo", "R_0_hi"}
        made = {
            "curve": self.curve.name,
            "asymptote": self.asymptote.to_json(),
            "asymptote_under_eq1": self.asymptote_under_eq1.to_json(),
            "weights": self.alternatives.weights,
            "fit_verdict": self.verdict,
            "window": list(self.window),
            "posterior": self.summary() if self.rises else None,
        }
        shown = {key: made[key] if key in made else getattr(self, key) for key in SHOWN_KEYS}
        return shown | dict.fromkeys(meaningless)


ENDS = {"A": ("eq1_A", "eq1_lo", "eq1_hi")} | {
    name: (name, f"{name}_lo", f"{name}_hi") for name in ("B", "C_mid", "R_0")
}
"""Attributes of each parameter of eq. 1, with those of its interval."""


def _inverse(score: np.ndarray | float, A: np.ndarray, B: np.ndarray, C_mid: np.ndarray, R_0: np.ndarray) -> np.ndarray:
    reached = score < A
    odds = np.maximum(score - R_0, 0) / np.where(reached, A - score, 1)
    with np.errstate(over="ignore"):
        return np.where(score <= R_0, 0.0, np.where(reached, C_mid * odds ** (1 / B), np.inf))


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
