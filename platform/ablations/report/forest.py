"""What forest plots draw, as plain data: the differences from the reference in level, ceiling and compute."""

from dataclasses import dataclass

from ablations.report.colours import Style, styles
from ablations.report.rounding import rounded_line
from ablations.verdict.results import Results

NOT_KNOWN = "not known"
"""Of a difference that the readings do not bound on either side."""


@dataclass(frozen=True, kw_only=True)
class ForestRow:
    """One variant's difference with its 95 % interval; an end that is None is not bounded.

    ForestRow(variant="loo-loss", style=style, estimate=-0.058, lo=-0.087, hi=-0.029, text="-0.058 [-0.087, -0.029]")
    """

    variant: str
    style: Style
    estimate: float | None
    """None where it means nothing by itself: an end or both may still be known."""
    lo: float | None
    hi: float | None
    text: str

    @property
    def drawn_at(self) -> float | None:
        """Where its marker is: the estimate, else the end that is known; None where nothing is."""
        return next((value for value in (self.estimate, self.lo, self.hi) if value is not None), None)

    @property
    def arrow(self) -> str:
        """`right` where it is known to lie at `drawn_at` or above, `left` where at it or below, else empty."""
        if self.estimate is not None or (self.lo is None) == (self.hi is None):
            return ""
        return "right" if self.lo is not None else "left"


@dataclass(frozen=True, kw_only=True)
class ForestPanel:
    """One question, every variant's answer."""

    title: str
    axis_title: str
    null: float
    """No difference."""
    log: bool
    rows: tuple[ForestRow, ...]
    """Every variant that is compared, in the plan's order; the reference is not among them."""


def forest_panels(results: Results) -> tuple[ForestPanel, ForestPanel, ForestPanel]:
    """The differences in level and in ceiling, and the ratio of compute, each against the reference."""
    look, reference = styles(results.plan), results.plan.reference
    lines = results.comparison.variants if results.comparison else ()
    others = [(line, rounded_line(results, results.variant(line.curve))) for line in lines if line.curve != reference]

    def rows(name: str, *, rising: bool = False) -> tuple[ForestRow, ...]:
        found = []
        for line, texts in others:
            estimate, lo, hi = (getattr(line, f"{name}{end}") for end in ("", "_lo", "_hi"))
            said = getattr(texts, name)
            if rising and line.verdict == "no rise":  # it has no ceiling
                estimate, lo, hi, said = None, None, None, "no rise"
            style, said = look[line.curve], said or NOT_KNOWN
            found.append(ForestRow(variant=line.curve, style=style, estimate=estimate, lo=lo, hi=hi, text=said))
        return tuple(found)

    return (
        ForestPanel(
            title=f"level less that of {reference}",
            axis_title="pass rate over the last third",
            null=0.0,
            log=False,
            rows=rows("delta_level"),
        ),
        ForestPanel(
            title=f"ceiling less that of {reference}",
            axis_title="A, pass rate",
            null=0.0,
            log=False,
            rows=rows("delta_A", rising=True),
        ),
        ForestPanel(
            title=f"compute over that of {reference}",
            axis_title="under 1 needs less compute",
            null=1.0,
            log=True,
            rows=rows("compute_ratio"),
        ),
    )
