"""Claims of a paper beside what a study found, without Streamlit."""

import math
from collections.abc import Sequence
from textwrap import wrap
from typing import Any

from ablations.findings.claim_card import ClaimOutcome, JudgedClaim
from ablations.report.documents.claim_card import claim_text, found_text
from ablations.report.figures.axes import range_around
from ablations.report.figures.chart import GREY, Axis, Caption, Chart, Panel, Series, interval, literal
from ablations.report.figures.colours import GREEN
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
CLAIMED, CLAIMED_OPACITY = "#56b4e9", 0.3
PANELS = {False: "difference in pass rate", True: "ratio of compute"}
"""Panel titles, keyed by whether the panel's claims are about compute."""
CLAIM_HEIGHT, LINE_HEIGHT, BELOW_BAR, ABOVE_BAR = 54, 16, 20, 9
"""Heights in pixels: of a claim with one line of words, of each additional line, and of the gaps below the claim's
point and above its words."""
LINE_LETTERS = 46
"""Limit on the letters per line, so that a line fits on a phone."""
AIR = 0.24
"""Margin on either side, as a share of the width of everything drawn."""
CLAIMS_LEGEND = (
    "Blue: what the paper claims, as a diamond where it publishes a size, else all differences that would bear the "
    "claim out. Point and line: what was found here, with its 95 % interval; green if the claim holds, red if the "
    "interval contradicts it, grey if it cannot tell."
)
"""Caption of `claims_chart`."""


def claims_chart(claims: Sequence[JudgedClaim]) -> Chart:
    """A row per claim; claims about compute have their own panel, with a logarithmic axis."""
    panels = [
        _panel(rows, is_ratio)
        for is_ratio in PANELS
        if (rows := [one for one in claims if (one.claim.of == "compute") == is_ratio])
    ]
    alt = "; ".join(f"{claim_text(one.claim)}: {found_text(one)}, {one.outcome}" for one in claims)
    return Chart(alt=alt, panels=panels, is_stacked=True)


def claim_lines(judged: JudgedClaim) -> tuple[str, ...]:
    """The claim in lines short enough for a phone, with an empty last line if the outcome does not fit after the
    claim."""
    *before, last = wrap(claim_text(judged.claim), LINE_LETTERS)
    if len(last) + len(judged.outcome) + 2 <= LINE_LETTERS + 10:
        return (*before, f"{last}: ")
    return (*before, f"{last}:", "")


def claimed_span(claim: Claim) -> tuple[float, float]:
    """All differences that would confirm a claim, in pass rate or as a ratio of compute: (0, inf) for "up"."""
    none, least = (1.0, 0.0) if claim.of == "compute" else (0.0, -math.inf)
    if claim.says == "same":
        size = claim.size
        return (math.exp(-size), math.exp(size)) if claim.of == "compute" else (-size, size)
    return (none, math.inf) if claim.says == "up" else (least, none)


def published_size(claim: Claim) -> float | None:
    """The published difference with its sign, or ratio of compute; None for a claim about a direction only, or of
    "same"."""
    if claim.by is None or claim.says == "same":
        return None
    if claim.of == "compute":
        return claim.by if claim.says == "up" else 1 / claim.by
    return claim.by if claim.says == "up" else -claim.by


def _panel(rows: Sequence[JudgedClaim], is_ratio: bool) -> Panel:
    none, edges = 1.0 if is_ratio else 0.0, _panel_range(rows, is_ratio)
    height = CLAIM_HEIGHT + LINE_HEIGHT * (max(len(claim_lines(one)) for one in rows) - 1)
    above, below = ABOVE_BAR / height, BELOW_BAR / height
    marks = []
    for row, judged in enumerate(rows):
        # Beside the row alone, so that no line crosses its words.
        marks.append(Series(x=[none] * 2, y=[row - above, row + 0.7 * below], colour=GREY, width=1.0, dash="dot"))
        marks += _row(judged, row, edges)
    return Panel(
        x=Axis(title=PANELS[is_ratio], range=edges, is_log=is_ratio, has_round_ticks=True),
        y=Axis(range=(len(rows) - 1 + below, below - 1), ticks=()),
        marks=marks,
        captions=[
            Caption(y=row - above, lines=claim_lines(judged), bold=judged.outcome) for row, judged in enumerate(rows)
        ],
        num_rows=len(rows),
        row_height=height,
    )


def _row(judged: JudgedClaim, row: int, edges: tuple[float, float]) -> list[Series]:
    """What is claimed and what was found, in a row of a panel with these edges."""
    claim, found, size = judged.claim, judged.found, published_size(judged.claim)
    paper: dict[str, Any] = {
        "colour": CLAIMED,
        "opacity": CLAIMED_OPACITY,
        "name": "the paper",
        "hover": literal(claim.source),
    }
    if size is None:
        span = [min(max(one, edges[0]), edges[1]) for one in claimed_span(claim)]
        drawn = [Series(x=span, y=[row] * 2, width=13.0, **paper)]
    else:
        paper["opacity"] = 0.8
        drawn = [Series(x=[size], y=[row], symbol="diamond", size=13.0, **paper)]
    if found is None or (found.lo is None and found.hi is None):
        return drawn
    colour, hover = OUTCOME_COLOURS[judged.outcome], literal(found_text(judged))
    ends = (found.lo, found.estimate, found.hi)
    return drawn + interval(*ends, at=row, edges=edges, colour=colour, name="here", hover=hover)


def _panel_range(rows: Sequence[JudgedClaim], is_ratio: bool) -> tuple[float, float]:
    """All numbers with some width on both sides, to show the side that a claim leaves open."""
    values = [1.0 if is_ratio else 0.0]
    for judged in rows:
        found = judged.found
        spans = [one for one in claimed_span(judged.claim) if math.isfinite(one) and one > (0.0 if is_ratio else -1)]
        numbers = () if found is None else (found.estimate, found.lo, found.hi)
        values += [one for one in (published_size(judged.claim), *numbers, *spans) if one is not None]
    return range_around(values, is_ratio=is_ratio, margin=AIR)
