"""One document with every kind of block, which each writer writes, with text that wants to be obeyed."""

import io
import re
from html.parser import HTMLParser

from ablations.report.documents.blocks import Cell, Column, Figure, Folded, Heading, Table, Text, cells
from ablations.report.figures.chart import Axis, Chart, Panel, Series
from ablations.report.writers.terminal import print_document
from ablations.terminal.screen import Screen


def printed(blocks, *, width: int = 100, colour: bool = False) -> str:
    file = io.StringIO()
    print_document(blocks, Screen(file=file, width=width, force_terminal=colour, no_color=not colour))
    return file.getvalue()


class Tags(HTMLParser):
    """Elements of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL))

    def handle_starttag(self, tag, attrs) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data) -> None:
        self.text += data

    def those(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.found if name == tag]


CURVE = Series(x=[0, 1], y=[1, 3], colour="#216da4", width=2)
HOSTILE = (
    "=1+1 <img src=x onerror=alert(1)> ![p](https://elsewhere.example/x.png) **b** $x$ \\input{/etc/passwd} "
    '\x1b[31m \u202e @who www.elsewhere.example | # 😀 & % ~ ^ {a} _b_ ‘q’ "q"'
)
LEVELS = Table(
    name="levels",
    title="levels of loo",
    columns=(
        Column(heading="variant"),
        Column(heading="level [95 %]", kind="number"),
        Column(heading="cost", kind="number"),
        Column(heading="fit", kind="words"),
        Column(heading="message", kind="prose"),
    ),
    rows=(
        cells(Cell("scalerl", colour="#1a1a1a"), Cell("0.594", 0.594), Cell("12,000", 12000.0), "resolved", ""),
        cells(
            Cell("loo-loss", colour="#216da4"),
            Cell("lower\n-0.049 [-0.071, …]*", -0.049, tone="bad", heat=-1.0),
            Cell("9000", 9000.0),
            Cell("weak", tone="mixed"),
            "entropy is down to 0.019 nats per token",
        ),
        cells(HOSTILE, Cell("+0.012 [+0.003, +0.021]", 0.012, tone="good", heat=0.25), "", "", ""),
    ),
    notes=("A note below the table.",),
)
DOCUMENT = (
    Heading(text="loo", level=1),
    Text(text="loo-loss trails scalerl by 0.049.", kind="lead"),
    Text(text="Run `platform compare loo` again."),
    Text(text="Levels are means.", kind="note"),
    Text(text="2 of 3 runs are unfinished.", kind="warning"),
    Text(text=f"dapo collapsed: {HOSTILE}", kind="error"),
    Heading(text="Comparison"),
    LEVELS,
    Figure(
        name="curves",
        caption="Thin is measured.",
        chart=Chart(alt="Pass rate against compute", panels=[Panel(x=Axis(), y=Axis(), marks=[CURVE])]),
    ),
    Folded(
        title="All words",
        blocks=(
            Text(text="Method: means of the last third."),
            Table(
                name="words",
                columns=(Column(heading="said", kind="prose"),),
                rows=(cells(("a sentence " * 20).strip()),),
            ),
        ),
    ),
)
