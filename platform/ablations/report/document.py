"""The content of the report as plain data, which each format writes in its own way."""

from dataclasses import dataclass
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
from ablations.report.methods import methods_paragraphs
from ablations.report.words.comparison import ResultRow, glossary, sentence
from ablations.report.words.headline import headline
from ablations.report.words.task import task_of_sweep
from ablations.text import at_scale

OVER_SCALES = "Over scales"
"""Heading of the section about the ladder."""
DIFFERENCES_LEGEND = (
    "Differences from the reference with 95 % intervals, best first. The dotted line marks no difference; grey "
    "means undecided; an arrow marks an interval without an end on that side."
)
"""Caption of `verdicts_figure`."""


@dataclass(frozen=True, kw_only=True)
class Document:
    """The content of a report. All text is as written; each format escapes it and shows control characters."""

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
    rows: tuple[tuple[str, ...], ...]
    """The cells of each variant, in the order of the results."""
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
    plan, shown = results.plan, columns(results, DOCUMENT)
    return Document(
        title=results.title,
        doc=plan.doc,
        remarks=results.remarks,
        task=task_of_sweep(results.sweep),
        findings=tuple(sentence(ResultRow(results=results, variant=one)) for one in results.variants),
        advice=advice(results).replace("`", ""),
        changes=tuple((one.name, results.changes(one.name)) for one in results.variants if one.overrides),
        headings=tuple(column.heading for column in shown),
        rows=tuple(map(tuple, rows_of(results, shown))),
        grid=tuple(grid_tables(results)),
        grid_heading=tables_heading(results),
        grid_notes=grid_notes(results),
        ladder=tuple(ladder_grids(ladder)) if ladder else (),
        ladder_notes=" ".join(ladder_sentences(ladder)) if ladder else "",
        curves_legend=CURVES_LEGEND,
        differences_legend=f"{DIFFERENCES_LEGEND} {left_out_note(results)}".rstrip(),
        reference=plan.reference,
        headline=headline(results),
        methods=tuple(methods_paragraphs(results)),
        glossary=tuple(glossary(results)),
        origin=tuple(origin(results, now)),
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
