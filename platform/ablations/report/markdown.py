"""The report, or the card of a study, as Markdown, with its figures beside it, for GitHub and editors.

User-written text is escaped, so that it cannot load an image or become a link or HTML.
"""

import re
from collections.abc import Mapping, Sequence

from ablations.findings.claim_card import Card
from ablations.report.curves import CURVES_LEGEND
from ablations.report.document import OVER_SCALES, Document
from ablations.report.grid_tables import GridTable
from ablations.report.ladder import ladder_grids, ladder_sentences
from ablations.report.words.claim_card import CLAIM_HEADINGS, claim_cells, tally_text
from ablations.terminal.visible import made_visible

BACKSLASHED = "\\`*[]|~_"
"""Characters escaped by a backslash; a bracket begins every link and image. Other marks become entities."""
MARKUP = re.compile(
    r"[\\`*\[\]|~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])"
    r"|^[-+#=>]|^\d(?=\d*[.)])"  # a list, a heading, a quotation
    r"|[&<$]|(?<![A-Za-z0-9])@"  # HTML, mathematics, mentions
    r"|(?<=[A-Za-z]):(?=//)|(?<=www)\.",  # an address, which would become a link by itself
    re.IGNORECASE,
)


def markdown_files(document: Document, figures: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files by name: `report.md` and its figures."""
    return {"report.md": _report_text(document).encode()} | dict(figures)


def markdown_text(text: str) -> str:
    """`text` on one line, escaped so that Markdown shows it literally; plain words and numbers stay unchanged."""
    line = " ".join(made_visible(text).split())
    if _is_bound(line.rstrip("*=?")):  # a number may have the mark of its verdict
        return line.replace("*", "\\*")
    return MARKUP.sub(lambda found: _stopped(found[0]), line)


def _stopped(mark: str) -> str:
    return f"\\{mark}" if mark in BACKSLASHED else f"&#{ord(mark)};"


def _is_bound(text: str) -> bool:
    """True for `>= 0.59` and `-0.05 [-0.1, 0.1]`, which is no link, because no address follows."""
    return re.fullmatch(r"(>= )?[+-]?[\d,.]*( ?\[[-+\d.,… ]*\])?", text) is not None


def _report_text(document: Document) -> str:
    results = document.results
    parts = [
        f"# {markdown_text(results.title)}",
        markdown_text(results.plan.doc),
        markdown_text(" ".join(document.headline)),
        markdown_text(document.task),
        *(f"> {markdown_text(one.text)}" for one in results.remarks),
        "![Pass rate against compute, with fits and ceilings](curves.png)",
        markdown_text(CURVES_LEGEND),
        f"## Differences from {markdown_text(results.plan.reference)}",
        "![Differences from the reference, with intervals](differences.png)",
        markdown_text(document.differences_legend),
        "## Comparison",
        markdown_grid(document.headings, document.rows),
        *markdown_tables(document.grid_heading, document.grid, document.grid_notes),
        *markdown_tables(OVER_SCALES, document.ladder, document.ladder_notes),
        "## In words",
        "\n".join(f"* {markdown_text(text)}" for text in document.findings),
        markdown_text(document.advice),
        "## What each variant changes",
        markdown_grid(("variant", "changes"), document.changes),
        "## Methods",
        *map(markdown_text, document.methods),
        "## What the verdicts mean",
        markdown_grid(("verdict", "meaning"), document.glossary),
        "## How this was made",
        markdown_grid(("what", "value"), document.origin),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def markdown_tables(heading: str, found: Sequence[GridTable], notes: str) -> list[str]:
    """A section of tables; none without one."""
    tables = [
        text for one in found for text in (f"### {markdown_text(one.title)}", markdown_grid(one.headings, one.rows))
    ]
    return [f"## {heading}", *tables, markdown_text(notes)] if tables else []


def markdown_grid(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with escaped text; "None." without rows."""
    if not rows:
        return "None."
    first, *others = ([markdown_text(cell) for cell in row] for row in (headings, *rows))
    return "\n".join(f"| {' | '.join(line)} |" for line in (first, ["---"] * len(headings), *others))


def card_markdown(card: Card, notes: Sequence[str]) -> str:
    """`card.md`, with `curves.svg` beside it; `notes` stand below the claims, differences over scales at the end."""
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
