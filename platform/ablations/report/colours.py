"""The colour and marker of each variant, the same in every figure, page and dashboard."""

from dataclasses import dataclass

from ablations.home.labels import Labels

REFERENCE_COLOUR = "#1a1a1a"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#999933")
"""Colours distinguishable with any colour vision (Okabe and Ito 2008, Tol 2021) and dark enough on white."""
BLUE, ORANGE, GREEN = COLOURS[:3]
MARKER_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x", "star", "pentagon")


@dataclass(frozen=True, kw_only=True)
class Style:
    """The look of one variant in every figure: `Style(colour="#0072B2", symbol="square")`."""

    colour: str
    symbol: str

    def tint(self, opacity: float) -> str:
        """The colour with this opacity."""
        red, green, blue = (int(self.colour[start : start + 2], 16) for start in (1, 3, 5))
        return f"rgba({red},{green},{blue},{opacity})"


def styles(plan: Labels) -> dict[str, Style]:
    """Colour and marker of each variant, by its place in the plan. The sweep's own reference is dark, whatever the
    baseline of a page.
    """
    own = own_reference(plan)
    others = [variant.name for variant in plan.variants if variant.name != own]
    chosen = {own: Style(colour=REFERENCE_COLOUR, symbol=MARKER_SYMBOLS[0])}
    for place, name in enumerate(others):
        chosen[name] = Style(colour=COLOURS[place % len(COLOURS)], symbol=_symbol(place))
    return chosen


def own_reference(plan: Labels) -> str:
    """The variant of a sweep that changes nothing; the plan's reference if none or all change nothing."""
    unchanged = [variant.name for variant in plan.variants if not variant.overrides]
    return unchanged[0] if 0 < len(unchanged) < len(plan.variants) else plan.reference


def _symbol(place: int) -> str:
    """A marker, shifted by one in every round of the colours, so that no two of 64 variants share colour and marker."""
    return MARKER_SYMBOLS[1 + (place + place // len(COLOURS)) % (len(MARKER_SYMBOLS) - 1)]
