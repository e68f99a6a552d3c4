"""Documents as Markdown, with their figures as files beside them, for GitHub and editors.

User-written text is escaped, so that it cannot load an image or become a link or HTML.
"""

import re
from collections.abc import Iterator

from ablations.report.documents.blocks import Blocks, Figure, Folded, Heading, Table, Text, code_parts
from ablations.report.figures.chart import PAGE_IN, PictureFormat
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


def markdown_files(blocks: Blocks, name: str, *, pictures: PictureFormat = "png") -> dict[str, bytes]:
    """The contents of all files by name: the document under this name, and each of its figures as a picture."""
    return {name: markdown_document(blocks, pictures=pictures).encode()} | pictures_of(blocks, pictures)


def markdown_document(blocks: Blocks, *, pictures: PictureFormat = "png") -> str:
    """Only the document, with the names of its pictures."""
    return "\n\n".join(part for part in _written(blocks, pictures) if part) + "\n"


def pictures_of(blocks: Blocks, *kinds: PictureFormat) -> dict[str, bytes]:
    """The figures of a document in these formats, as wide as a page, by file name."""
    from ablations.report.figures.paper_chart import picture  # imports matplotlib, which takes long

    return {
        f"{one.name}.{kind}": picture(one.chart, kind, width_in=PAGE_IN, dpi=150)
        for one in _figures_in(blocks)
        for kind in kinds
    }


def _figures_in(blocks: Blocks) -> Iterator[Figure]:
    """The figures of a document, those of folded parts among them."""
    for one in blocks:
        match one:
            case Figure():
                yield one
            case Folded():
                yield from _figures_in(one.blocks)


def _written(blocks: Blocks, pictures: PictureFormat) -> Iterator[str]:
    for one in blocks:
        match one:
            case Heading():
                yield f"{'#' * one.level} {markdown_text(one.text)}"
            case Text(kind="warning" | "error"):
                yield f"> {markdown_text(one.text)}"
            case Text(kind="lead"):
                yield f"**{markdown_text(one.text)}**"
            case Text():
                yield markdown_text(one.text)
            case Table():
                yield f"### {markdown_text(one.title)}" if one.title else ""
                yield _table(one)
                yield from map(markdown_text, one.notes)
            case Figure():
                yield f"![{markdown_text(one.chart.alt)}]({one.name}.{pictures})"
                yield markdown_text(one.caption)
            case Folded():
                yield from _written([Heading(text=one.title), *one.blocks], pictures)


def _table(table: Table) -> str:
    headings = [markdown_text(one.heading) for one in table.columns]
    rows = [["<br>".join(map(_in_cell, cell.text.split("\n"))) for cell in row] for row in table.rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in (headings, ["---"] * len(headings), *rows))


def _in_cell(line: str) -> str:
    line = line.strip()
    # A number may have the mark of its verdict.
    return line.replace("*", "\\*") if _is_bound(line.rstrip("*=?")) else markdown_text(line, with_code="|" not in line)


def markdown_text(text: str, *, with_code: bool = True) -> str:
    """`text` on one line, escaped so that Markdown shows it literally; plain words and numbers stay unchanged."""
    line = " ".join(made_visible(text).split())
    parts = code_parts(line) if with_code else [(line, False)]
    return "".join(f"`{part}`" if is_code else MARKUP.sub(_stopped, part) for part, is_code in parts)


def _stopped(mark: re.Match[str]) -> str:
    return f"\\{mark[0]}" if mark[0] in BACKSLASHED else f"&#{ord(mark[0])};"


def _is_bound(text: str) -> bool:
    """True for `>= 0.59` and `-0.05 [-0.1, 0.1]`, which is no link, because no address follows."""
    return re.fullmatch(r"(>= )?[+-]?[\d,.]*%?( ?\[[-+\d.,… ]*\])?( at [\d,.e+-]+)?", text) is not None
