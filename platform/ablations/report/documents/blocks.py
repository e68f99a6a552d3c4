"""The blocks of a document: words, their order, and numbers. Each writer of `ablations.report.writers` turns them into
its form, with widths, colours and sorting of its own.

Text is as people wrote it, control characters included: a writer escapes it. What stands between backticks is code.

>>> Table(
...     name="levels",
...     columns=(Column(heading="variant"), Column(heading="level", kind="number")),
...     rows=(cells("scalerl", Cell("0.594 [0.58, 0.61]", 0.594)),),
... )
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from ablations.report.figures.chart import Chart  # with numpy, which tables do without

Kind = Literal["name", "number", "words", "prose"]
"""A name is never broken, a number breaks before its interval, words break at spaces, prose may leave its column."""
TextKind = Literal["plain", "lead", "note", "warning", "error"]
"""A lead is the answer in one sentence, a note explains, a warning deserves a look, an error spoils a number."""
Tone = Literal["", "good", "bad", "mixed", "faint"]
"""What a cell means for its row; faint is undecided or of little weight."""
LONGEST_HEADING_WORD = 32
CODE = re.compile("`([^`\n]+)`")


@dataclass(frozen=True, kw_only=True)
class Heading:
    """The heading of a section: `Heading(text="Scale ladder")`."""

    text: str
    level: Literal[1, 2, 3] = 2
    """1 for the title of the document."""


@dataclass(frozen=True, kw_only=True)
class Text:
    """One paragraph: `Text(text="dapo: 1 of 3 seeds collapsed.", kind="error")`."""

    text: str
    kind: TextKind = "plain"
    runs: tuple[str, ...] = ()
    """Names of the runs that a warning is about, which a page links to."""


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column: `Column(heading="A [95 %]", kind="number")`."""

    heading: str
    kind: Kind = "name"
    rank: int = 0
    """0 if always shown, else the order in which columns appear as more width becomes available."""


@dataclass(frozen=True)
class Cell:
    """A cell: `Cell("-0.049 [-0.071, -0.027]*", -0.0491, tone="bad")`; its text may have several lines."""

    text: str
    number: float | None = None
    """The number by which the row is sorted; None sorts by the text."""
    tone: Tone = ""
    colour: str = ""
    """The colour that the variant named in the cell has in the figures, `#216da4`; empty for none."""
    heat: float = 0.0
    """The size of a difference relative to the largest of its table: 1 better, -1 worse, 0 for no colour."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table, whose first column names the row. Long words of headings, such as the name of a run, are called `[a]`,
    `[b]`; the first notes say which is which."""

    name: str
    """Its name in files and URLs, unique among the document's tables."""
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    notes: tuple[str, ...] = ()
    """Sentences below the table."""

    def __post_init__(self) -> None:
        words = [word for one in self.columns for word in one.heading.split(" ") if len(word) > LONGEST_HEADING_WORD]
        called = {word: f"[{letter}]" for word, letter in zip(dict.fromkeys(words), ascii_lowercase, strict=False)}
        if called:
            told = (" ".join(called.get(word, word) for word in one.heading.split(" ")) for one in self.columns)
            columns = tuple(replace(one, heading=heading) for one, heading in zip(self.columns, told, strict=True))
            object.__setattr__(self, "columns", columns)
            notes = (f"{letter} is {word}." for word, letter in called.items())
            object.__setattr__(self, "notes", (*notes, *self.notes))


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure: its chart, which says what it shows, and a caption."""

    name: str
    """Its name in files and URLs, unique among the document's figures."""
    caption: str
    chart: "Chart"


@dataclass(frozen=True, kw_only=True)
class Folded:
    """Blocks that a reader unfolds by clicking their title; on paper and in a terminal they follow it."""

    title: str
    blocks: "Blocks"


Blocks = Sequence[Heading | Text | Table | Figure | Folded]


def cells(*given: Cell | str) -> tuple[Cell, ...]:
    """A row of a table; a text is a cell without a number."""
    return tuple(Cell(one) if isinstance(one, str) else one for one in given)


def table_of_rows(
    rows: Sequence[Mapping[str, Cell | str]], *, name: str, kinds: Mapping[str, Kind] | None = None, **given: Any
) -> Table:
    """A table of at least one row, each a mapping of headings to cells: a name, then numbers, or the kind that `kinds`
    gives for a heading; without columns that are empty in every row. `given` are its title and notes."""
    known: dict[str, Kind] = {next(iter(rows[0])): "name", **(kinds or {})}
    every = {heading: cells(*(row[heading] for row in rows)) for heading in rows[0]}
    shown = {heading: column for heading, column in every.items() if any(one.text for one in column)}
    columns = tuple(Column(heading=heading, kind=known.get(heading, "number")) for heading in shown)
    return Table(name=name, columns=columns, rows=tuple(zip(*shown.values(), strict=True)), **given)


def code_parts(text: str) -> Iterator[tuple[str, bool]]:
    """The parts of a text that are not empty, each with True if it is code: "run `a*b`." has the code `a*b`."""
    for place, part in enumerate(CODE.split(text)):
        if part:
            yield part, place % 2 == 1
