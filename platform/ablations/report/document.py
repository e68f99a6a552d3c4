"""The content of the report as plain data, which each format writes in its own way."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from ablations.errors import AblationsError
from ablations.findings.advice import advice
from ablations.findings.remarks import Remark
from ablations.findings.results import Results
from ablations.findings.scale_ladder import ScaleLadder
from ablations.home.declared import declarations
from ablations.report.columns import DOCUMENT, columns, rows_of
from ablations.report.curves import CURVES_LEGEND
from ablations.report.forest import left_out_note
from ablations.report.grid_tables import GridTable, grid_notes, grid_tables, tables_heading
from ablations.report.ladder_tables import ladder_grids, ladder_sentences
from ablations.report.leading import look_of
from ablations.report.methods import methods_paragraphs
from ablations.report.words.comparison import ResultRow, glossary, sentence
from ablations.report.words.headline import headline
from ablations.report.words.task import task_of_sweep
from ablations.terminal.visible import made_visible
from ablations.text import at_scale

OVER_SCALES = "Over scales"
"""Heading of the section about the ladder."""
DIFFERENCES_LEGEND = (
    "Differences from the reference with 95 % intervals, best first. The dotted line marks no difference; grey "
    "means undecided; an arrow marks an interval without an end on that side."
)
"""Caption of `verdicts_figure`."""


@dataclass(frozen=True, kw_only=True)
class DocumentRow:
    """A variant's row: `DocumentRow(colour="#0072B2", cells=("loo-loss", "1 of 1", "-0.05 [-0.07, -0.03]", ...))`."""

    colour: str
    cells: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class NumberTable:
    """The numbers alone, for a paper.

    NumberTable(headings=("variant", "level", "A", "ceiling"), rows=(("loo-loss", "-0.049 [...]", "0.54 [...]", ...),),
                decided=((False, True, False, True),))
    """

    headings: tuple[str, ...]
    """"variant", "A", and the name of each question."""
    rows: tuple[tuple[str, ...], ...]
    decided: tuple[tuple[bool, ...], ...]
    """For each cell whether it says that the variant differs from the reference."""


@dataclass(frozen=True, kw_only=True)
class Document:
    """The content of a report. All text is as written, with control characters visible; each format escapes it."""

    title: str
    doc: str
    reference: str
    headline: tuple[str, ...]
    """The verdict in one line, the most important sentence first."""
    remarks: tuple[Remark, ...]
    task: str
    """Sentence on what the pass rates measure; empty if unknown."""
    findings: tuple[str, ...]
    """One sentence per variant."""
    advice: str
    """Advice for settling open questions; empty if none is open."""
    changes: tuple[tuple[str, str], ...]
    """Each variant except the reference, with its changes."""
    headings: tuple[str, ...]
    rows: tuple[DocumentRow, ...]
    numbers: NumberTable
    grid: tuple[GridTable, ...]
    """The cells and main effects of a grid, and pairs of changes; empty if there are none."""
    grid_heading: str
    grid_notes: str
    ladder: tuple[GridTable, ...]
    """The differences at every scale of the study; empty for one scale."""
    ladder_notes: str
    curves_legend: str
    differences_legend: str
    methods: tuple[str, ...]
    glossary: tuple[tuple[str, str], ...]
    origin: tuple[tuple[str, str], ...]


def document_of(results: Results, *, now: datetime, ladder: ScaleLadder | None = None) -> Document:
    """The report of a sweep; `now` is the date shown, `ladder` the study at all of its scales."""
    plan = results.plan
    return Document(
        title=made_visible(results.title),
        doc=made_visible(plan.doc),
        remarks=tuple(replace(one, text=made_visible(one.text)) for one in results.remarks),
        task=made_visible(task_of_sweep(results.sweep)),
        findings=_seen([sentence(ResultRow(results=results, variant=one)) for one in results.variants]),
        advice=made_visible(advice(results)),
        changes=_seen_pairs([(one.name, results.changes(one.name)) for one in results.variants if one.overrides]),
        headings=document_headings(results),
        rows=document_rows(results),
        grid=tuple(_seen_table(one) for one in grid_tables(results)),
        grid_heading=tables_heading(results),
        grid_notes=made_visible(grid_notes(results)),
        ladder=tuple(map(_seen_table, ladder_grids(ladder))) if ladder else (),
        ladder_notes=made_visible(" ".join(ladder_sentences(ladder))) if ladder else "",
        curves_legend=CURVES_LEGEND,
        differences_legend=made_visible(f"{DIFFERENCES_LEGEND} {left_out_note(results)}".rstrip()),
        numbers=number_table(results),
        reference=made_visible(plan.reference),
        headline=_seen(headline(results)),
        methods=_seen(methods_paragraphs(results)),
        glossary=_seen_pairs(glossary(results)),
        origin=_seen_pairs(origin(results, now)),
    )


def document_headings(results: Results) -> tuple[str, ...]:
    """Headings of the table."""
    return tuple(column.heading for column in columns(results, DOCUMENT))


def document_rows(results: Results) -> tuple[DocumentRow, ...]:
    """Rows of the table, in the order of the results."""
    look, rows = look_of(results), rows_of(results, columns(results, DOCUMENT))
    return tuple(
        DocumentRow(colour=look[variant.name].colour, cells=_seen(row))
        for variant, row in zip(results.variants, rows, strict=True)
    )


def number_table(results: Results) -> NumberTable:
    """One row per variant; the column of A comes before the difference in ceiling."""
    shown = [column for column in columns(results, DOCUMENT) if column.key not in ("seeds", "verdicts")]
    questions = {f"{one.name} number": one.name for one in results.questions}
    lines = [results.compared(variant.name) for variant in results.variants]
    return NumberTable(
        headings=tuple(questions.get(column.key, column.key) for column in shown),
        rows=tuple(_seen(row) for row in rows_of(results, shown)),
        decided=tuple(
            tuple(
                line is not None and column.key in questions and line.answers[questions[column.key]].differs
                for column in shown
            )
            for line in lines
        ),
    )


def origin(results: Results, now: datetime) -> list[tuple[str, str]]:
    """Command, home folder, date, runs, window and code."""
    plan = results.plan
    num_runs = len(results.runs)
    window = f"{plan.fit_from_gpu_hours:g} to {plan.fit_to_gpu_hours:g}"
    return [
        ("command", plan.command),
        ("home folder", str(results.sweep.home.path) if results.sweep else "none"),
        ("date", f"{now:%Y-%m-%d %H:%M %Z}"),
        ("runs", f"{num_runs}{at_scale(plan.scale, before=',')}, {plan.budget_gpu_hours:g} {plan.compute_name} each"),
        ("fitted", f"evaluations from {window} {plan.compute_name}, each seed by itself"),
        *([("design", declared)] if (declared := _declared(results)) else []),
        ("code", ", ".join(results.code_versions) or "unknown"),
    ]


def _declared(results: Results) -> str:
    """When the design was declared; empty for curves of other trainers and sweeps of earlier versions."""
    try:
        found = declarations(results.sweep) if results.sweep else []
    except AblationsError as error:
        return str(error)
    return f"declared {found[0].when}" if found else ""


def _seen_table(table: GridTable) -> GridTable:
    rows = tuple(tuple(cell.rstrip() for cell in _seen(row)) for row in table.rows)
    return replace(table, title=made_visible(table.title), headings=_seen(table.headings), rows=rows)


def _seen(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(made_visible(text) for text in texts)


def _seen_pairs(pairs: Sequence[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((made_visible(first), made_visible(second)) for first, second in pairs)
