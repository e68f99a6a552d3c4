"""The comparison of a sweep as documents: short for a terminal, and whole for a report."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from ablations.findings.advice import design_hint, is_decided, next_steps
from ablations.findings.order import in_order
from ablations.findings.remark import ON_CURVES, WEIGHTS, Remark, RemarkKind
from ablations.findings.results import Results
from ablations.findings.run_ends import once_per_run
from ablations.findings.scale_ladder import ScaleLadder
from ablations.home.state import State
from ablations.report.documents.blocks import Blocks, Figure, Folded, Heading, Table, Text, TextKind, table_of_rows
from ablations.report.documents.comparison_tables import comparison_table, hours_table, numbers_table
from ablations.report.documents.comparison_words import (
    PAPER_RULE_NOTE,
    changes_said,
    glossary,
    joint_note,
    method,
    sentence,
)
from ablations.report.documents.grid import (
    cell_tables,
    dependence,
    effect_notes,
    effect_tables,
    grid_blocks,
    reference_values,
)
from ablations.report.documents.headline import headline, task_of_sweep
from ablations.report.documents.ladder import ladder_section
from ablations.report.documents.marks import HELD_MARK, marks_said
from ablations.report.documents.methods import methods, origin
from ablations.report.documents.notes import notes_table
from ablations.report.documents.variant_row import VariantRow
from ablations.report.figures.axes import thinned_note
from ablations.report.figures.colours import leading
from ablations.report.figures.curves import CURVES_LEGEND, curves_chart
from ablations.report.figures.forest import DIFFERENCES_LEGEND, forest_chart, left_out_note
from ablations.terminal.short_names import legend
from ablations.text import at_scale, compute_text, counted

MOST_NOTES = 3
"""Limit on the notes of a kind below a comparison without `--explain`."""
ON_LEVELS: tuple[RemarkKind, ...] = ("read early", "ended early", "no level", *ON_CURVES)
"""Kinds of remarks needed to read a level or its interval correctly."""
MOST_ON_LEVELS = 6
"""Limit on these remarks below a comparison without `--explain`."""
FEWEST_LED = 4
"""Number of variants from which the lines of a comparison end with the sentence on the one that leads."""
MOST_CELLS = 16
"""Maximum number of cells of a grid whose tables are shown by default."""
MOST_UNFOLDED = 12
"""Limit on the variants of a report's table that are not folded."""
MOST_REMARKS = 2
"""Limit on the remarks of one weight above the figures; the others are folded."""


def brief_comparison(results: Results, *, explain: bool = False) -> Blocks:
    """A line per variant, the cells and effects of a grid, and notes; with `explain` all remarks, changes, method,
    advice, and the device time."""
    is_small = explain or len(results.variants) <= MOST_CELLS  # the lines of more cells are above
    grid = [*(cell_tables(results) if is_small else ()), *effect_tables(results)]
    notes = _below_marks(results) if explain else brief_notes(results)
    table = comparison_table(results, with_changes=False, title=f"{_title(results)}, 95 % intervals", notes=notes)
    said = [
        *([reference_values(results), dependence(results)] if grid else ()),
        *(explanation(results) if explain else ()),
    ]
    hours = hours_table(results) if explain else None
    return [table, *grid, *(Text(text=text) for text in said if text), *([hours] if hours else ())]


def brief_notes(results: Results) -> list[str]:
    """Variants that end below their start, finished runs that cannot be read, remarks on spoiled runs, on runs that do
    not count and on the compute at which levels are read and, of logs, on data left out; then the meaning of the marks,
    of many variants the one that leads, what to run next, and the command for the rest."""
    if results.comparison is None:
        return [*(one.text for one in results.remarks), *results.notes, *results.reasons]
    named = "" if results.sweep.home.is_passing else " ".join((results.plan.sweep, *results.beside))
    weights = ("error", "warning") if results.plan.imported else ("error",)
    shown = once_per_run(results.remarks)
    below = [one.text for one in shown if one.kind == "below its start"]
    levels = [one.text for one in shown if one.kind in ON_LEVELS]
    others = [one for one in shown if one.kind not in (*ON_LEVELS, "below its start")]
    remarks = [one.text for one in others if one.weight in weights]
    spoiled = [f"{run.name}: {run.reason}" for run in results.runs if run.state == State.DONE and run.curve is None]
    grave = [*below, *results.notes[:MOST_NOTES], *spoiled[:MOST_NOTES], *remarks[:MOST_NOTES]]
    grave += levels[:MOST_ON_LEVELS]
    found = len(shown) + len(results.notes) + len(results.reasons) - len(grave)
    rest = [counted(found, "more remark")] if found else []
    rest += ["the changes"] if any(variant.overrides for variant in results.variants) else []
    where = f"`platform compare {named} --explain{results.sweep.home.end_of_command}`" if named else "--explain"
    more = f"{', '.join(rest)} and the method" if rest else "the method"
    return [*grave, *_below_marks(results), f"{where} also shows {more}."]


def _below_marks(results: Results) -> list[str]:
    """The meaning of the marks, of many variants the one that leads, and what to run next."""
    is_led = len(results.variants) >= FEWEST_LED and not any(one.kind == "below its start" for one in results.remarks)
    return [marks_said(results), *([headline(results)[0]] if is_led else []), next_line(results)]


def explanation(results: Results) -> list[str]:
    """The notes behind a comparison: changes, scale of the curves, warnings, method, advice."""
    plan, joint = results.plan, joint_note(results)
    is_marked = joint and results.comparison and not results.comparison.is_provisional
    return [
        *legend(plan.axes),
        *changes_said(results),
        f"C_mid and cost: {plan.compute_name}.",
        f"{HELD_MARK}: also differs with intervals {joint}." if is_marked else "",
        *effect_notes(results),
        method(results),
        design_hint(results),
        *(one.text for one in once_per_run(results.remarks)),
        *results.notes,
        *results.reasons,
    ]


def _title(results: Results) -> str:
    plan = results.plan
    early = "" if results.read_early is None else f", levels {results.at_compute}"
    if plan.imported:
        return f"{results.title}, {counted(len(results.runs), 'run')}{early}"
    of_task = f", task {plan.fit_settings.task}" if plan.fit_settings.task else ""
    budget = f"{plan.budget_gpu_hours:g} {plan.compute_name} per run"
    return f"{results.title}{at_scale(plan.scale)}{of_task}, {budget}{early}"


def report_document(results: Results, *, now: datetime, ladder: ScaleLadder | None = None) -> Blocks:
    """The whole comparison: verdict, remarks, figures, every number, words, methods and origin. `now` is the date
    shown, `ladder` the study at all of its scales."""
    reference = results.plan.reference
    return [
        *head(results, size=_cost(results)),
        *_text(task_of_sweep(results.sweep)),
        *remark_blocks(results.remarks),
        *note_blocks(results.notes),
        curves_block(results),
        Heading(text=f"Differences from {reference}"),
        differences_block(results),
        Heading(text=f"Comparison with {reference}"),
        *_best_first(results),
        Folded(title="All numbers", blocks=all_numbers(results)),
        *(ladder_section(ladder) if ladder else ()),
        *grid_blocks(results),
        *notes_section(results),
        Heading(text="In words"),
        *(Text(text=sentence(VariantRow(results=results, variant=one))) for one in results.variants),
        *_text(design_hint(results)),
        *([replace(hours, title="Where the hours went")] if (hours := hours_table(results)) else ()),
        Heading(text="Methods"),
        *(Text(text=text) for text in methods(results)),
        Heading(text="What the words mean"),
        *_definitions("words", "word", "meaning", glossary(results)),
        Heading(text="How this was made"),
        *_definitions("origin", "what", "value", origin(results, now)),
    ]


def _cost(results: Results) -> str:
    """`15 runs, 26,620 modelled GPU-hours spent.`; empty for runs of other trainers."""
    spent = compute_text(sum(run.cost_gpu_hours for run in results.runs))
    runs = counted(len(results.runs), "run")
    return "" if results.plan.imported else f"{runs}, {spent} {results.plan.compute_name} spent."


def head(results: Results, *, size: str = "") -> Blocks:
    """The name, the question with the `size` of the study, the first sentence of the verdict, what to run next, and the
    rest of the verdict, which comes first if all is decided."""
    first, *more = headline(results)
    rest, step = " ".join(more), next_line(results)
    return [
        Heading(text=results.title, level=1),
        *_text(f"{results.plan.doc} {size}".strip(), "note"),
        Text(text=first, kind="lead"),
        *([Text(text=f"{rest} {step}".strip())] if is_decided(results) else [*_text(step), *_text(rest)]),
    ]


def next_line(results: Results) -> str:
    """`Next: `platform sweep loo.yaml` continues dapo-s2, which failed.`; empty if there is nothing to run."""
    steps = next_steps(results)
    return f"Next: {' '.join(steps)}" if steps else ""


def remark_blocks(remarks: Sequence[Remark]) -> Blocks:
    """Remarks to read before the numbers, the most serious first; if there are many of one weight, some are folded."""
    blocks = []
    shown = once_per_run(remarks)
    for weight in WEIGHTS:
        said = [Text(text=one.text, kind=weight, runs=one.runs) for one in shown if one.weight == weight]
        more = said[MOST_REMARKS:]
        blocks += said[:MOST_REMARKS]
        blocks += [Folded(title=counted(len(more), f"more {weight}"), blocks=more)] if more else []
    return blocks


def note_blocks(notes: Sequence[str]) -> Blocks:
    """The notes of an import, folded."""
    said = [Text(text=one, kind="note") for one in notes]
    return [Folded(title=f"{counted(len(said), 'note')} on the import", blocks=said)] if said else []


def notes_section(results: Results) -> Blocks:
    """What people have written about the sweeps, their variants and their runs; empty if nothing."""
    table = notes_table(results.sweep)
    return [Heading(text="Notes"), table] if table else []


def curves_block(results: Results) -> Figure:
    """Pass rate against compute."""
    caption = f"{CURVES_LEGEND} {thinned_note(results, leading(results))}".rstrip()
    return Figure(name="curves", caption=caption, chart=curves_chart(results))


def differences_block(results: Results) -> Figure:
    """The differences of each variant from the reference, with intervals."""
    caption = f"{DIFFERENCES_LEGEND} {left_out_note(results)}".rstrip()
    return Figure(name="differences", caption=caption, chart=forest_chart(results))


def page_notes(results: Results) -> list[str]:
    """What the columns and marks of `comparison_table` mean on a page."""
    marks, plan = marks_said(results), results.plan
    return [
        f"Marks: {marks}." if marks else "",
        f"A, C_mid and B describe the fit; C_mid and cost are {plan.compute_name}, idle time included. A compute ratio "
        f"under 1: the variant reaches the common target with less compute than {plan.reference}.",
    ]


def all_numbers(results: Results, *, names: Sequence[str] | None = None) -> Blocks:
    """Every number of the comparison, with notes on the corrected intervals and on the paper's rule; `names` are the
    variants to show, by default all."""
    joint = joint_note(results)
    return [
        numbers_table(results, names=names),
        *_text(f'Intervals under "corrected" are {joint}.' if joint else "", "note"),
        Text(text=f"A under eq. 1, B, C_mid and R_0 are those of ScaleRL eq. 1. {PAPER_RULE_NOTE}", kind="note"),
    ]


def _best_first(results: Results) -> Blocks:
    """The table of all variants, the highest level on top as in the figure; those beyond `MOST_UNFOLDED` are folded."""
    names = [one.name for one in in_order(results, "level").variants]
    table = comparison_table(results, names=names[:MOST_UNFOLDED], notes=page_notes(results))
    if not (rest := names[MOST_UNFOLDED:]):
        return [table]
    others = replace(comparison_table(results, names=rest), name="comparison-others")
    return [table, Folded(title=f"{counted(len(rest), 'more variant')}", blocks=[others])]


def _definitions(name: str, term: str, meaning: str, pairs: list[tuple[str, str]]) -> list[Table]:
    rows = [{term: one, meaning: said} for one, said in pairs]
    return [table_of_rows(rows, name=name, kinds={meaning: "prose"})] if rows else []


def _text(text: str, kind: TextKind = "plain") -> list[Text]:
    return [Text(text=text, kind=kind)] if text else []
