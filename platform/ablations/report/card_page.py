"""The card of a study as Markdown, `card.md`, with its figure `curves.svg` beside it."""

from collections.abc import Sequence

from ablations.findings.card import Card
from ablations.report.document import OVER_SCALES
from ablations.report.ladder_tables import ladder_grids, ladder_sentences
from ablations.report.markdown import markdown_grid, markdown_tables, markdown_text
from ablations.report.words.card import CLAIM_HEADINGS, claim_cells, tally_text


def card_markdown(card: Card, notes: Sequence[str]) -> str:
    """The whole card; `notes` stand below its claims, differences over scales at its end."""
    plan, ladder = card.results.plan, card.ladder
    parts = [
        f"# {markdown_text(plan.sweep)}: {tally_text(card.claims)}",
        markdown_text(plan.doc),
        markdown_grid(CLAIM_HEADINGS, [claim_cells(one) for one in card.claims]),
        *map(markdown_text, notes),
        "![Curves of all variants, with their fits](curves.svg)",
        markdown_text(plan.command),
        *(markdown_tables(OVER_SCALES, ladder_grids(ladder), " ".join(ladder_sentences(ladder))) if ladder else ()),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
