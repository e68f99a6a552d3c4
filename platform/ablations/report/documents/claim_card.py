"""A card as a document: a line per claim, what the outcomes mean, the cost, and the differences from the paper's
setup."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from ablations.findings.claim_card import Card, ClaimOutcome, JudgedClaim
from ablations.report.documents.blocks import Blocks, Cell, Figure, Heading, Kind, Table, Text, Tone, table_of_rows
from ablations.report.documents.ladder import ladder_section
from ablations.report.documents.regime import regime_section
from ablations.report.figures.curves import CURVES_LEGEND, curves_chart
from ablations.study.claims import Claim, Quantity
from ablations.text import RATIO, compute_text, counted, interval_text
from scalerl.recipe import ResolvedRecipe
from scalerl.recipe.episodes import Episodes, turn_limit

OUTCOMES: dict[ClaimOutcome, str] = {
    "holds": "the interval lies on the claimed side, or within the claimed margin; over scales, the word is the "
    "claimed one",
    "holds but smaller": "the interval lies on the claimed side, but rules out a difference as large as claimed",
    "opposite": "the interval lies on the other side, or outside the margin; over scales, a different word applies",
    "no difference of that size": "the interval rules out a difference as large as claimed",
    "cannot tell": "the interval allows both what is claimed and its absence",
}
UNKNOWN_QUANTITY: dict[Quantity, str] = {
    "level": "no level",
    "ceiling": "no upper end",
    "compute": "no common target",
}
"""Reasons why the runs give no difference."""
PAPER_PARAMETERS = "8 billion"
OUTCOME_TONES: dict[ClaimOutcome, Tone] = {
    "holds": "good",
    "holds but smaller": "good",
    "opposite": "bad",
    "no difference of that size": "bad",
    "cannot tell": "faint",
}
CLAIM_HEADINGS = ("claimed", "here", "the claim", "source")
CLAIM_KINDS: dict[str, Kind] = {"claimed": "prose", "the claim": "words", "source": "words"}


def card_document(card: Card, unlike: Sequence[str], *, with_ladder: bool = True) -> Blocks:
    """The claims beside the findings, then notes, how the study is `unlike` the paper's, the curves, and the ladder."""
    plan = card.results.plan
    found = {one.outcome for one in card.claims}
    notes = [*(f"{outcome}: {meaning}." for outcome, meaning in OUTCOMES.items() if outcome in found)]
    notes += card_notes(card, unlike)
    return [
        Heading(text=f"{plan.sweep}: {tally_text(card.claims)}", level=1),
        Text(text=plan.doc),
        claims_table(card.claims),
        *(Text(text=note, kind="note") for note in notes),
        Figure(name="curves", caption=CURVES_LEGEND, chart=curves_chart(card.results)),
        Text(text=plan.command),
        *(regime_section(card.regime, plan.reference) if card.regime else ()),
        *(ladder_section(card.ladder) if card.ladder and with_ladder else ()),
    ]


def claims_table(claims: Sequence[JudgedClaim]) -> Table:
    """A line per claim."""
    return table_of_rows([claim_cells(one) for one in claims], name="claims", kinds=CLAIM_KINDS)


def claim_cells(judged: JudgedClaim) -> dict[str, Cell | str]:
    """The cells of a claim: `fp32: ceiling up by 0.09`, `+0.031 [0.010, 0.052]`, `holds`, `figure 5b`."""
    found = Cell(found_text(judged), judged.found and judged.found.estimate)
    outcome = Cell(judged.outcome, tone=OUTCOME_TONES[judged.outcome])
    return dict(zip(CLAIM_HEADINGS, (claim_text(judged.claim), found, outcome, judged.claim.source), strict=True))


def claim_text(claim: Claim) -> str:
    """A claim as text.

    `fp32: ceiling up by 0.09`, `gspo-1e-4 against gspo-1e-3: ceiling down`, `bs512: same ceiling within 0.02`, `dapo:
    difference in level fades over scales`
    """
    if claim.is_over_scales:
        return f"{claim.variant}: difference in {claim.of} {claim.says} over scales"
    who = claim.variant if claim.against is None else f"{claim.variant} against {claim.against}"
    size = f"a factor of {math.exp(claim.size):.3g}" if claim.of == "compute" else f"{claim.size:g}"
    if claim.says == "same":
        return f"{who}: same {claim.of} within {size}"
    stated = f" by {size}" if claim.by is not None else ""
    if claim.of == "compute":
        return f"{who}: {'less' if claim.says == 'down' else 'more'} compute{stated}"
    return f"{who}: {claim.of} {claim.says}{stated}"


def found_text(judged: JudgedClaim) -> str:
    """A finding as text, `+0.031 [+0.010, +0.052]`, for compute `x 1.31 [1.10, 1.62]`; if there is none, the reason."""
    found = judged.found
    if judged.claim.is_over_scales:
        return judged.word or "one scale, or no interval at two"
    if found is None or (found.lo is None and found.hi is None):
        return UNKNOWN_QUANTITY[judged.claim.of]
    if judged.claim.of == "compute":
        return f"x {interval_text(found.estimate, found.lo, found.hi, RATIO)}"
    return interval_text(found.estimate, found.lo, found.hi, "+z.3f")


def tally_text(claims: Sequence[JudgedClaim]) -> str:
    """The outcomes of all claims: `cannot tell` for one, `1 holds, 2 cannot tell` for three."""
    counts = Counter(one.outcome for one in claims)
    if len(claims) == 1:
        return claims[0].outcome
    return ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome])


def cost_sentence(card: Card) -> str:
    """The cost in a sentence: `9 runs, 3 seeds, 18,900 modelled GPU-hours in all, 2,100 each.`

    `9 runs, of which 5 count, 10,100 modelled GPU-hours in all of 2,100 each.` if a run has no fit or ended early.
    """
    plan, runs = card.results.plan, card.results.runs
    num_counting = sum(variant.num_counting for variant in card.results.variants)
    is_whole = num_counting == len(runs)
    had = counted(card.num_seeds, "seed") if is_whole else f"of which {num_counting} count"
    return (
        f"{counted(len(runs), 'run')}, {had}, {compute_text(card.cost_gpu_hours)} {plan.compute_name} in all"
        f"{',' if is_whole else ' of'} {compute_text(plan.budget_gpu_hours)} each."
    )


def unlike_the_paper(recipe: ResolvedRecipe, parameters: int) -> list[str]:
    """Differences of a run from the paper's setup, one sentence each; `parameters` is the number of its model's
    parameters.

    The paper trains a model of 8 billion parameters on mathematics with answers of up to 14k tokens, 48 x 16 rollouts a
    step, on 80 GPUs, and evaluates 1,000 held-out prompts 16 times (ScaleRL §2, A.3, A.5).
    """
    said = []
    if parameters < 1e9:
        said.append(f"The model has {parameters:,} parameters, not {PAPER_PARAMETERS}.")
    if recipe.model.type != "pretrained":
        said.append("The model is made from scratch and taught the form of an answer, not pretrained.")
    tasks = [task.title for task in recipe.tasks]
    if tasks != ["math"]:
        said.append(f"The task is {' and '.join(tasks)}, not mathematics.")
    episodes, most = [task for task in recipe.tasks if isinstance(task, Episodes)], recipe.generation.max_tokens
    if most != 14336 and len(episodes) < len(recipe.tasks):
        said.append(f"Answers have up to {most:,} tokens, not 14,336.")
    for task in episodes:
        limits = f"{counted(task.turns, 'turn')} of {turn_limit(task, most):,} tokens"
        said.append(f"Episodes of {task.title} have up to {limits}, not one answer of up to 14,336.")
    rollouts = recipe.batch.prompts * recipe.batch.generations
    if rollouts != 768:
        said.append(f"A step has {recipe.batch.prompts} x {recipe.batch.generations} rollouts, not 48 x 16.")
    if recipe.cluster.type == "virtual":
        devices = recipe.cluster.generators + recipe.cluster.trainers
        said.append(f"Time is modelled for {counted(devices, 'GPU')}: compute is not measured.")
    generator = recipe.generator
    if generator.type == "torch" and recipe.learner.type == "torch":
        parts, rounds = generator.head_parts, generator.products == "bfloat16"
        said.append(
            "One engine generates and trains; during generation the engine rounds the factors of its products to BF16."
            if rounds and parts == 1
            else "One engine generates and trains, so equal weights give equal probabilities."
            if parts == 1
            else (
                f"One engine generates and trains; during generation the engine sums the head in {parts} parts, so "
                "that only a BF16 head rounds differently"
                + (", and rounds the factors of its other products to BF16." if rounds else ".")
            )
        )
    return said


def declared_sentences(card: Card) -> list[str]:
    """Sentences on when the claims were declared, and on later changes of the design."""
    found = card.declarations
    if not found:
        return ["The study was started before claims were sealed, so the time of these claims is unknown."]
    firsts = [card.declared(one.claim) for one in card.claims]
    if all(first == found[0] for first in firsts):
        said = [f"Claims and design: declared {found[0].when} (sha256 {found[0].sha256[:12]})."]
    else:
        said = [
            f"{claim_text(one.claim)}: {'not declared' if first is None else f'declared {first.when}'}."
            for one, first in zip(card.claims, firsts, strict=True)
        ]
    changes = [
        f"Design changed {later.when}: {design_changes(before.design, later.design)}."
        for before, later in pairwise(found)
        if before.design != later.design
    ]
    return [*said, *changes]


def design_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Differences between two designs: `seeds 0, 1, 2 to 0, 1, 2, 3, 4`."""

    def text(value: Any) -> str:
        return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

    changed = [key for key in after if before.get(key) != after[key]]
    return "; ".join(
        f"{key.replace('_gpu_hours', '')} {text(before.get(key))} to {text(after[key])}" for key in changed
    )


def card_notes(card: Card, unlike: Sequence[str]) -> list[str]:
    """Cost and seeds, the warnings about the runs, and the sentences `unlike` the paper."""
    results = card.results
    return [
        *declared_sentences(card),
        cost_sentence(card),
        *(one.text for one in results.remarks),
        *results.reasons,
        f"Different from the paper: {' '.join(unlike)}",
    ]
