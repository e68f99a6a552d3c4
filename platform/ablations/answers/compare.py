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
from ablations.answers.footing import Footing
from ablations.answers.leader import Leader, leader_among
from ablations.answers.level import footing_of_fits, levels_of, reaching
from ablations.answers.outliers import Unlike, unlike_siblings
from ablations.answers.paper_rule import paper_rule
from ablations.answers.questions import LEVEL, QUESTIONS, asked_at
from ablations.answers.repeats import NO_OTHERS, OtherSweeps
from ablations.answers.rise import rise_together, verdict_together
from ablations.answers.run_to_run import RunToRun
from ablations.errors import AblationsError
from ablations.fit.asymptote import DOUBTED, WITHOUT_RISE, AsymptoteEstimate, Verdict, asymptote_of
from ablations.fit.result import Fit
from ablations.text import counted

PLAIN_KEYS = (
    *("curve", "num_seeds", "A", "A_lo", "A_hi", "A_eq1", "A_eq1_lo", "A_eq1_hi", "eq1_p", "B", "C_mid", "R_0"),
    *("fit_verdict", "points", "window", "cost", "level", "level_compute", "paper_rule"),
    *("asymptote", "asymptote_under_eq1"),
)
"""Keys of a variant in JSON; each question adds its own."""


@dataclass(frozen=True, kw_only=True)
class VariantResult:
    """One variant against the reference; None marks a number that the runs leave unbounded or undefined.

    VariantResult(name="loo-loss", num_seeds=1, asymptote=AsymptoteEstimate(A=0.552, lo=0.540, hi=0.566, verdict=...),
                  asymptote_under_eq1=AsymptoteEstimate(A=0.552, lo=0.543, hi=0.561, verdict=...), eq1_p=0.41, B=1.8,
                  C_mid=2600.0, R_0=0.31, fit_verdict="resolved", points=31, window=(1704.0, 7881.0), cost=8000.0,
                  level=0.541, level_compute=8000.0, paper_rule="ceiling down",
                  answers={"level": Answer(...), ...})
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
    fit_verdict: Verdict
    """The verdict on the fits of all seeds."""
    points: int
    """Number of fitted readings, over all seeds."""
    window: tuple[float, float]
    cost: float
    level: float | None
    """Pass rate over the last third of `level_compute`, mean over seeds."""
    level_compute: float
    """The compute at which variant and reference are read: the comparison's, or less if no run of the variant has got
    that far."""
    paper_rule: str
    """Verdict of the paper's own rule: two A differ if they differ by more than 0.02 (ScaleRL §4)."""
    answers: Mapping[str, Answer]
    """Answers by the name of their question."""

    def __repr__(self) -> str:
        verdicts = dict.fromkeys(answer.verdict for answer in self.answers.values())
        return f"<Result of {self.name!r}: {self.asymptote}; {'; '.join([self.fit_verdict, *verdicts])}>"

    @property
    def level_at(self) -> str:
        """` at 422` if the level is read at a different compute from the comparison's."""
        return self.answers[LEVEL.name].at_said

    @property
    def doubts_eq1(self) -> bool:
        """True if the residuals of the seeds contradict eq. 1."""
        return self.fit_verdict not in WITHOUT_RISE and self.eq1_p < DOUBTED

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
            *(self.R_0, self.fit_verdict, self.points, list(self.window), self.cost, self.level, self.level_compute),
            self.paper_rule,
            *(A.to_json(), eq1.to_json()),
        )
        return dict(zip(PLAIN_KEYS, plain, strict=True)) | answers_json(self.answers)


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """All compared variants of a sweep, including the reference, in the order given."""

    reference: str
    footing: Footing
    """The compute at which the variants are compared."""
    variants: tuple[VariantResult, ...]
    spreads: Mapping[str, RunToRun]
    """Run-to-run spreads by question: of levels and ceilings in pass rate, of ln compute to the target."""
    leader: Leader | None = None
    """The variant with the highest level; None while that is unknown."""
    others: OtherSweeps = NO_OTHERS
    """Evidence on the spreads from runs of other sweeps."""
    unlike: tuple[Unlike, ...] = ()
    """Variants with an outlying run or an outlying spread."""

    def __repr__(self) -> str:
        return f"<Comparison of {counted(len(self.variants), 'variant')} with {self.reference!r}>"

    @property
    def on_one_footing(self) -> list[VariantResult]:
        """The variants read at the compute of the comparison, whose numbers can be ranked together."""
        return [line for line in self.variants if line.name not in self.footing.own]

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
    footing: Footing | None = None,
) -> Comparison:
    """Compare every variant, one fit per seed, with the variant called `reference`; `costs` may have any common unit.

    `others` is the run-to-run evidence of other sweeps of the scale; the comparison uses it if seeds are few. `footing`
    is given with the fits that count on it; by default it is found, and runs that end before are left out.

    Raises AblationsError if the reference, a fit or a cost is missing.
    """
    if reference not in curves_by_variant:
        raise AblationsError(f"reference {reference!r} has no fit; variants: {', '.join(curves_by_variant) or 'none'}")
    for name, fits in curves_by_variant.items():
        if not fits:
            raise AblationsError(f"variant {name!r} has no fit; a comparison needs at least one seed of each variant")
        if name not in costs:
            raise AblationsError(f"variant {name!r} has no cost; costs are given for: {', '.join(costs) or 'none'}")
    if footing is None:
        curves_by_variant, footing = that_count(curves_by_variant, reference)
    baseline = curves_by_variant[reference]
    asked = {one: asked_at(one, footing.compute) for one in QUESTIONS}
    spreads = run_to_run_spreads(tuple(curves_by_variant.values()), baseline, others, footing.compute)
    num_comparisons = max(len(curves_by_variant) - 1, 1)
    variants = []
    for name, fits in curves_by_variant.items():
        answers = {
            one.name: Answer.of_reference(one)
            if name == reference
            else Answer.of(
                one,
                asked[one].difference(fits, baseline, spreads[one.name], num_comparisons),
                read_at=footing.own.get(name),
            )
            for one in QUESTIONS
        }
        variants.append(
            _variant_result(
                name,
                fits,
                baseline,
                spreads["ceiling"],
                cost=costs[name],
                level_compute=footing.of(name),
                answers=answers,
                is_reference=name == reference,
            )
        )
    ranked = {line.name: line.answers[LEVEL.name] for line in variants if line.name not in footing.own}
    return Comparison(
        reference=reference,
        footing=footing,
        variants=tuple(variants),
        spreads=spreads,
        leader=leader_among(curves_by_variant, ranked, asked[LEVEL], spreads[LEVEL.name]),
        others=others,
        unlike=unlike_siblings(curves_by_variant, footing.compute, spreads[LEVEL.name]),
    )


def run_to_run_spreads(
    variants: Sequence[Sequence[Fit]],
    baseline: Sequence[Fit],
    others: OtherSweeps = NO_OTHERS,
    compute: float | None = None,
) -> dict[str, RunToRun]:
    """The run-to-run spread of each number, by its name, from the seeds of these variants and from other sweeps, in a
    comparison at this compute.
    """
    return {one.name: asked_at(one, compute).spread_of(variants, baseline, others.of(one.name)) for one in QUESTIONS}


def that_count(fits: Mapping[str, Sequence[Fit]], reference: str) -> tuple[dict[str, Sequence[Fit]], Footing]:
    """The fits of the runs that count in a comparison, by variant, and its footing; there is at least one fit."""
    footing = footing_of_fits(fits, reference)
    return {name: reaching(some, footing.of(name)) for name, some in fits.items()}, footing


def _variant_result(
    name: str,
    fits: Sequence[Fit],
    baseline: Sequence[Fit],
    spread: RunToRun,
    *,
    cost: float,
    level_compute: float,
    answers: Mapping[str, Answer],
    is_reference: bool,
) -> VariantResult:
    """Build the result of one variant; `spread` is the run-to-run spread of A."""
    ceiling, under_eq1 = mean_ceiling(fits, spread), mean_ceiling_under_eq1(fits, spread)
    assert ceiling.lo is not None  # every fit bounds A from below
    assert under_eq1.lo is not None
    verdict = verdict_together(fits, ceiling.lo, ceiling.hi)
    rises = rise_together(fits)
    levels = levels_of(fits, level_compute)
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
        fit_verdict=verdict,
        points=sum(fit.points for fit in fits),
        window=(min(fit.window[0] for fit in fits), max(fit.window[1] for fit in fits)),
        cost=cost,
        level=float(np.mean(levels.values)) if levels else None,
        level_compute=level_compute,
        paper_rule=REFERENCE if is_reference else paper_rule(by_the_paper),
        answers=answers,
    )


def fishers_p(p_values: Sequence[float]) -> float:
    """Combine m independent p-values: P(chi-squared with 2 m degrees of freedom > -2 sum ln p) (Fisher 1925)."""
    return float(chdtrc(2 * len(p_values), -2 * float(np.sum(np.log(p_values)))))


def _geometric_mean(values: Sequence[float]) -> float:
    return math.exp(float(np.mean(np.log(values))))
