"""Where the parts of a chart go on a sheet: the plots, the room beside and around them, and the labels moved apart.

A sheet is a screen, wide or narrow, or a paper. Its lengths are in its own unit, pixels or points.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from ablations.report.figures.chart import Axis, Chart, EdgeLabel, Panel, elided
from ablations.report.figures.colours import drawn_in, written_in

LEAST_PLOT = 3.6
"""Minimum width of a plot beside others, in letter heights; narrower panels are stacked."""
ONE_LINE = 0.55
"""Height of a one-line label, as a share of that of a two-line label."""
TEXT_GAP = 0.6
"""Space between a plot and the text beside it, in letter heights."""
BOLD = 1.15
"""Ratio of the width of bold letters to that of plain ones."""
STRIP_GAP = 0.01
"""Room before the strip at the right edge, as a share of the width."""


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """The sheet that a chart is drawn on: `WIDE` and `NARROW` of `plotly_chart`, `paper` of `paper_chart`."""

    width: float
    """The minimum width to count on."""
    font: float
    width_of: Callable[[str], float]
    """Width of a text set in regular weight, not bold."""
    longest: int
    """Limit on the letters of a name."""
    left: float
    """Space for the numbers and the title of a y axis; `foot`: of an x axis."""
    foot: float
    top: float
    """Space above a plot; `head`: above one with a title."""
    head: float
    label: float
    """Height of a two-line label."""
    leader: float
    slot: float
    """Width of an interval in the strip."""
    plot: float
    """Heights of a plot and of a row, as multiples of their heights on a wide screen."""
    row: float
    is_dark: bool = False

    def ink(self, colour: str) -> str:
        """A colour as drawn on this sheet."""
        return drawn_in(colour, is_dark=self.is_dark)

    def text_ink(self, colour: str) -> str:
        """A colour as the name of a variant is written in on this sheet."""
        return written_in(colour, is_dark=self.is_dark)

    def short(self, name: str) -> str:
        """A name as it fits."""
        return elided(name, self.longest)

    def ticks_of(self, axis: Axis, width: float) -> int:
        """Limit on the numbers at an x axis of this width."""
        room = width / self.font
        return max(1, min(7, int(room / 3.05))) if axis.has_round_ticks else max(2, min(7, int(room / 4.5)))


@dataclass(frozen=True, kw_only=True)
class PanelPlace:
    """Where a panel goes; `left` and `right` of its plot, and the start of its strip, are shares of the width between
    the margins, `top` and `bottom` are counted from the top of the figure."""

    left: float
    right: float
    strip: float
    top: float
    bottom: float
    labels: tuple[float, ...]
    """Heights of the labels on the y axis."""
    has_names: bool
    """True if the names of its rows are written beside it."""


@dataclass(frozen=True, kw_only=True)
class Arrangement:
    """A chart on a sheet: the place of each panel, the margins on both sides, and the total height."""

    places: tuple[PanelPlace, ...]
    left: float
    right: float
    height: float


def arranged(chart: Chart, sheet: Sheet) -> Arrangement:
    """Place the panels in a row if each has room, else one below the other."""
    panels = chart.panels
    beside = [_beside(panel, sheet) for panel in panels]
    left = max((_left(panel, sheet) for panel in panels), default=0.0)
    own = (sheet.width - left - sum(beside)) / max(len(panels), 1)
    is_across = not chart.is_stacked and own >= LEAST_PLOT * sheet.font
    right = beside[-1] if is_across and panels else max(beside, default=0.0)
    inner = sheet.width - left - right
    legend = _legend_height(chart, sheet)
    top = legend if chart.legend == "above" else 0.0
    places, below, start = [], top, 0.0
    for number, panel in enumerate(panels):
        end = min(start + own / inner, 1.0) if is_across else 1.0
        strip = sheet.slot * (num_slots(panel) + 1) / inner
        upper = top + (sheet.head if panel.title else sheet.top)
        lower = upper + _plot_height(panel, sheet)
        below = lower + (sheet.foot if panel.x.title or panel.x.ticks else sheet.foot / 2)
        places.append(
            PanelPlace(
                left=start, right=end, strip=end - (min(strip, 0.4) if panel.strip else 0.0), top=upper, bottom=lower,
                labels=_label_places(panel, sheet, lower - upper), has_names=not (is_across and number),
            )
        )  # fmt: skip
        if is_across:
            start = end + beside[number] / inner
        else:
            top = below
    height = below + (legend if chart.legend == "below" else 0.0)
    return Arrangement(places=tuple(places), left=left, right=right, height=max(height, sheet.head))


def _left(panel: Panel, sheet: Sheet) -> float:
    names = [sheet.width_of(sheet.short(name)) for _, name in panel.y.ticks or ()]
    return max(names, default=0.0) + 2 * TEXT_GAP * sheet.font if panel.y.ticks is not None else sheet.left


def _beside(panel: Panel, sheet: Sheet) -> float:
    """Room for the labels on the right of a panel, and for the half of the last name below it that leaves it."""
    last_names = [line for _, name in (panel.x.ticks or ())[-1:] for line in name.split("\n")]
    widths = [0.0 if not panel.key else sheet.width_of(panel.key) - sheet.leader]
    widths += [sheet.width_of(line) / 2 for line in last_names]
    for label in panel.labels:
        widths += [BOLD * sheet.width_of(sheet.short(label.name)), sheet.width_of(label.text)]
    leader = sheet.leader if any(label.has_leader for label in panel.labels) else 0.0
    return leader + max(widths) + 2 * TEXT_GAP * sheet.font


def _plot_height(panel: Panel, sheet: Sheet) -> float:
    if panel.num_rows:
        return panel.num_rows * panel.row_height * sheet.row
    return max(panel.height * sheet.plot, len(panel.labels) * _label_height(panel.labels, sheet))


def _label_height(labels: Sequence[EdgeLabel], sheet: Sheet) -> float:
    return sheet.label * (1.0 if any(label.name and label.text for label in labels) else ONE_LINE)


def _label_places(panel: Panel, sheet: Sheet, plot: float) -> tuple[float, ...]:
    if not panel.labels:
        return ()
    assert panel.y.range is not None, "labels have a place on an axis with a range"
    low, high = min(panel.y.range), max(panel.y.range)
    gap = (high - low) * _label_height(panel.labels, sheet) / plot
    return tuple(moved_apart([label.y for label in panel.labels], gap=gap, low=low + gap / 2, high=high - gap / 2))


def _legend_height(chart: Chart, sheet: Sheet) -> float:
    """Room for the legend, whose entries have the width of the longest one if not all fit into a line."""
    texts = [mark.legend for panel in chart.panels for mark in panel.marks if mark.legend]
    if not chart.legend or not texts:
        return 0.0
    widths = [sheet.width_of(text) + 4 * sheet.font for text in texts]
    is_one_line = sum(widths) <= sheet.width - sheet.left
    in_line = len(texts) if is_one_line else max(1, int((sheet.width - sheet.left) / max(widths)))
    return (0.5 + 1.6 * -(-len(texts) // in_line)) * sheet.font


def num_slots(panel: Panel) -> int:
    """Number of intervals that the strip has room for."""
    return 1 + int(max((max(one.x) for one in panel.strip), default=-1))


def moved_apart(wanted: Sequence[float], *, gap: float, low: float, high: float) -> list[float]:
    """Places between `low` and `high`, at least `gap` apart, close to the wanted places and in their order.

    Neighbours that are too close form a group around the mean of their wanted places: isotonic regression of what is
    left after a gap for each label below. If there is no room for all at `gap`, all places are evenly spaced.

    >>> moved_apart([0.5, 0.5, 1.0], gap=0.25, low=0.0, high=1.0)
    [0.375, 0.625, 1.0]
    """
    if not wanted:
        return []
    order = np.argsort(wanted, kind="stable")
    steps = min(gap, (high - low) / max(len(wanted) - 1, 1)) * np.arange(len(wanted))
    found = np.empty(len(wanted))
    found[order] = isotonic_regression(np.asarray(wanted)[order] - steps).x.clip(low, high - steps[-1]) + steps
    return found.tolist()
