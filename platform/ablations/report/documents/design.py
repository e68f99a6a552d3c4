"""The resolution of a study's designs as a document: a line per design, and the basis of the numbers."""

import math
from collections.abc import Sequence
from itertools import chain

from ablations.answers.half_widths import POWER, Sight
from ablations.answers.known_scale import PAPER_BUDGET
from ablations.answers.questions import LEVEL
from ablations.findings.cheapest_design import Foreseen, Prospect
from ablations.findings.curve_design import CurveDesign
from ablations.findings.earlier_runs import MOST_RUNS
from ablations.findings.results import Results
from ablations.fit.options import MIN_READINGS
from ablations.report.documents.blocks import Blocks, Cell, Text, table_of_rows
from ablations.report.documents.number_cells import compute_cell, number_cell
from ablations.study.pairs import balance_text, balanced_pairs, pair_names
from ablations.text import at_scale, compute_text, counted, duration_text, ratio_text

NOT_SEEN = "-"
TITLE = "smallest detectable difference, by design"
SEEN = (
    f"Level, ceiling, compute: the smallest true difference that the verdict detects with {POWER:.0%} power, in pass "
    f"rate; for compute as a ratio. {NOT_SEEN}: none."
)
"""The note on the last three columns."""


def design_document(prospect: Prospect, question: str = "level", wanted: float | None = None) -> Blocks:
    """The designs, cheapest first, what the file's own design would detect, and the cheapest design that detects a
    difference of `wanted` (its ln for compute)."""
    study = prospect.blueprint.study
    title = f"{study.sweep.name}{at_scale(study.scale)}: {TITLE}"
    rows = [_cells(prospect, one) for one in prospect.by_cost]
    said = [*_notes(prospect), own_sentence(prospect), *_pair_sentences(prospect)]
    said += [] if wanted is None else [answer(prospect, question, wanted)]
    return [table_of_rows(rows, name="designs", title=title), *(Text(text=text) for text in said)]


def curve_design_document(results: Results, designs: Sequence[CurveDesign]) -> Blocks:
    """The designs of a study that is known only from its curves."""
    assert results.comparison is not None
    spread = results.comparison.spreads[LEVEL.name]
    rows = [
        {
            "seeds": number_cell(one.seeds, "g"),
            "budget": compute_cell(one.budget),
            "cost": compute_cell(one.cost),
            **{question: _seen_cell(question, sight) for question, sight in one.sights.items()},
        }
        for one in designs
    ]
    said = [
        f"{SEEN} Cost: {results.plan.compute_name} of {counted(len(results.variants), 'variant')}.",
        f"Curve and noise are those of {results.plan.reference}; runs differ by a sd of {spread.paired_tau:.4f} in "
        f"level ({counted(spread.freedom, 'degree')} of freedom). The interval of evaluations is that of the file.",
    ]
    table = table_of_rows(rows, name="designs", title=f"{results.title}: {TITLE}", kinds={"seeds": "number"})
    return [table, *(Text(text=text) for text in said)]


def _cells(prospect: Prospect, one: Foreseen) -> dict[str, Cell | str]:
    """A design; the file's own has a mark. Time and the compute left are shown if they are known and differ."""
    unit, choice, is_begun = prospect.blueprint.unit, one.choice, _is_begun(prospect)
    time = Cell(NOT_SEEN if one.seconds is None else duration_text(one.seconds, digits=2), one.seconds)
    return {
        "": "file" if one is prospect.own else "",
        "seeds": number_cell(len(choice.seeds), "g"),
        "budget": number_cell(choice.budget, "g"),
        "samples": number_cell(choice.samples, "g"),
        "runs": number_cell(one.costs.num_runs, "g"),
        "cost": compute_cell(one.costs.whole * unit),
        **({"to train": compute_cell(one.costs.left * unit)} if is_begun else {}),
        **({"time": time} if prospect.known.speed else {}),
        **{question: _seen_cell(question, one.sights[question]) for question in ("level", "ceiling", "compute")},
    }


def _is_begun(prospect: Prospect) -> bool:
    """True if this home folder has some of the compute that a design needs."""
    return any(one.costs.left != one.costs.whole for one in prospect.designs)


def _seen_cell(question: str, sight: Sight) -> Cell:
    """The smallest detectable difference, `0.024`; for compute a factor, `x 1.31`; `-` if none is detectable."""
    if sight.seen is None:
        return Cell(NOT_SEEN)
    return Cell(f"x {ratio_text(math.exp(sight.seen))}" if question == "compute" else f"{sight.seen:.3f}", sight.seen)


def _notes(prospect: Prospect) -> list[str]:
    blueprint = prospect.blueprint
    name = blueprint.study.reference.recipe.compute_name
    found = [f"{SEEN} Cost: {name} of {counted(blueprint.num_variants, 'variant')}; evaluations cost none."]
    if _is_begun(prospect):
        found.append("To train: compute that this home folder does not have yet.")
    if prospect.known.speed is not None:
        found.append("Time: the runs to train, one after the other, at the speed of earlier runs here.")
    if any(len(one.choice.seeds) == 1 for one in prospect.designs):
        others = ", ".join(prospect.known.others.sweeps)
        so = f"the run-to-run spread of its verdicts comes from {others}" if others else "its verdicts are provisional"
        found.append(f"One seed does not show how much runs differ: {so}.")
    return [*found, source_sentence(prospect)]


def own_sentence(prospect: Prospect) -> str:
    """The resolution of the file's own design, in one sentence."""
    own = prospect.own
    if not own.can_be_fitted:
        found = counted(own.num_readings, "evaluation")
        return f"As written, no run can be fitted: it would have {found} after step 0; a fit needs {MIN_READINGS}."
    seen = "; ".join(_seen(question, own.sights[question]) for question in own.sights)
    size = f"{counted(len(own.choice.seeds), 'seed')}, {counted(own.costs.num_runs, 'run')}"
    return f"As written ({size}), the study would detect, with {POWER:.0%} power: {seen}."


def _seen(question: str, sight: Sight) -> str:
    no_end = f"{sight.open:.0%} of its intervals without an end" if sight.open else ""
    if sight.seen is None:
        return f"no difference in {question}{f' ({no_end})' if no_end else ''}"
    width = "" if sight.half_width is None else f"intervals {_half(question, sight.half_width)}"
    said = ", ".join(part for part in (width, no_end) if part)
    interval = f" ({said})" if said else ""
    return f"{_difference(question, sight.seen, '.3f')}{interval}"


def _half(question: str, half_width: float) -> str:
    return f"to a factor of {ratio_text(math.exp(half_width))}" if question == "compute" else f"±{half_width:.3f}"


def _pair_sentences(prospect: Prospect) -> list[str]:
    """The cost and the resolution of pairs of changes, and which to train where all are many; none without pairs."""
    study, own = prospect.blueprint.study, prospect.own
    pairs, possible = study.pairs, study.possible_pairs
    if not pairs:
        return []
    each = len(own.choice.seeds) * own.choice.budget * prospect.blueprint.unit
    whole, name = own.costs.whole * prospect.blueprint.unit, study.reference.recipe.compute_name
    cost = f"{compute_text(len(pairs) * each)} of {compute_text(whole)} {name}"
    said = [f"{balance_text(pairs, possible).capitalize()}, take {cost}."]
    if own.interaction.seen is not None:
        seen = f"an interaction of {own.interaction.seen:.3f} in level"
        said.append(f"For one pair, the study would detect {seen}, with {POWER:.0%} power.")
    changes = len(set(chain.from_iterable(possible)))
    if study.sweep.pairs is True and len(pairs) > changes:
        some = balanced_pairs(pairs, changes)
        cost = f"{compute_text(changes * each)} {name}"
        said.append(f"`pairs: {changes}` would train {balance_text(some, pairs)}, for {cost}: {pair_names(some)}.")
    return said


def _sd_text(*sds: float) -> str:
    """Standard deviations as text: `0.0117`, `0.0090 to 0.0117`, or `at most 0.0117` where one is next to 0."""
    lowest, highest = (f"{one:.4f}" for one in (min(sds), max(sds)))
    if lowest == highest:
        return highest
    return f"at most {highest}" if float(lowest) == 0 else f"{lowest} to {highest}"


def source_sentence(prospect: Prospect) -> str:
    """The basis of the numbers, and the share of assumptions, in one sentence."""
    known, scale = prospect.known, prospect.blueprint.study.scale
    spread = known.spread
    sd = _sd_text(spread.level, spread.ceiling)
    if known.is_stated:
        between = f"the stated run-to-run sd of {sd}"
    elif spread.freedom:
        between = f"a run-to-run sd of {sd} ({counted(spread.freedom, 'degree')} of freedom)"
    else:
        between = f"an assumed run-to-run sd of {sd}"
    of_what = f"scale {scale}" if scale else "this program"
    if not known.num_runs:
        unit = "one unit of the scale" if scale else "the budget of the file"
        return (
            f"No earlier run of {of_what} in this home folder has a fit, so these numbers rest on {between} and on "
            f"the paper's curve and noise, with its {PAPER_BUDGET:,.0f} GPU-hours as {unit}."
        )
    runs = f"{counted(known.num_runs, 'earlier run')} of {of_what}"
    most = " (no more are read)" if known.num_runs == MOST_RUNS else ""
    return f"These numbers rest on {runs}{most}: their curves and noise, and {between}."


def answer(prospect: Prospect, question: str, detect: float) -> str:
    """The cheapest design that detects a wanted difference, with the settings to write; or a note that none does."""
    wanted = _difference(question, detect)
    found = prospect.cheapest(question, detect)
    if found is None:
        finest = prospect.finest(question)
        said = f"None of the {len(prospect.designs)} designs tried would detect {wanted}"
        if finest is None:
            return f"{said}: none detects any difference in {question}."
        smallest = _difference(question, finest.sights[question].seen or 0.0)
        return f"{said}; the smallest detectable difference is {smallest}: {_settings(prospect, finest)}."
    if found is prospect.own:
        return f"The file as it is would detect {wanted}, and no cheaper design tried would."
    spent = "more " if found.costs.left < found.costs.whole else ""
    unit, name = prospect.blueprint.unit, prospect.blueprint.study.reference.recipe.compute_name
    return (
        f"The cheapest design that would detect {wanted}: {_settings(prospect, found)}, for "
        f"{compute_text(found.costs.left * unit)} {spent}{name}."
    )


def _difference(question: str, size: float, form: str = ".3g") -> str:
    if question == "compute":
        return f"a compute ratio of {ratio_text(math.exp(size))}"
    return f"a difference in {question} of {size:{form}}"


def _settings(prospect: Prospect, one: Foreseen) -> str:
    """The settings to write: "`seeds: [0, 1, 2]` and `budget: {compute: 2}` in the file, `--set
    evaluation.samples=32`".
    """
    choice = one.choice
    written = f"`seeds: {list(choice.seeds)}` and `budget: {{compute: {choice.budget:g}}}` in the file"
    if choice.samples == prospect.own.choice.samples:
        return written
    return f"{written}, `--set evaluation.samples={choice.samples}` with it"
