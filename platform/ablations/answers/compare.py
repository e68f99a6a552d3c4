"""The comparison of every variant with the reference: level at equal compute, ceiling, compute to a target, and
verdicts.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc

from ablations.answers.answer import REFERENCE, Answer, answers_json
from ablations.answers.differences import mean_ceiling, mean_ceiling_under_eq1
from ablations.answers.level import common_compute, levels_of
from ablations.answers.outliers import Unlike, unlike_siblings
from ablations.answers.paper_rule import paper_rule
from ablations.answers.questions import LEVEL, QUESTIONS
from ablations.answers.repeats import NO_OTHERS, OtherSweeps
from ablations.answers.rise import rise_together, verdict_together
from ablations.answers.run_to_run import RunToRun
from ablations.errors import AblationsError
from ablations.fit.asymptote import DOUBTED, WITHOUT_RISE, AsymptoteEstimate, Verdict, asymptote_of
from ablations.fit.result import Fit
from ablations.text import counted

PLAIN_KEYS = (
    *("curve", "num_seeds", "A", "A_lo", "A_hi", "A_eq1", "A_eq1_lo", "A_eq1_hi", "eq1_p", "B", "C_mid", "R_0"),
    *("verdict", "points", "window", "cost", "level", "paper_rule", "asymptote", "asymptote_under_eq1"),
)
"""Keys of a variant in JSON; each question adds its own."""


@dataclass(frozen=True, kw_only=True)
class VariantResult:
    """One variant against the reference; None marks a number that the runs leave unbounded or undefined.

    VariantResult(name="loo-loss", num_seeds=1, asymptote=AsymptoteEstimate(A=0.552, lo=0.540, hi=0.566, verdict=...),
                  asymptote_under_eq1=AsymptoteEstimate(A=0.552, lo=0.543, hi=0.561, verdict=...), eq1_p=0.41, B=1.8,
                  C_mid=2600.0, R_0=0.31, verdict="resolved", points=31, window=(1704.0, 7881.0), cost=8000.0,
                  level=0.541, paper_rule="ceiling down", answers={"level": Answer(...), ...})
    """

    name: str
    num_seeds: int
    asymptote: AsymptoteEstimate
    """Mean A over seeds, averaged over the families that fit."""
    asymptote_under_eq1: AsymptoteEstimate
    """Mean A over seeds if eq. 1 is the law."""
    eq1_p: float
    """p-value of the test of eq. 1 over all seeds (Fisher's method); below 0.05 the fit is in doubt."""
    B: float | None
    """Geometric mean over seeds, like C_mid; None for a curve that does not rise."""
    C_mid: float | None
    R_0: float
    verdict: Verdict
    """The verdict on the fits of all seeds."""
    points: int
    """Number of fitted readings, over all seeds."""
    window: tuple[float, float]
    cost: float
    level: float | None
    """Pass rate over the last third of the compute that variant and reference have both spent, mean over seeds."""
    paper_rule: str
    """Verdict of the paper's own rule: two A differ if they differ by more than 0.02 (ScaleRL §4)."""
    answers: Mapping[str, Answer]
    """Answers by the name of their question."""

    def __repr__(self) -> str:
        verdicts = dict.fromkeys(answer.verdict for answer in self.answers.values())
        return f"<Result of {self.name!r}: {self.asymptote}; {'; '.join([self.verdict, *verdicts])}>"

    @property
    def doubts_eq1(self) -> bool:
        """True if the residuals of the seeds contradict eq. 1."""
        return self.verdict not in WITHOUT_RISE and self.eq1_p < DOUBTED

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON, with null for a number without meaning.

        Null are A, its upper end, B and C_mid if A has no upper end or the curve does not rise; likewise A under eq. 1,
        its upper end and C_mid if A under eq. 1 has no upper end.
        """
        A, eq1 = self.asymptote, self.asymptote_under_eq1
        plain = (
            *(self.name, self.num_seeds),
            *(A.A, A.lo, A.hi),
            *(eq1.A, eq1.lo, eq1.hi),
            *(self.eq1_p, self.B if A.is_bounded else None, self.C_mid if A.is_bounded and eq1.is_bounded else None),
            *(self.R_0, self.verdict, self.points, list(self.window), self.cost, self.level, self.paper_rule),
            *(A.to_json(), eq1.to_json()),
        )
        return dict(zip(PLAIN_KEYS, plain, strict=True)) | answers_json(self.answers)


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """All compared variants of a sweep, including the reference, in the order given."""

    reference: str
    variants: tuple[VariantResult, ...]
    spreads: Mapping[str, RunToRun]
    """Run-to-run spreads in pass rate: of "level", of A ("ceiling"), and at the "target"."""
    others: OtherSweeps = NO_OTHERS
    """Evidence on the spreads from runs of other sweeps."""
    unlike: tuple[Unlike, ...] = ()
    """Variants with an outlying run or spread."""

    def __repr__(self) -> str:
        return f"<Comparison of {counted(len(self.variants), 'variant')} with {self.reference!r}>"

    @property
    def is_provisional(self) -> bool:
        """True if no run-to-run spread is known, so that no verdict is "different"."""
        return not any(spread.is_known for spread in self.spreads.values())

    def run_to_run_json(self) -> dict[str, Any]:
        """Plain data of the spreads and of the other sweeps behind them: {"level": {"sd": 0.0098, ...}, ...,
        "left_out": []}."""
        spreads = {name: spread.to_json() for name, spread in self.spreads.items()}
        return spreads | {"other_sweeps": list(self.others.sweeps), "left_out": list(self.others.left_out)}


def compare(
    curves_by_variant: Mapping[str, Sequence[Fit]],
    costs: Mapping[str, float],
    reference: str,
    others: OtherSweeps = NO_OTHERS,
) -> Comparison:
    """Compare every variant, one fit per seed, with the variant called `reference`; `costs` may have any common unit.

    `others` is the run-to-run evidence of other sweeps of the scale; the comparison uses it if seeds are few.

    Raises AblationsError if the reference, a fit or a cost is missing.
    """
    if reference not in curves_by_variant:
        raise AblationsError(f"reference {reference!r} has no fit; variants: {', '.join(curves_by_variant) or 'none'}")
    for name, fits in curves_by_variant.items():
        if not fits:
            raise AblationsError(f"variant {name!r} has no fit; a comparison needs at least one seed of each variant")
        if name not in costs:
            raise AblationsError(f"variant {name!r} has no cost; costs are given for: {', '.join(costs) or 'none'}")
    baseline = curves_by_variant[reference]
    spreads = {
        one.spread: one.spread_of(curves_by_variant.values(), baseline, others.of(one.spread)) for one in QUESTIONS
    }
    num_comparisons = max(len(curves_by_variant) - 1, 1)
    variants = []
    for name, fits in curves_by_variant.items():
        answers = {
            one.name: Answer.of_reference(one)
            if name == reference
            else Answer.of(one, one.difference(fits, baseline, spreads[one.spread], num_comparisons))
            for one in QUESTIONS
        }
        result = _variant_result(name, fits, baseline, spreads["ceiling"], costs[name], answers, name == reference)
        variants.append(result)
    return Comparison(
        reference=reference,
        variants=tuple(variants),
        spreads=spreads,
        others=others,
        unlike=unlike_siblings(curves_by_variant, baseline, spreads[LEVEL.spread]),
    )


def _variant_result(
    name: str,
    fits: Sequence[Fit],
    baseline: Sequence[Fit],
    spread: RunToRun,
    cost: float,
    answers: Mapping[str, Answer],
    is_reference: bool,
) -> VariantResult:
    """Build the result of one variant; `spread` is the run-to-run spread of A."""
    ceiling, under_eq1 = mean_ceiling(fits, spread), mean_ceiling_under_eq1(fits, spread)
    assert ceiling.lo is not None  # every fit bounds A from below
    assert under_eq1.lo is not None
    verdict = verdict_together(fits, ceiling.lo, ceiling.hi)
    rises = rise_together(fits)
    levels = levels_of(fits, common_compute([*fits, *baseline]))
    by_the_paper = None
    if all(fit.eq1_hi is not None for fit in (*fits, *baseline)):
        by_the_paper = under_eq1.estimate - float(np.mean([fit.eq1_A for fit in baseline]))
    return VariantResult(
        name=name,
        num_seeds=len(fits),
        asymptote=asymptote_of(ceiling.estimate, lo=ceiling.lo, hi=ceiling.hi, verdict=verdict),
        asymptote_under_eq1=asymptote_of(under_eq1.estimate, lo=under_eq1.lo, hi=under_eq1.hi, verdict=verdict),
        eq1_p=fishers_p([fit.eq1_p for fit in fits]),
        B=_geometric_mean([fit.B for fit in fits]) if rises else None,
        C_mid=_geometric_mean([fit.C_mid for fit in fits]) if rises else None,
        R_0=float(np.mean([fit.R_0 for fit in fits])),
        verdict=verdict,
        points=sum(fit.points for fit in fits),
        window=(min(fit.window[0] for fit in fits), max(fit.window[1] for fit in fits)),
        cost=cost,
        level=float(np.mean(levels.values)) if levels else None,
        paper_rule=REFERENCE if is_reference else paper_rule(by_the_paper),
        answers=answers,
    )


def fishers_p(p_values: Sequence[float]) -> float:
    """Combine m independent p-values: P(chi-squared with 2 m degrees of freedom > -2 sum ln p) (Fisher 1925)."""
    return float(chdtrc(2 * len(p_values), -2 * float(np.sum(np.log(p_values)))))


def _geometric_mean(values: Sequence[float]) -> float:
    return math.exp(float(np.mean(np.log(values))))
