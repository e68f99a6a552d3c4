"""The card of a study as Markdown, `card.md`, with its figure `curves.svg` beside it."""

from collections.abc import Sequence

from ablations.findings.card import Card
from ablations.report.markdown import markdown_grid, markdown_text
from ablations.report.words.card import card_line, tally_text


def card_markdown(card: Card, notes: Sequence[str]) -> str:
    """The whole card; `notes` follow its claims."""
    plan = card.results.plan
    lines = [card_line(one) for one in card.claims]
    parts = [
        f"# {markdown_text(plan.sweep)}: {tally_text(card.claims)}",
        markdown_text(plan.doc),
        markdown_grid(
            ("the paper says", "here", "the claim", "source"),
            [(line.claim, line.here, line.outcome, line.source) for line in lines],
        ),
        *map(markdown_text, notes),
        "![Curves of all variants, with their fits](curves.svg)",
        markdown_text(plan.command),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
