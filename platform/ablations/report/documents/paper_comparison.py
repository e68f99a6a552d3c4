"""The comparison by the paper's method as a document: a line per variant, with a warning about its numbers."""

from ablations.answers.paper_grid import PaperGrid
from ablations.answers.paper_rule import PAPER_MARGIN, PAPER_RULE
from ablations.findings.paper_comparison import WARNING, PaperComparison, PaperVariant
from ablations.report.documents.blocks import Blocks, Cell, table_of_rows
from ablations.report.documents.number_cells import compute_cell, number_cell
from ablations.report.documents.variant_row import SAID_BY_THE_PAPER_RULE
from ablations.text import compute_text

GRID_EDGES = "on the grid's end"
"""Heading of the parameters that lie on an end of the grid."""
GRIDS: dict[PaperGrid, str] = {
    "stated": "the paper's grid (A from 0.450 to 0.800 in steps of 0.005, 100 values of C_mid)",
    "finer": "a finer grid (A from R_0 to 1 in steps of 0.001, 400 values of C_mid)",
}


def paper_document(comparison: PaperComparison, *, sweep: str, compute_name: str) -> Blocks:
    """A line per variant, notes on the origin and limits of the numbers, and the reasons why runs have no fit."""
    return [
        table_of_rows(
            [_paper_row(comparison, variant) for variant in comparison.variants],
            name="paper",
            kinds={PAPER_RULE: "words", GRID_EDGES: "words"},
            title=f"{sweep} as arXiv 2510.13786 compares, against {comparison.reference}",
            notes=_notes(comparison, compute_name),
        )
    ]


def _paper_row(comparison: PaperComparison, variant: PaperVariant) -> dict[str, Cell | str]:
    reference = comparison.reference
    is_reference = variant.name == reference
    return {
        "variant": variant.name,
        "seeds": str(len(variant.fits)),
        f"A ±{PAPER_MARGIN}": number_cell(variant.A, ".3f"),
        f"A − {reference}": "" if is_reference else number_cell(variant.ceiling_difference, "+.3f"),
        PAPER_RULE: "reference" if is_reference else SAID_BY_THE_PAPER_RULE[variant.ceiling_verdict],
        "B": number_cell(variant.B, ".2f"),
        "C_mid": compute_cell(variant.C_mid),
        f"B at A {comparison.common_A:.3f}": number_cell(variant.B_at_common_A, ".2f"),
        f"B − {reference}": number_cell(None if is_reference else variant.delta_B, "+.2f"),
        GRID_EDGES: ", ".join(variant.edges),
    }


def _notes(comparison: PaperComparison, compute_name: str) -> tuple[str, ...]:
    """Notes on the origin and limits of the numbers, and the reasons why runs have no fit."""
    return (
        f"Least squares on {GRIDS[comparison.grid]}, evaluations beyond {compute_text(comparison.fit_from)} "
        f"{compute_name}, R_0 the evaluation at compute 0. B is refitted at A {comparison.common_A:.3f}, the mean "
        f"of all A within {PAPER_MARGIN} of {comparison.reference}'s.",
        WARNING,
        *comparison.notes,
        *comparison.reasons,
    )
