"""The colour and marker of each variant, the same in every figure, on the page and on the dashboard."""

from dataclasses import dataclass

from ablations.home.plan import Plan

REFERENCE_COLOUR = "#1a1a1a"
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#999933")
"""Told apart with any kind of colour vision (Okabe and Ito 2008, Tol 2021) and dark enough on white."""
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross", "x", "star", "pentagon")


@dataclass(frozen=True, kw_only=True)
class Style:
    """How one variant is drawn everywhere: `Style(colour="#0072B2", symbol="square")`."""

    colour: str
    symbol: str

    def tint(self, opacity: float) -> str:
        """The colour, see-through."""
        red, green, blue = (int(self.colour[start : start + 2], 16) for start in (1, 3, 5))
        return f"rgba({red},{green},{blue},{opacity})"


def styles(plan: Plan) -> dict[str, Style]:
    """Colour and marker of each variant, by its place in the plan; the reference is dark."""
    others = [variant.name for variant in plan.variants if variant.name != plan.reference]
    chosen = {plan.reference: Style(colour=REFERENCE_COLOUR, symbol=SYMBOLS[0])}
    for place, name in enumerate(others):
        chosen[name] = Style(colour=COLOURS[place % len(COLOURS)], symbol=SYMBOLS[1 + place % (len(SYMBOLS) - 1)])
    return chosen
