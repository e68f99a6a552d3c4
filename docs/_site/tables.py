"""Cells of tables that know their heading, so that a phone shows each row as a list (site.css)."""

import re

TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
ROW = re.compile(r"<tr>.*?</tr>", re.DOTALL)
HEADING = re.compile(r"<th[^>]*>(.*?)</th>", re.DOTALL)
CELL = re.compile(r"<td(?=[ >])")
TAG = re.compile(r"<[^>]+>")


def on_page_content(html: str, **of_page: object) -> str:
    """The hook of mkdocs."""
    return TABLE.sub(lambda table: _labelled(table[0]), html)


def _labelled(table: str) -> str:
    headings = [TAG.sub("", heading).replace('"', "&quot;") for heading in HEADING.findall(table)]

    def row(found: re.Match[str]) -> str:
        names = iter(headings)
        return CELL.sub(lambda cell: f'<td data-heading="{next(names, "")}"', found[0])

    return ROW.sub(row, table)
