"""The colour and marker of each variant, the same in every figure, page and dashboard, and colours on a dark page."""

from collections.abc import Collection
from dataclasses import dataclass

from ablations.findings.results import Results
from ablations.home.plan import Plan

REFERENCE_COLOUR = "#1a1a1a"
COLOURS = ("#216da4", "#d7651d", "#519f82", "#a048fb", "#0f229f", "#94565b", "#584a02", "#4e0d54")
"""Colours as far apart as a search found: 0.11 or more in OKLab from each other, from the reference's and from grey,
for normal and colour-blind vision (Machado 2009), and 3:1 or more against white. Those of dark pages are as
far apart (`ON_DARK`).
"""
BLUE, ORANGE, GREEN = COLOURS[:3]
MARKER_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x", "star", "pentagon")
OTHERS_COLOUR = "#b0b6bd"
"""The colour of every variant beyond the eight coloured ones; labels tell these variants apart."""
MOST_COLOURED = 1 + len(COLOURS)
"""Limit on the variants with their own colour in a figure, including the reference."""
ON_DARK = {
    "white": "#0e1117",
    "#1f2328": "#e6e9ed",  # text
    "#6b6b6b": "#a0a8b3",  # text of little weight
    "#eceff2": "#2a2f38",  # grid
    "#c5cad0": "#4a505a",  # frame
    "#1a1a1a": "#f2f2f2",  # the reference
    "#216da4": "#42a7f8",
    "#d7651d": "#f5ba9a",
    "#519f82": "#628f39",
    "#a048fb": "#b32cff",
    "#0f229f": "#93d3ef",
    "#94565b": "#e87d95",
    "#584a02": "#b3ad13",
    "#4e0d54": "#d732b0",
    "#b0b6bd": "#59606b",  # variants out of focus
    "#57606a": "#a0a8b3",  # decided, out of focus
}
"""The colour on a dark page for each colour on white; colours not listed are visible on both. Contrast to #0e1117 is at
least 4 for those of variants
(WCAG 2.1, 1.4.11, asks for 3).
"""
NAMES_ON_LIGHT = {"#d7651d": "#c25200", "#519f82": "#328266", "#a048fb": "#9c43f7", "#b0b6bd": "#70757c"}
NAMES_ON_DARK = {"#a048fb": "#bb38ff", "#4e0d54": "#db37b4", "#b0b6bd": "#787f8b"}
"""The shade of a colour in which a name is written, where the colour itself has less than 4.5 : 1 (WCAG 2.1, 1.4.3)."""


@dataclass(frozen=True, kw_only=True)
class Style:
    """The look of one variant in every figure: `Style(colour="#0072B2", symbol="square")`."""

    colour: str
    symbol: str


def styles(plan: Plan, focus: Collection[str] | None = None) -> dict[str, Style]:
    """Colour and marker of each variant; no two share a colour except grey, the colour of all beyond `MOST_COLOURED`.

    `focus` are the variants that may have a colour (all by default), the first of the plan's order before the others.
    Each takes the colour of its place in the plan, or the next free one. The sweep's own reference is dark, even if a
    page has another baseline.
    """
    own = own_reference(plan)
    others = [variant.name for variant in plan.variants if variant.name != own]
    chosen = [name for name in others if focus is None or name in focus][: len(COLOURS)]
    wanted = {name: others.index(name) % len(COLOURS) for name in chosen}
    places: dict[int, str] = {}
    for name, place in wanted.items():
        places.setdefault(place, name)
    free = iter([place for place in range(len(COLOURS)) if place not in places])
    places |= {next(free): name for name in chosen if name not in places.values()}
    found = {own: Style(colour=REFERENCE_COLOUR, symbol=MARKER_SYMBOLS[0])}
    found |= {name: Style(colour=OTHERS_COLOUR, symbol=MARKER_SYMBOLS[0]) for name in others}
    found |= {name: Style(colour=COLOURS[place], symbol=MARKER_SYMBOLS[1 + place]) for place, name in places.items()}
    return found


def drawn_in(colour: str, *, is_dark: bool) -> str:
    """The colour of a line or point on a page."""
    return ON_DARK.get(colour, colour) if is_dark else colour


def written_in(colour: str, *, is_dark: bool) -> str:
    """The colour of a name on a page."""
    return (NAMES_ON_DARK if is_dark else NAMES_ON_LIGHT).get(colour) or drawn_in(colour, is_dark=is_dark)


def own_reference(plan: Plan) -> str:
    """The variant of a sweep that changes nothing; the plan's reference if no variant, or every variant, changes
    nothing."""
    unchanged = [variant.name for variant in plan.variants if not variant.overrides]
    return unchanged[0] if 0 < len(unchanged) < len(plan.variants) else plan.reference


def leading(results: Results) -> tuple[str, ...]:
    """The reference and the variants with the highest level, `MOST_COLOURED` in all, in the plan's order."""
    names = [variant.name for variant in results.variants]
    levels = {name: level for name in names if (level := _height(results, name)) is not None}
    best = sorted(levels, key=levels.__getitem__, reverse=True)
    best += [name for name in names if name not in levels]
    reference = results.plan.reference
    chosen = {reference, *[name for name in best if name != reference][: MOST_COLOURED - 1]}
    return tuple(name for name in names if name in chosen)


def look_of(results: Results) -> dict[str, Style]:
    """Colour and marker of each variant in a figure of all variants: the leading ones in colour, the others grey."""
    return styles(results.plan, leading(results))


def _height(results: Results, name: str) -> float | None:
    line = results.compared(name)
    if line is None:
        return None
    return line.asymptote.A if line.level is None else line.level


def tint(colour: str, opacity: float) -> str:
    """The colour with this opacity, for CSS: `tint("#216da4", 0.12)` is `rgba(33,109,164,0.12)`."""
    red, green, blue = (int(colour[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity})"
