"""The paper's comparison in words: a line of cells per variant, and notes on the numbers."""

from ablations.answers.paper_grid import PaperGrid
from ablations.answers.paper_rule import PAPER_MARGIN, PAPER_RULE
from ablations.findings.paper_comparison import WARNING, PaperComparison, PaperVariant
from ablations.report.words.comparison import SAID_BY_THE_PAPER_RULE
from ablations.text import compute_text

GRIDS: dict[PaperGrid, str] = {
    "stated": "the paper's grid (A from 0.450 to 0.800 in steps of 0.005, 100 values of C_mid)",
    "finer": "a finer grid (A from R_0 to 1 in steps of 0.001, 400 values of C_mid)",
}
GRID_EDGES = "on the grid's end"
"""Heading of the parameters that lie on an end of the grid."""


def paper_rows(comparison: PaperComparison) -> list[dict[str, str]]:
    """The cells of each variant by heading; a cell without a number is empty."""
    return [_paper_row(comparison, variant) for variant in comparison.variants]


def _paper_row(comparison: PaperComparison, variant: PaperVariant) -> dict[str, str]:
    reference = comparison.reference
    is_reference = variant.name == reference
    return {
        "variant": variant.name,
        "seeds": str(len(variant.fits)),
        f"A ±{PAPER_MARGIN}": f"{variant.A:.3f}",
        f"A − {reference}": "" if is_reference else f"{variant.delta_A:+.3f}",
        PAPER_RULE: "reference" if is_reference else SAID_BY_THE_PAPER_RULE[variant.difference],
        "B": f"{variant.B:.2f}",
        "C_mid": compute_text(variant.C_mid),
        f"B at A {comparison.common_A:.3f}": "" if variant.B_at_common_A is None else f"{variant.B_at_common_A:.2f}",
        f"B − {reference}": "" if variant.delta_B is None or is_reference else f"{variant.delta_B:+.2f}",
        GRID_EDGES: ", ".join(variant.edges),
    }


def paper_notes(comparison: PaperComparison, compute_name: str) -> list[str]:
    """Notes on the origin and limits of the numbers, and the reasons why runs have no fit."""
    return [
        f"Least squares on {GRIDS[comparison.grid]}, evaluations beyond {compute_text(comparison.fit_from)} "
        f"{compute_name}, R_0 the evaluation at compute 0. B is refitted at A {comparison.common_A:.3f}, the mean "
        f"of all A within {PAPER_MARGIN} of {comparison.reference}'s.",
        WARNING,
        *comparison.reasons,
    ]
