"""The card of a study: each claim of the paper, its measurement here, and the outcome.

>>> card = card_of(open_sweep("fig4a"))
>>> [(judged.claim.variant, judged.outcome) for judged in card.claims]
[('pipeline-8', 'holds'), ('pipeline-8', 'cannot tell')]

The card of a study at several scales also has the differences across scales, and judges the claims about them. A study
writes its card as `card.json` into its sweep's folder.

A claim "up by d" about a difference with the 95 % interval [lo, hi]:

    holds                          lo > 0: the sign is the claimed one
    holds but smaller              also hi < d, if the claim states d
    opposite                       hi < 0
    no difference of that size     otherwise, if hi < d
    cannot tell                    otherwise

A claim "the same within d" holds if -d < lo and hi < d, is opposite if lo > d or hi < -d, and otherwise stays
undecided. So each wrong verdict needs an interval that misses the truth. Ratios of compute are taken as logarithms.

A claim "carries", "fades" or "flips" holds if that is the word over scales (`ablations.answers.ladder`), is opposite if
it is another of them, and otherwise stays undecided.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from ablations.answers.answer import CANNOT_TELL, Answer
from ablations.answers.ladder import LadderWord
from ablations.answers.questions import BY_NAME
from ablations.errors import AblationsError
from ablations.findings.regime import RegimeNumber, regime_of
from ablations.findings.results import Results, compared
from ablations.findings.scale_ladder import ScaleLadder
from ablations.home.declared import Declaration, declarations, first_with
from ablations.home.home import Home
from ablations.home.started_sweep import read_sweep
from ablations.study.claims import Claim
from scalerl.plain_json import parsed_json

ClaimOutcome = Literal["holds", "holds but smaller", "opposite", "no difference of that size", "cannot tell"]
CARD_FILE = "card.json"
"""File name in the folder of its sweep."""


def judged_claim(claim: Claim, answer: Answer | None) -> ClaimOutcome:
    """The outcome of a claim, given the answer to its question; None if the variant is not compared.

    A variant read at less compute than the others says nothing about a claim at the full budget. The claim `ceiling
    up by 0.09` with the interval [-0.01, 0.06] gives "no difference of that size".
    """
    if answer is None or answer.read_at is not None:
        return "cannot tell"
    ends = answer.question.scaled(answer.lo), answer.question.scaled(answer.hi)
    lo, hi = (-math.inf if ends[0] is None else ends[0]), (math.inf if ends[1] is None else ends[1])
    if claim.says == "same":
        if -claim.size < lo and hi < claim.size:
            return "holds"
        return "opposite" if lo > claim.size or hi < -claim.size else "cannot tell"
    if claim.says == "down":
        lo, hi = -hi, -lo
    if lo > 0:
        return "holds but smaller" if claim.by is not None and hi < claim.size else "holds"
    if hi < 0:
        return "opposite"
    return "no difference of that size" if hi < claim.size else "cannot tell"


def judged_over_scales(claim: Claim, word: LadderWord | None) -> ClaimOutcome:
    """The outcome of a claim over scales, given the word there; None if there is only one scale."""
    if word is None or word == CANNOT_TELL:
        return "cannot tell"
    return "holds" if word == claim.says else "opposite"


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
    """How the difference develops over scales; None for any other claim, or with only one scale."""

    def to_json(self) -> dict[str, Any]:
        ends = {name: getattr(self.found, name, None) for name in ("estimate", "lo", "hi")}
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
    """None if its interval has no upper end, since the estimate is then meaningless."""
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
    def regime(self) -> list[RegimeNumber]:
        """How far the reference's runs are from the paper's regime; empty if no log has a step."""
        return regime_of(self.results)

    @cached_property
    def declarations(self) -> list[Declaration]:
        """Declarations of the study, the oldest first."""
        return declarations(self.results.sweep)

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
            A, lo, hi = (line.asymptote.A, line.asymptote.lo, line.asymptote.hi) if line else (None, None, None)
            found.append(PublishedVariant(variant=variant, A=fit.get("A"), A_here=A, A_lo=lo, A_hi=hi))
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
            "regime": [one.to_json() for one in self.regime],
            "over_scales": self.ladder and self.ladder.to_json(),
            "num_seeds": self.num_seeds,
            "budget_gpu_hours": plan.budget_gpu_hours,
            "cost_gpu_hours": self.cost_gpu_hours,
            "compute_name": plan.compute_name,
            "code_versions": self.results.code_versions,
        }

    def declared(self, claim: Claim) -> Declaration | None:
        """The declaration that first contained a claim; None if none did.

        A claim over scales rests on the readings of all of them, so the first declaration at any counts, and one scale
        without it is enough for None.
        """
        if not self.declarations:
            return None
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
    claims = [Claim(**written) for written in sweep.plan.claims]
    if not claims:
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


@dataclass(frozen=True, kw_only=True)
class WrittenCard:
    """A written card: `WrittenCard(sweep="fig4a@smoke", scale="smoke", ...)`."""

    sweep: str
    scale: str
    doc: str
    num_seeds: int
    claims: tuple[JudgedClaim, ...]
    published: tuple[PublishedVariant, ...] = ()


def read_card(folder: Path) -> WrittenCard | None:
    """The card in a sweep's folder; None if there is none, AblationsError if it is damaged or in an earlier format."""
    path = folder / CARD_FILE
    try:
        data = parsed_json(path.read_bytes())
        return WrittenCard(
            sweep=folder.name,
            scale=data["scale"],
            doc=data["doc"],
            num_seeds=data["num_seeds"],
            claims=tuple(_written_claim(one) for one in data["claims"]),
            published=tuple(PublishedVariant(**one) for one in data["published"]),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ValidationError) as error:
        study, _, scale = folder.name.partition("@")
        at, where = f" --scale {scale}" if scale else "", Home(folder.parents[1]).end_of_command
        command = f"platform reproduce {study}{at}{where}"
        why = f"{path} cannot be read ({type(error).__name__}: {error})"
        raise AblationsError(f"{why}; to rewrite it, run `{command}`") from None


def _written_claim(data: dict[str, Any]) -> JudgedClaim:
    claim = Claim(**{name: value for name, value in data.items() if name in Claim.model_fields})
    return JudgedClaim(
        claim=claim,
        found=Answer.written(BY_NAME[claim.of], **data["found"]),
        outcome=data["outcome"],
        word=data.get("over_scales"),
    )


def read_cards(home: Home) -> Iterator[WrittenCard | AblationsError]:
    """Every card of a home folder, the most recent sweep first; for an unreadable card, the error."""
    for name in home.sweep_names():
        try:
            card = read_card(home.sweep(name))
        except AblationsError as error:
            yield error
        else:
            if card is not None:
                yield card


def sign_text(judged: JudgedClaim) -> str:
    """Whether the estimate lies on the claimed side, `same` or `other`; empty if the claim names no side or there is no
    estimate.
    """
    claim, found = judged.claim, judged.found
    if claim.says not in ("up", "down") or found is None or found.estimate is None:
        return ""
    return "same" if (found.estimate > found.question.no_difference) == (claim.says == "up") else "other"


def order_text(published: Sequence[PublishedVariant]) -> str:
    """`same order` if the variants follow the paper's order of ceilings, else the order here; empty for fewer than two.

    Variants with equal ceilings in the paper may come in either order.
    """
    both = [one for one in published if one.A is not None and one.A_here is not None]
    if len(both) < 2:
        return ""
    here = sorted(both, key=lambda one: one.A_here or 0.0)
    if all((a.A or 0.0) <= (b.A or 0.0) for a, b in pairwise(here)):
        return "same order"
    return f"other order: {' < '.join(one.variant for one in here)}"
