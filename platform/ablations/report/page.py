"""The report of a sweep: one HTML file with figures, table and verdicts that opens anywhere, without a network.

`page.html.jinja` is the page; Jinja escapes every text in it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ablations.design.undecided import what_would_tell
from ablations.errors import AblationsError
from ablations.home.plan import Plan
from ablations.paper.comparison import paper_comparison
from ablations.paper.words import PaperLine, paper_line, paper_notes
from ablations.report.colours import styles
from ablations.report.curves import CURVES_LEGEND, curves_figure
from ablations.report.headings import comparison_headings, paper_headings, under
from ablations.report.linearised import LINEARISED_LEGEND, linearised_figure, linearised_note
from ablations.report.verdicts import verdicts_figure
from ablations.verdict.hours import NOTE, hours_cells
from ablations.verdict.results import Results
from ablations.verdict.words import PAPER_RULE_NOTE, Line, glossary, line_of, method, sentence, warnings
from scalerl.run.run_folder import write_atomically

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

FIGURE_SETTINGS = {"displaylogo": False, "responsive": True}


@dataclass(frozen=True, kw_only=True)
class TableRow:
    """A variant's line of a table: `TableRow(colour="#4477aa", cells={"variant": "loo-loss", "A": "0.59 [...]"})`."""

    colour: str
    cells: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class PaperMode:
    """The comparison as the paper makes it."""

    warning: str
    notes: list[str]
    rows: list[TableRow]
    figure: Markup
    legend: str
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class NoPaperMode:
    """Why the paper would not compare these runs."""

    reason: str


def write_report(results: Results, *, now: datetime) -> Path:
    """Write `report.html` into the sweep's folder; `now` is the date that it shows."""
    path = results.sweep.folder / "report.html"
    write_atomically(path, report_page(results, now=now).encode())
    return path


def report_page(results: Results, *, now: datetime) -> str:
    """The whole page as HTML."""
    environment = Environment(
        loader=PackageLoader("ablations", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    return environment.get_template("page.html.jinja").render(
        plan=results.plan,
        warnings=warnings(results),
        sentences=[sentence(results, variant) for variant in results.variants],
        method=" ".join(filter(None, (method(results), what_would_tell(results)))),
        legend=CURVES_LEGEND,
        curves=_html(curves_figure(results), with_plotly=True),
        intervals=_html(verdicts_figure(results)),
        rows=_rows(
            results.plan,
            comparison_headings(results.plan),
            [line_of(results, variant) for variant in results.variants],
        ),
        paper_rule=PAPER_RULE_NOTE,
        hours=_hours(results),
        hours_note=NOTE,
        paper=_paper_mode(results),
        verdicts=glossary(results),
        origin=_origin(results, now),
    )


def _paper_mode(results: Results) -> PaperMode | NoPaperMode:
    try:
        comparison = paper_comparison(results)
    except AblationsError as error:
        return NoPaperMode(reason=str(error))
    plan = results.plan
    method, warning, *reasons = paper_notes(comparison, plan.compute_name)
    return PaperMode(
        warning=warning,
        notes=[method, *reasons],
        rows=_rows(
            plan, paper_headings(comparison), [paper_line(comparison, variant) for variant in comparison.variants]
        ),
        figure=_html(linearised_figure(comparison, plan)),
        legend=f"{LINEARISED_LEGEND} {linearised_note(comparison)}",
    )


def _hours(results: Results) -> list[TableRow]:
    """Where the hours of each variant went; nothing if no run says."""
    look = styles(results.plan)
    lines = hours_cells({variant.name: variant.hours for variant in results.variants})
    return [TableRow(colour=look[cells["variant"]].colour, cells=cells) for cells in lines]


def _html(figure: "Figure", *, with_plotly: bool = False) -> Markup:
    """A figure as HTML; the first one of a page brings the library."""
    return Markup(figure.to_html(full_html=False, include_plotlyjs=with_plotly, config=FIGURE_SETTINGS))


def _rows(plan: Plan, headings: Mapping[str, str], lines: Sequence[Line | PaperLine]) -> list[TableRow]:
    """One row per variant, with its colour."""
    look = styles(plan)
    return [
        TableRow(colour=look[line.variant].colour, cells=cells)
        for line, cells in zip(lines, under(headings, lines), strict=True)
    ]


def _origin(results: Results, now: datetime) -> list[tuple[str, str]]:
    plan = results.plan
    num_runs = len(results.runs)
    window = f"{plan.fit_from_gpu_hours:g} to {plan.fit_to_gpu_hours:g}"
    return [
        ("command", plan.command),
        ("home folder", str(results.sweep.home.path)),
        ("date", f"{now:%Y-%m-%d %H:%M %Z}"),
        ("runs", f"{num_runs}, at scale {plan.scale}, {plan.budget_gpu_hours:g} {plan.compute_name} each"),
        ("fitted", f"readings from {window} {plan.compute_name}, each seed by itself"),
        ("code", ", ".join(results.code_versions) or "unknown"),
    ]
