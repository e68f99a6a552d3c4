"""Tables that never cut a number or a name, at any width of the terminal.

A wide terminal shows columns. On a narrower one prose wraps, then moves below its row; then cells break before their
interval; then the table is transposed if `turns` allows it. At last each row becomes a block:

    loo-loss
      seeds 3 of 3
      level    level down  -0.049 [-0.071, -0.027]
      A [95 %] 0.552 [0.540, 0.566]
      C_mid 2,600   B 1.80   cost 8000   fit resolved

Cells are plain text without Rich's markup, and control characters are visible (`ablations.terminal.visible`).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Literal

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.text import Text

from ablations.terminal.visible import made_visible

Kind = Literal["name", "number", "words", "prose"]
"""A name never breaks, a number breaks before its interval, words break at spaces, prose may leave its column."""
Cell = str | tuple[str, str]
"""Text, or text and its style."""
GAP = 2
LEAST_PROSE = 40
"""Minimum width of a column of prose, in characters; if less is left, the prose goes below its row."""
SHORT = 14
"""Maximum length of a cell that shares its line with others when each row is a block."""
BEFORE_INTERVAL = re.compile(r" (?=\[)")
OUTSIDE_INTERVAL = re.compile(r" (?![^\[]*\])")


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column: `Column(heading="A [95 %]", kind="number")`."""

    heading: str
    kind: Kind = "name"
    rank: int = 0
    """Rank in a table with one line per row (`fitting_table`): 0 if always shown, else the order in which a column is
    added."""


@dataclass(frozen=True, kw_only=True)
class ListedRow:
    """One row: a cell and a style for each column."""

    cells: tuple[str, ...]
    styles: tuple[str, ...]


@dataclass(kw_only=True)
class Listing:
    """A table for any width: `Listing(columns=(Column(heading="variant"),), title="loo", notes=("...",))`."""

    columns: Sequence[Column]
    title: str = ""
    notes: Sequence[str] = ()
    rows: list[ListedRow] = field(default_factory=list)
    turns: bool = False
    """True if the table may be transposed (one row per heading) before its rows become blocks; suits few numeric rows.
    """

    def add(self, *cells: Cell, style: str = "") -> None:
        """Add one row; `style` applies to cells without a style of their own."""
        pairs = [(cell, style) if isinstance(cell, str) else cell for cell in cells]
        assert len(pairs) == len(self.columns)
        texts = tuple(made_visible(text).replace("\t", " ").rstrip("\n") for text, _ in pairs)
        self.rows.append(ListedRow(cells=texts, styles=tuple(style for _, style in pairs)))

    def cells_of(self, at: int) -> list[str]:
        return [row.cells[at] for row in self.rows]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        width = options.max_width
        if self.title:
            yield Text(made_visible(self.title), style="italic")
        if self.rows:
            yield from self._laid_out(width)
        yield from (Text(made_visible(note), style="dim italic") for note in self.notes if note)

    def _laid_out(self, width: int) -> Iterator[Text]:
        for table in (self, self._turned()) if self.turns else (self,):
            if (columns := table._columns_in(width)) is not None:
                return columns
        return self._as_blocks(width)

    def _columns_in(self, width: int) -> Iterator[Text] | None:
        """The table in columns; None if `width` is too small."""
        every = range(len(self.columns))
        beside = [place for place in every if self.columns[place].kind != "prose"]
        for places in (every, beside):
            for least in (self._natural, self._tight):
                narrow, wide = ({at: of(at) for at in places} for of in (least, self._widest))
                if (widths := _fitted(narrow, wide, width)) is not None:
                    return self._as_columns(widths, width)
        return None

    def _turned(self) -> "Listing":
        """The transposed table, with a column for each row; its cells are numbers, and empty columns are dropped."""
        columns = (Column(heading=""), *(Column(heading=row.cells[0], kind="number") for row in self.rows))
        turned = Listing(columns=columns)
        for at, column in enumerate(self.columns[1:], start=1):
            if any(self.cells_of(at)):
                turned.add(column.heading, *((row.cells[at], row.styles[at]) for row in self.rows))
        return turned

    def _lines_of(self, at: int) -> list[str]:
        return [line for cell in self.cells_of(at) for line in cell.split("\n")]

    def _widest(self, at: int) -> int:
        """The width of a column without any wrapping."""
        return max(map(cell_len, [self.columns[at].heading, *self._lines_of(at)]))

    def _natural(self, at: int) -> int:
        """The width of a column if headings and prose may wrap."""
        if self.columns[at].kind == "prose":
            return min(self._widest(at), LEAST_PROSE)
        return max([_longest_word(self.columns[at].heading), *map(cell_len, self._lines_of(at))])

    def _tight(self, at: int) -> int:
        """The smallest width of a column, with intervals below their numbers."""
        kind = self.columns[at].kind
        if kind == "prose":
            return self._natural(at)
        pieces = [cell_len(one) for line in self._lines_of(at) for one in _pieces(line, kind)]
        return max([_longest_word(self.columns[at].heading), *pieces])

    def _as_columns(self, widths: dict[int, int], width: int) -> Iterator[Text]:
        yield from self._headings(widths)
        below = [at for at in range(len(self.columns)) if at not in widths]
        for row in self.rows:
            cells = {at: wrapped(row.cells[at], self.columns[at].kind, widths[at]) for at in widths}
            yield from self._side_by_side(cells, widths, dict(enumerate(row.styles)))
            for at in (at for at in below if row.cells[at]):
                label = f"{self.columns[at].heading}: " if len(below) > 1 else ""
                for line in wrapped(f"{label}{row.cells[at]}", "prose", width - 4):
                    yield _text(f"    {line}", row.styles[at])

    def _headings(self, widths: dict[int, int], gap: int = GAP) -> Iterator[Text]:
        headings = {at: wrapped(self.columns[at].heading, "words", widths[at]) for at in widths}
        most = max(map(len, headings.values()))
        from_below = {at: [""] * (most - len(lines)) + lines for at, lines in headings.items()}
        yield from self._side_by_side(from_below, widths, dict.fromkeys(widths, "bold"), gap)

    def _side_by_side(
        self, cells: dict[int, list[str]], widths: dict[int, int], styles: dict[int, str], gap: int = GAP
    ) -> Iterator[Text]:
        for pieces in zip_longest(*cells.values(), fillvalue=""):
            text = Text(no_wrap=True, overflow="ignore")
            for at, piece in zip(cells, pieces, strict=True):
                blank = " " * (widths[at] - cell_len(piece))
                is_number = self.columns[at].kind == "number"
                text.append(blank if is_number else "")
                text.append(piece, style=styles[at])
                text.append(" " * gap if is_number else f"{blank}{' ' * gap}")
            text.rstrip()
            yield text

    def _as_blocks(self, width: int) -> Iterator[Text]:
        label = max((cell_len(column.heading) for column in self.columns[1:]), default=0)
        label = min(label, max(8, width // 3))
        for row in self.rows:
            yield from (_text(line, row.styles[0] or "bold") for line in wrapped(row.cells[0], "prose", width))
            short: list[tuple[str, str]] = []
            for at, column in enumerate(self.columns[1:], start=1):
                cell = "  ".join(filter(None, row.cells[at].split("\n")))
                if not cell:
                    continue
                said = f"{column.heading} {cell}".strip()
                is_short = cell_len(cell) <= SHORT and column.kind != "prose" and cell_len(said) <= width - 2
                taken = sum(cell_len(one) + 3 for one, _ in short)
                if short and not (is_short and taken + cell_len(said) <= width - 2):
                    yield _joined(short)
                    short = []
                if is_short:
                    short.append((said, row.styles[at]))
                else:
                    yield from _labelled(column.heading, cell, column.kind, label, width, row.styles[at])
            if short:
                yield _joined(short)


def listing_of(
    rows: Sequence[Mapping[str, str]], *, title: str, kinds: Mapping[str, Kind] | None = None, notes: Sequence[str] = ()
) -> Listing:
    """A table of cells by heading, which may be transposed: a name, then numbers, or what `kinds` says of a heading."""
    first, *others = rows[0]
    columns = (Column(heading=heading, kind=(kinds or {}).get(heading, "number")) for heading in others)
    table = Listing(columns=[Column(heading=first), *columns], title=title, notes=notes, turns=True)
    for cells in rows:
        table.add(*cells.values())
    return table


def _fitted(least: dict[int, int], most: dict[int, int], width: int) -> dict[int, int] | None:
    """Column widths, starting from `least`; spare width goes to columns that need more, in order."""
    spare = width - sum(least.values()) - GAP * (len(least) - 1)
    if spare < 0:
        return None
    widths = {}
    for at, narrow in least.items():
        more = min(max(0, most[at] - narrow), spare)
        widths[at], spare = narrow + more, spare - more
    return widths


def _text(line: str, style: str) -> Text:
    return Text(line, style=style, no_wrap=True, overflow="ignore")


def _joined(short: Sequence[tuple[str, str]]) -> Text:
    text = Text("  ", no_wrap=True, overflow="ignore")
    for position, (said, style) in enumerate(short):
        text.append("   " if position else "").append(said, style=style)
    return text


def _labelled(heading: str, cell: str, kind: Kind, label: int, width: int, style: str) -> Iterator[Text]:
    """Format `  level    level down  -0.049 [-0.071, -0.027]`, on several lines if necessary."""
    heads = wrapped(heading, "words", label)
    lines = wrapped(cell, "words" if kind == "number" else kind, width - label - 3)
    for head, line in zip_longest(heads, lines, fillvalue=""):
        yield _text(f"  {head}{' ' * (label - cell_len(head))} {line}".rstrip(), style)


def _longest_word(text: str) -> int:
    return max(map(cell_len, text.split(" ")))


def _pieces(line: str, kind: Kind) -> list[str]:
    """The parts into which a line of this kind may be broken."""
    if kind == "name":
        return [line]
    return (BEFORE_INTERVAL if kind == "number" else OUTSIDE_INTERVAL).split(line)


def wrapped(cell: str, kind: Kind, width: int) -> list[str]:
    """The lines of a cell, none longer than `width`; a piece that is too long by itself is folded."""
    lines = []
    for line in cell.split("\n"):
        if cell_len(line) <= width:
            lines.append(line)
            continue
        made = ""
        for piece in _pieces(line, kind):
            joined = f"{made} {piece}" if made else piece
            if cell_len(joined) <= width:
                made = joined
                continue
            lines += [made] if made else []
            *full, made = _folded(piece, width)
            lines += full
        lines.append(made)
    return lines


def _folded(piece: str, width: int) -> list[str]:
    """A piece cut into parts of at most `width`; nothing is lost."""
    parts, made = [], ""
    for character in piece:
        if made and cell_len(made + character) > width:
            parts.append(made)
            made = ""
        made += character
    return [*parts, made]
