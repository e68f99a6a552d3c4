"""Claims of a paper beside what a study found, drawn small, without Streamlit."""

import math
from collections.abc import Sequence
from textwrap import wrap

from plotly.graph_objects import Figure, Scatter
from plotly.subplots import make_subplots

from ablations.findings.claim_card import ClaimOutcome, JudgedClaim
from ablations.report.colours import GREEN
from ablations.report.series import ticks
from ablations.report.style import GREY, dress, in_hover, plain
from ablations.report.words.claim_card import claim_text, found_text
from ablations.study.claims import Claim

RED = "#CC3311"
OUTCOME_COLOURS: dict[ClaimOutcome, str] = {
    "holds": GREEN,
    "holds but smaller": GREEN,
    "opposite": RED,
    "no difference of that size": RED,
    "cannot tell": GREY,
}
"""Colour of what was found, by the outcome of the claim."""
CLAIMED = "rgba(86,180,233,0.30)"
PANELS = {False: "difference in pass rate", True: "ratio of compute"}
"""Titles of the panels: whether a panel has claims about compute."""
CLAIM_HEIGHT, LINE_HEIGHT, BELOW_BAR = 54, 16, 20
"""Height in pixels of one claim with a line of words, of each further line, and of the part below the claim's point."""
LINE_LETTERS = 46
"""Limit on the letters of a line of words, which a phone has room for."""
FRAME_HEIGHT = 62
"""Height in pixels of the axis of a panel and its title."""
AIR = 0.08
"""Share of a panel's width left at either side of all that is drawn."""
MOST_CLAIM_TICKS = 7
CLAIMS_LEGEND = (
    "Blue: what the paper claims, as a diamond where it publishes a size, else all differences that would bear the "
    "claim out. Point and line: what was found here, with its 95 % interval; green if the claim holds, red if the "
    "interval contradicts it, grey if it cannot tell."
)
"""Caption of `claims_figure`."""


def claims_figure(claims: Sequence[JudgedClaim]) -> Figure:
    """A row per claim, those about compute in a panel of their own with a logarithmic axis."""
    panels = {
        is_ratio: rows
        for is_ratio in PANELS
        if (rows := [one for one in claims if (one.claim.of == "compute") == is_ratio])
    }
    heights = [len(rows) * _row_height(rows) for rows in panels.values()]
    height = sum(heights) + FRAME_HEIGHT * len(panels)
    gap = FRAME_HEIGHT / (height - FRAME_HEIGHT) if len(panels) > 1 else 0
    figure = make_subplots(rows=len(panels), cols=1, row_heights=heights, vertical_spacing=gap)
    for place, (is_ratio, rows) in enumerate(panels.items(), start=1):
        _draw_panel(figure, rows, is_ratio, place)
    dress(figure, height=height)
    figure.update_layout(margin={"l": 10, "r": 10, "t": 8, "b": FRAME_HEIGHT - 8}, showlegend=False)
    figure.update_yaxes(showticklabels=False, ticks="", showgrid=False, showline=False)
    return figure


def claim_lines(judged: JudgedClaim) -> list[str]:
    """The claim and its outcome as lines of Plotly's HTML, each short enough for a phone."""
    *before, last = wrap(claim_text(judged.claim), LINE_LETTERS)
    outcome = f"<b>{judged.outcome}</b>"
    if len(last) + len(judged.outcome) + 2 <= LINE_LETTERS + 10:
        return [*map(plain, before), f"{plain(last)}: {outcome}"]
    return [*map(plain, before), f"{plain(last)}:", outcome]


def _row_height(rows: Sequence[JudgedClaim]) -> int:
    return CLAIM_HEIGHT + LINE_HEIGHT * (max(len(claim_lines(one)) for one in rows) - 1)


def claimed_span(claim: Claim) -> tuple[float, float]:
    """All differences that would bear a claim out, in pass rate or as a ratio of compute: (0, inf) for "up"."""
    none, least = (1.0, 0.0) if claim.of == "compute" else (0.0, -math.inf)
    if claim.says == "same":
        size = claim.size
        return (math.exp(-size), math.exp(size)) if claim.of == "compute" else (-size, size)
    return (none, math.inf) if claim.says == "up" else (least, none)


def published_size(claim: Claim) -> float | None:
    """The published difference with its sign, or ratio of compute; None for a claim of a side alone, or of "same"."""
    if claim.by is None or claim.says == "same":
        return None
    if claim.of == "compute":
        return claim.by if claim.says == "up" else 1 / claim.by
    return claim.by if claim.says == "up" else -claim.by


def _draw_panel(figure: Figure, rows: Sequence[JudgedClaim], is_ratio: bool, place: int) -> None:
    none = 1.0 if is_ratio else 0.0
    low, high = _panel_range(rows, is_ratio)
    pixel = 1 / _row_height(rows)
    for number, judged in enumerate(rows):
        figure.add_traces(_row(judged, -number, low, high), rows=place, cols=1)
        line = {"color": GREY, "width": 1, "dash": "dot"}
        # Beside the row alone, so that no line crosses its words.
        figure.add_shape(
            type="line", x0=none, x1=none, y0=-number - 13 * pixel, y1=9 * pixel - number, line=line, row=place, col=1
        )
        style = {"showarrow": False, "align": "left", "xanchor": "left", "yanchor": "bottom", "font": {"size": 12}}
        domain = {"xref": f"x{'' if place == 1 else place} domain", "yref": f"y{'' if place == 1 else place}"}
        figure.add_annotation(text="<br>".join(claim_lines(judged)), x=0, y=9 * pixel - number, **domain, **style)
    ends = [math.log10(low), math.log10(high)] if is_ratio else [low, high]
    figure.update_xaxes(title=PANELS[is_ratio], type="log" if is_ratio else "linear", range=ends, row=place, col=1)
    if is_ratio:  # on a logarithmic axis Plotly writes 0.6 as 6
        values = ticks(low, high, MOST_CLAIM_TICKS, log=True)
        figure.update_xaxes(tickvals=values, ticktext=[f"{one:g}" for one in values], tickangle=0, row=place, col=1)
    figure.update_xaxes(nticks=6, title_standoff=4, title_font_size=12, row=place, col=1)
    figure.update_yaxes(range=[1 - len(rows) - BELOW_BAR * pixel, 1 - BELOW_BAR * pixel], row=place, col=1)


def _row(judged: JudgedClaim, y: float, low: float, high: float) -> list[Scatter]:
    """What is claimed and what was found, on the height `y` of a panel from `low` to `high`."""
    claim, found, colour = judged.claim, judged.found, OUTCOME_COLOURS[judged.outcome]
    size, hover = published_size(claim), f"{in_hover(claim.source)}<extra>the paper</extra>"
    if size is None:
        start, end = (min(max(one, low), high) for one in claimed_span(claim))
        band = {"x": [start, end], "y": [y, y], "line": {"color": CLAIMED, "width": 13}}
        drawn = [Scatter(**band, mode="lines", hovertemplate=hover)]
    else:
        marker = {"symbol": "diamond", "size": 13, "color": CLAIMED, "line": {"color": "#0072B2", "width": 1.5}}
        drawn = [Scatter(x=[size], y=[y], mode="markers", marker=marker, hovertemplate=hover)]
    if found is None or (found.lo is None and found.hi is None):
        return drawn
    ends = [low if found.lo is None else found.lo, high if found.hi is None else found.hi]
    symbols = ["arrow-left" if found.lo is None else "line-ns", "arrow-right" if found.hi is None else "line-ns"]
    marker = {"symbol": symbols, "size": 8, "color": colour, "line": {"color": colour, "width": 1.5}}
    hover = f"{in_hover(found_text(judged))}<extra>here</extra>"
    line = {"color": colour, "width": 2.5}
    drawn.append(Scatter(x=ends, y=[y, y], mode="lines+markers", line=line, marker=marker, hovertemplate=hover))
    if found.estimate is not None:
        point = {"size": 9, "color": colour}
        drawn.append(Scatter(x=[found.estimate], y=[y], mode="markers", marker=point, hovertemplate=hover))
    return drawn


def _panel_range(rows: Sequence[JudgedClaim], is_ratio: bool) -> tuple[float, float]:
    values = [1.0 if is_ratio else 0.0]
    for judged in rows:
        found = judged.found
        spans = [one for one in claimed_span(judged.claim) if math.isfinite(one) and one > (0.0 if is_ratio else -1)]
        numbers = () if found is None else (found.estimate, found.lo, found.hi)
        values += [one for one in (published_size(judged.claim), *numbers, *spans) if one is not None]
    if is_ratio:
        low, high = math.log(min(values)), math.log(max(values))
    else:
        low, high = min(values), max(values)
    air = AIR * max(high - low, 0.02)
    # A side that a claim leaves open has some width to show it.
    low, high = low - 3 * air, high + 3 * air
    return (math.exp(low), math.exp(high)) if is_ratio else (low, high)
