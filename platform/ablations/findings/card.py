"""The card of a study: each claim of the paper, its measurement here, and the outcome.

>>> card = card_of(open_sweep("fig4a"))
>>> [(judged.claim.variant, judged.outcome) for judged in card.claims]
[('pipeline-8', 'holds'), ('pipeline-8', 'cannot tell')]

The card of a study over scales also has its differences over all of them, and judges what is claimed of those.
"""

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from ablations.answers.answer import Answer
from ablations.answers.ladder import LadderWord
from ablations.errors import AblationsError
from ablations.findings.judgement import ClaimOutcome, judged_claim, judged_over_scales
from ablations.findings.results import Results, compared
from ablations.findings.scale_ladder import ScaleLadder
from ablations.home.declared import Declaration, declarations, first_with
from ablations.home.started_sweep import read_sweep
from ablations.study.claims import Claim

CARD_FILE = "card.json"
"""File name in the folder of its sweep."""


@dataclass(frozen=True, kw_only=True)
class JudgedClaim:
    """A claim with its answer and outcome.

    JudgedClaim(claim=claim, found=Answer(question=CEILING, estimate=0.03, lo=0.01, hi=0.05, ...), outcome="holds")
    """

    claim: Claim
    found: Answer | None
    """The difference in pass rate, or the ratio of computes; None if the variant is not compared."""
    outcome: ClaimOutcome
    word: LadderWord | None = None
    """What becomes of the difference over scales; None of any other claim, and with one scale."""

    def to_json(self) -> dict[str, Any]:
        found = self.found
        numbers = (None, None, None) if found is None else (found.estimate, found.lo, found.hi)
        ends = dict(zip(("estimate", "lo", "hi"), numbers, strict=True))
        return self.claim.model_dump() | {"found": ends, "over_scales": self.word, "outcome": self.outcome}


@dataclass(frozen=True, kw_only=True)
class PublishedVariant:
    """A variant with a published ceiling, and its ceiling here.

    PublishedVariant(variant="bs2048", A=0.645, A_here=0.71, A_lo=0.69, A_hi=None)
    """

    variant: str
    A: float | None
    """The published ceiling."""
    A_here: float | None
    """None if its interval has no upper end, since the estimate then has no meaning."""
    A_lo: float | None
    A_hi: float | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Card:
    """The outcomes of the claims in a study's sweep file; the first claim is the study's own question."""

    results: Results
    claims: tuple[JudgedClaim, ...]
    ladder: ScaleLadder | None = None
    """The differences over all scales at which the study was started; None for one scale."""

    @property
    def outcome(self) -> ClaimOutcome:
        """The outcome of the first claim."""
        return self.claims[0].outcome

    @cached_property
    def declarations(self) -> list[Declaration]:
        """Declarations of the study, the first one first."""
        return declarations(self.results.sweep) if self.results.sweep else []

    @property
    def num_seeds(self) -> int:
        """The smallest number of fitted seeds of any variant."""
        return min(len(variant.fits) for variant in self.results.variants)

    @property
    def published(self) -> tuple[PublishedVariant, ...]:
        """The variants with published fits."""
        found = []
        for variant, fit in self.results.plan.published.items():
            line = self.results.compared(variant)
            here = line and line.asymptote
            A, lo, hi = (here.A, here.lo, here.hi) if here else (None, None, None)
            own = fit.get("A")
            found.append(PublishedVariant(variant=variant, A=own, A_here=A, A_lo=lo, A_hi=hi))
        return tuple(found)

    @property
    def cost_gpu_hours(self) -> float:
        """Compute of all runs, in the plan's `compute_name`."""
        return sum(variant.cost_gpu_hours for variant in self.results.variants)

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON, the content of `card.json`."""
        plan = self.results.plan
        return {
            "study": plan.sweep,
            "doc": plan.doc,
            "scale": plan.scale,
            "outcome": self.outcome,
            "claims": [one.to_json() | {"declared": _written(self.declared(one.claim))} for one in self.claims],
            "published": [asdict(one) for one in self.published],
            "over_scales": self.ladder and self.ladder.to_json(),
            "num_seeds": self.num_seeds,
            "budget_gpu_hours": plan.budget_gpu_hours,
            "cost_gpu_hours": self.cost_gpu_hours,
            "compute_name": plan.compute_name,
            "code_versions": self.results.code_versions,
        }

    def declared(self, claim: Claim) -> Declaration | None:
        """The declaration in which a claim first stood; None if it never did.

        A claim over scales rests on the readings of all of them, so the first declaration at any counts, and one scale
        without it is enough for None.
        """
        if not self.declarations:
            return None
        assert self.results.sweep is not None, "only a sweep has declarations"
        sweeps = [self.results.sweep]
        if claim.is_over_scales and self.ladder is not None:
            sweeps = [read_sweep(sweeps[0].home, scale.sweep) for scale in self.ladder.scales]
        firsts = [first_with(claim.model_dump(), declarations(sweep)) for sweep in sweeps]
        known = [one for one in firsts if one is not None]
        return min(known, key=lambda one: one.at) if len(known) == len(firsts) else None


def _written(first: Declaration | None) -> dict[str, Any] | None:
    return first and {"at": first.at, "readings": first.readings, "sha256": first.sha256}


def card_of(results: Results, ladder: ScaleLadder | None = None) -> Card:
    """The card of a sweep planned with claims; AblationsError if it has none. `ladder` is the study over its scales.

    A claim against a variant other than the reference is judged by a comparison with that variant.
    """
    plan, sweep = results.plan, results.sweep
    claims = [Claim(**written) for written in sweep.plan.claims] if sweep else []
    if sweep is None or not claims:
        raise AblationsError(
            f"sweep '{plan.sweep}' has no claims; write the paper's claims under `claims:` in its file"
        )
    by_baseline = {plan.reference: results}
    for claim in claims:
        if claim.against is not None and claim.against not in by_baseline:
            other = replace(sweep, plan=replace(sweep.plan, reference=claim.against))
            by_baseline[claim.against] = compared(other, results.variants)
    return Card(
        results=results,
        claims=tuple(_judged(by_baseline[claim.against or plan.reference], claim, ladder) for claim in claims),
        ladder=ladder,
    )


def _judged(results: Results, claim: Claim, ladder: ScaleLadder | None) -> JudgedClaim:
    if claim.is_over_scales:
        found = ladder and ladder.of(claim.variant, claim.of)
        word = found and found.word
        return JudgedClaim(claim=claim, found=None, outcome=judged_over_scales(claim, word), word=word)
    line = results.compared(claim.variant)
    found = line and line.answers[claim.of]
    return JudgedClaim(claim=claim, found=found, outcome=judged_claim(claim, found))
