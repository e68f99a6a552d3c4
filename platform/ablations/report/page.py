"""The report of a sweep: one HTML file with figures, table and verdicts that opens anywhere, without a network.

`page.html.jinja` is the page; Jinja escapes every text in it, with control characters made visible. The page has the
text and numbers of the Markdown and LaTeX reports, figures that can be zoomed, and a table with more columns.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.graph_objects import Figure
from plotly.io.json import to_json_plotly

from ablations.findings.results import Results
from ablations.findings.scale_ladder import ScaleLadder
from ablations.readings.hours import NOTE, hours_cells
from ablations.report.colours import leading, look_of
from ablations.report.columns import PAGE, columns, rows_of
from ablations.report.curves import CURVES_LEGEND, curves_figures
from ablations.report.document import OVER_SCALES, document_of
from ablations.report.forest import verdicts_figure
from ablations.report.grid_tables import HEAT_NOTE
from ablations.report.ladder import LADDER_LEGEND, ladder_figure
from ablations.report.series import curve_series, thinned_note
from ablations.report.style import FIGURE_SETTINGS
from ablations.report.words.comparison import PAPER_RULE_NOTE, joint_note
from ablations.terminal.visible import made_visible

MOST_REMARKS_ON_TOP = 3
"""Limit on the warnings above the curves; more are folded."""


TableRow = tuple[str, Mapping[str, str]]
"""A variant's line of a table: its colour, and its cells by heading."""


def report_page(results: Results, *, now: datetime, ladder: ScaleLadder | None = None) -> str:
    """The whole page as HTML; `now` is the date shown, `ladder` the study at all of its scales."""
    environment = Environment(
        loader=PackageLoader("ablations", "report"),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        finalize=_shown,
    )
    return environment.get_template("page.html.jinja").render(
        results=results,
        curves_legend=CURVES_LEGEND,
        document=document_of(results, now=now, ladder=ladder),
        over_scales=OVER_SCALES,
        ladders=[_html(ladder_figure(ladder, question)) for question in ladder.questions] if ladder else [],
        ladder_legend=LADDER_LEGEND,
        heat_note=HEAT_NOTE,
        most_remarks=MOST_REMARKS_ON_TOP,
        curves=_html(*curves_figures(results, curve_series(results)), with_plotly=True),
        curves_note=thinned_note(results, leading(results)),
        intervals=_html(verdicts_figure(results), verdicts_figure(results, stacked=True)),
        rows=_comparison(results),
        corrected=f'Intervals under "corrected" are {joint}.' if (joint := joint_note(results)) else "",
        paper_rule=PAPER_RULE_NOTE,
        hours=_hours(results),
        hours_note=NOTE,
    )


def _shown(value: object) -> object:
    """The value for Jinja to write; `Markup` is our own and passes unchanged."""
    return made_visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _hours(results: Results) -> list[TableRow]:
    look = look_of(results)
    lines = hours_cells({variant.name: variant.hours for variant in results.variants})
    return [(look[cells["variant"]].colour, cells) for cells in lines]


def _comparison(results: Results) -> list[TableRow]:
    """A row per variant; each interval is below its verdict, to save width on a printed page."""
    look, shown = look_of(results), columns(results, PAGE)
    found = []
    for variant, texts in zip(results.variants, rows_of(results, shown), strict=True):
        held = [  # lines that do not break
            text if one.kind == "prose" else text.replace(" ", "\u00a0") for one, text in zip(shown, texts, strict=True)
        ]
        found.append((look[variant.name].colour, dict(zip((one.heading for one in shown), held, strict=True))))
    return found


def _html(figure: Figure, narrow: Figure | None = None, *, with_plotly: bool = False) -> Markup:
    """A figure as HTML; `narrow` is its layout on a narrow screen. The first figure of a page loads Plotly.

    Single precision suffices for a screen.
    """
    traces: Any = figure.data
    for trace in traces:
        for name in ("x", "y", "customdata"):
            if isinstance(values := trace[name], np.ndarray) and values.dtype == np.float64:
                trace[name] = values.astype(np.float32)
    layouts = [to_json_plotly(one.layout) for one in (figure, narrow or figure)]
    laid_out = f"layOut(document.getElementById('{{plot_id}}'), {layouts[0]}, {layouts[1]})"
    return Markup(
        figure.to_html(full_html=False, include_plotlyjs=with_plotly, config=FIGURE_SETTINGS, post_script=laid_out)
    )
