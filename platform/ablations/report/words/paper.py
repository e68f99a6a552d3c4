"""The paper's comparison in words: a line of cells per variant, and notes on the numbers."""

from dataclasses import dataclass

from ablations.answers.paper_grid import PaperGrid
from ablations.answers.paper_rule import PAPER_MARGIN
from ablations.findings.paper_comparison import WARNING, PaperComparison, PaperVariant
from ablations.report.words.comparison import SAID_BY_THE_PAPER_RULE
from ablations.text import compute_text

GRIDS: dict[PaperGrid, str] = {
    "stated": "the paper's grid (A from 0.450 to 0.800 in steps of 0.005, 100 values of C_mid)",
    "finer": "a finer grid (A from R_0 to 1 in steps of 0.001, 400 values of C_mid)",
}


@dataclass(frozen=True, kw_only=True)
class PaperLine:
    """One variant as text; a cell without a number is empty.

    PaperLine(variant="loo-loss", seeds="1", A="0.550", delta_A="-0.060", paper_rule="down", B="1.80", C_mid="2,518",
              B_at_common_A="", delta_B="", edges="")
    """

    variant: str
    seeds: str
    A: str
    delta_A: str
    paper_rule: str
    B: str
    C_mid: str
    B_at_common_A: str
    delta_B: str
    edges: str


def paper_line(comparison: PaperComparison, variant: PaperVariant) -> PaperLine:
    """The variant's line of the comparison as text."""
    is_reference = variant.name == comparison.reference
    return PaperLine(
        variant=variant.name,
        seeds=str(len(variant.fits)),
        A=f"{variant.A:.3f}",
        delta_A="" if is_reference else f"{variant.delta_A:+.3f}",
        paper_rule="reference" if is_reference else SAID_BY_THE_PAPER_RULE[variant.difference],
        B=f"{variant.B:.2f}",
        C_mid=compute_text(variant.C_mid),
        B_at_common_A="" if variant.B_at_common_A is None else f"{variant.B_at_common_A:.2f}",
        delta_B="" if variant.delta_B is None or is_reference else f"{variant.delta_B:+.2f}",
        edges=", ".join(variant.edges),
    )


def paper_notes(comparison: PaperComparison, compute_name: str) -> list[str]:
    """Notes on the origin and limits of the numbers, and the reasons why runs have no fit."""
    return [
        f"Least squares on {GRIDS[comparison.grid]}, evaluations beyond {compute_text(comparison.fit_from)} "
        f"{compute_name}, R_0 the evaluation at compute 0. B is refitted at A {comparison.common_A:.3f}, the mean "
        f"of all A within {PAPER_MARGIN} of {comparison.reference}'s.",
        WARNING,
        *comparison.reasons,
    ]
