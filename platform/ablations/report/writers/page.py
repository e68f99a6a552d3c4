"""Documents as one HTML file that opens anywhere, without a network.

Figures can be zoomed: Plotly is in the page, packed together with what it draws. Tables are sorted by their numbers by
a click on a heading, or by Enter on it. Every text is escaped, with control characters made visible. `page.html` has
the look, and the scripts that unpack, draw and sort.
"""

import gzip
from base64 import b85encode
from collections.abc import Iterator
from importlib.resources import files

from markupsafe import Markup, escape
from plotly.offline import get_plotlyjs

from ablations.report.documents.blocks import Blocks, Cell, Column, Figure, Folded, Heading, Table, Text, code_parts
from ablations.report.figures.colours import BLUE, ORANGE, tint
from ablations.report.figures.plotly_chart import chart_script
from ablations.terminal.visible import made_visible

DECIDED, UNDECIDED = 0.5, 0.12
"""Opacity of the largest difference. Text in the page's own colour stays readable on both."""


def page_of(blocks: Blocks, *, title: str) -> str:
    """The page as HTML; `title` is that of its window."""
    scripts: list[str] = []
    body = Markup("\n").join(_written(blocks, scripts))
    packed = b85encode(gzip.compress("".join([get_plotlyjs(), "\n", *scripts]).encode(), mtime=0)) if scripts else b""
    look, rest = (files("ablations.report.writers") / "page.html").read_text().split("BODY")
    before, after = rest.split("PACKED")
    return f"{look.replace('TITLE', escape(made_visible(title)))}{body}{before}{packed.decode()}{after}"


def _written(blocks: Blocks, scripts: list[str]) -> Iterator[Markup]:
    """The parts of the page; `scripts` gets what draws their figures."""
    for one in blocks:
        match one:
            case Heading():
                yield Markup(f"<h{one.level}>{{}}</h{one.level}>").format(_inline(one.text))
            case Text(kind="plain"):
                yield Markup("<p>{}</p>").format(_inline(one.text))
            case Text():
                yield Markup('<p class="{}">{}</p>').format(one.kind, _inline(one.text))
            case Table():
                yield from _table(one)
            case Figure():
                place, label = f"figure-{len(scripts)}", made_visible(one.chart.alt)
                scripts.append(chart_script(one.chart, place))
                drawn = Markup('<div><div id="{}"></div></div>').format(place)
                yield Markup('<figure role="group" aria-label="{}">{}<figcaption>{}</figcaption></figure>').format(
                    label, drawn, _inline(one.caption)
                )
            case Folded():
                inside = Markup("\n").join(_written(one.blocks, scripts))
                yield Markup("<details><summary>{}</summary>{}</details>").format(_inline(one.title), inside)


def _table(table: Table) -> Iterator[Markup]:
    if table.title:
        yield Markup("<h3>{}</h3>").format(_inline(table.title))
    headings = Markup().join(
        Markup('<th scope="col"><button>{}</button></th>').format(made_visible(one.heading)) for one in table.columns
    )
    rows = Markup().join(
        Markup("<tr>{}</tr>").format(Markup().join(map(_cell, row, table.columns))) for row in table.rows
    )
    yield Markup('<div class="wide"><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>').format(
        headings, rows
    )
    yield from (Markup('<p class="note">{}</p>').format(_inline(note)) for note in table.notes if note)


def _cell(cell: Cell, column: Column) -> Markup:
    number = "" if cell.number is None else Markup(' data-number="{}"').format(repr(float(cell.number)))
    heat = heat_colour(cell)
    style = Markup(' style="background: {}"').format(heat) if heat else ""
    dot = Markup('<i class="dot" style="background:{}"></i>').format(cell.colour) if cell.colour else ""
    return Markup('<td class="{}"{}{}>{}{}</td>').format(column.kind, number, style, dot, _inline(cell.text.rstrip()))


def heat_colour(cell: Cell) -> str:
    """The background of a cell in CSS: blue if better, orange if worse, pale if undecided; empty for none."""
    if not cell.heat:
        return ""
    opacity = abs(cell.heat) * (UNDECIDED if cell.tone == "faint" else DECIDED)
    return tint(BLUE if cell.heat > 0 else ORANGE, round(opacity, 3))


def _inline(text: str) -> Markup:
    parts = [
        Markup("<code>{}</code>" if is_code else "{}").format(made_visible(part)) for part, is_code in code_parts(text)
    ]
    return Markup().join(parts)
