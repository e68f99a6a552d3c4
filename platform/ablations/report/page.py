"""The report of a sweep: one HTML file with figures, table and verdicts that opens anywhere, without a network."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from ablations.errors import AblationsError
from ablations.home.home import Home
from ablations.home.plan import Plan
from ablations.paper.comparison import columns as paper_columns
from ablations.paper.comparison import notes, paper_comparison
from ablations.report.ceilings import loo_figure
from ablations.report.curves import CURVES_LEGEND, curves_figure
from ablations.report.linearised import LINEARISED_LEGEND, linearised_figure, linearised_note
from ablations.report.style import styles
from ablations.verdict.results import Results
from ablations.verdict.words import PAPER_RULE_NOTE, columns, glossary, method, sentence, warnings
from scalerl.run.run_folder import write_atomically

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

FIGURE_SETTINGS = {"displaylogo": False, "responsive": True}

PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
  body { max-width: 1240px; margin: 0 auto; padding: 40px 24px 80px; color: #1f2328; background: #fff;
         font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; }
  h1 { font-size: 30px; margin: 0 0 4px; }
  h2 { font-size: 20px; margin: 44px 0 10px; }
  p.doc { font-size: 18px; color: #57606a; margin: 0 0 20px; }
  p.note, figcaption, footer { font-size: 14px; color: #57606a; }
  p.warning { border-left: 4px solid #d29922; background: #fff8e6; padding: 8px 14px; }
  figure { margin: 0; }
  .wide { overflow-x: auto; }
  table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; }
  th, td { padding: 6px 12px 6px 0; text-align: left; vertical-align: top; white-space: nowrap; }
  th { border-bottom: 2px solid #1f2328; white-space: normal; vertical-align: bottom; font-weight: 600; }
  td { border-bottom: 1px solid #e4e7eb; }
  i.dot { display: inline-block; width: 10px; height: 10px; border-radius: 50%; margin-right: 7px; }
  li { margin: 5px 0; }
  dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 18px; font-size: 15px; margin: 0; }
  dt { font-weight: 600; } dd { margin: 0; }
  code { font-size: 0.9em; background: #f2f4f6; padding: 1px 5px; border-radius: 4px; }
</style>
</head>
<body>
<h1>$title</h1>
<p class="doc">$doc</p>
$warnings
<h2>What was found</h2>
<ul>$sentences</ul>
<p class="note">$method</p>
<h2>Curves and forecasts</h2>
<figure>$curves
<figcaption>$legend Click a name to hide or show it.</figcaption>
</figure>
<h2>Ceilings and compute</h2>
<figure>$ceilings</figure>
<h2>Comparison with $reference</h2>
<div class="wide">$table</div>
<p class="note">A, B, C_mid and R_0 are those of ScaleRL eq. 1. Cost and C_mid are $compute_name, idle time
included. A compute ratio under 1 reaches the common target with less compute than $reference. $paper_rule</p>
<h2>Paper mode</h2>
$paper
<h2>What the verdicts mean</h2>
<dl>$verdicts</dl>
<h2>How this was made</h2>
<dl>$origin</dl>
</body>
</html>
""")


def write_report(home: Home, results: Results, *, now: datetime) -> Path:
    """Write `report.html` into the sweep's folder; `now` is the date it shows."""
    path = home.sweep(results.plan.sweep) / "report.html"
    write_atomically(path, report_page(home, results, now=now).encode())
    return path


def report_page(home: Home, results: Results, *, now: datetime) -> str:
    """The whole page."""
    plan = results.plan
    return PAGE.substitute(
        title=escape(plan.sweep),
        doc=escape(plan.doc),
        reference=escape(plan.reference),
        warnings="".join(f'<p class="warning">{escape(text)}</p>' for text in warnings(results)),
        sentences="".join(f"<li>{escape(sentence(results, variant))}</li>" for variant in results.variants),
        legend=escape(CURVES_LEGEND),
        method=escape(method(results)),
        compute_name=escape(plan.compute_name),
        paper_rule=escape(PAPER_RULE_NOTE),
        curves=_figure(curves_figure(results), with_plotly=True),
        ceilings=_figure(loo_figure(results)),
        table=_table(results.plan, [(variant.name, columns(results, variant)) for variant in results.variants]),
        paper=_paper_section(results),
        verdicts=_definitions(glossary(results)),
        origin=_definitions(_origin(home, results, now)),
    )


def _paper_section(results: Results) -> str:
    """The comparison as the paper makes it: warning, table, figure; or why there is none."""
    try:
        comparison = paper_comparison(results)
    except AblationsError as error:
        return f'<p class="note">{escape(str(error))}</p>'
    lines = [(variant.name, paper_columns(comparison, variant)) for variant in comparison.variants]
    method, warning, *reasons = map(escape, notes(comparison, results.plan.compute_name))
    legend = escape(f"{LINEARISED_LEGEND} {linearised_note(comparison)}")
    return (
        f'<p class="warning">{warning}</p><div class="wide">{_table(results.plan, lines)}</div>'
        f'<p class="note">{" ".join([method, *reasons])}</p>'
        f"<figure>{_figure(linearised_figure(comparison, results.plan))}<figcaption>{legend}</figcaption></figure>"
    )


def _figure(figure: "Figure", *, with_plotly: bool = False) -> str:
    """A figure as HTML; the first of a page brings the library."""
    return figure.to_html(full_html=False, include_plotlyjs=with_plotly, config=FIGURE_SETTINGS)


def _table(plan: Plan, lines: Sequence[tuple[str, dict[str, str]]]) -> str:
    """One row a variant, given as its name and its cells by column name."""
    look = styles(plan)
    head = "".join(f"<th>{escape(name)}</th>" for name in lines[0][1])
    body = "".join(f"<tr>{_cells(look[name].colour, list(cells.values()))}</tr>" for name, cells in lines)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cells(colour: str, cells: Sequence[str]) -> str:
    name, *rest = (escape(cell) for cell in cells)
    named = f'<td><i class="dot" style="background:{colour}"></i>{name}</td>'
    return named + "".join(f"<td>{cell}</td>" for cell in rest)


def _origin(home: Home, results: Results, now: datetime) -> list[tuple[str, str]]:
    plan = results.plan
    num_runs = len(results.runs)
    window = f"{plan.fit_from_gpu_hours:g} to {plan.fit_to_gpu_hours:g}"
    return [
        ("command", plan.command),
        ("home folder", str(home.path)),
        ("date", f"{now:%Y-%m-%d %H:%M %Z}"),
        ("runs", f"{num_runs}, at scale {plan.scale}, {plan.budget_gpu_hours:g} {plan.compute_name} each"),
        ("fitted", f"readings from {window} {plan.compute_name}, each seed by itself"),
        ("code", ", ".join(results.code_versions) or "unknown"),
    ]


def _definitions(pairs: Iterable[tuple[str, str]]) -> str:
    return "".join(f"<dt>{escape(term)}</dt><dd>{escape(meaning)}</dd>" for term, meaning in pairs)
