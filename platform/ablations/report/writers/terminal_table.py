"""A table of a document in the terminal, which never cuts a number or a name, at any width.

If every column holds numbers, or if columns have ranks, a row is one line: a narrow terminal shows the columns without
a rank, with numbers in their shortest form, and names the others below; a wider one adds those, the lowest rank first.
Any other table has columns; on a narrower terminal prose wraps, then moves below its row; then cells break before their
interval; then a table without prose is transposed. At last each row becomes a block:

    loo-loss
      seeds 3 of 3
      level    level down  -0.049 [-0.071, -0.027]
      C_mid 2,600   B 1.80   cost 8000   fit resolved
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.text import Text

from ablations.report.documents.blocks import Column, Kind, Table, Tone
from ablations.terminal.own_command import as_called
from ablations.terminal.visible import made_visible

TONE_STYLES: dict[Tone, str] = {"": "", "good": "green", "bad": "red", "mixed": "yellow", "faint": "dim"}
GAP = 2
LEAST_PROSE = 40
"""Minimum width of a column of prose, in characters; if less is left, the prose goes below its row."""
SHORT = 14
"""Maximum length of a cell that shares a line with others when each row is a block."""
BEFORE_INTERVAL = re.compile(r" (?=\[)")
OUTSIDE_INTERVAL = re.compile(r" (?![^\[]*\])")
SPARE_COLUMNS = 2
"""Columns left free at the right, so that a table pasted into a mail does not wrap."""
LEADING_ZERO = re.compile(r"(?<![\d.])0\.(?=\d)")
INTERVAL = re.compile(r"\[[^\]]*\]")


@dataclass(frozen=True, kw_only=True)
class TerminalTable:
    """The lines of a table for a console of any width."""

    columns: Sequence[Column]
    texts: Sequence[Sequence[str]]
    styles: Sequence[Sequence[str]]
    title: str = ""
    notes: Sequence[str] = ()

    @classmethod
    def of(cls, table: Table) -> "TerminalTable":
        """A table of a document, with control characters visible."""
        return cls(
            columns=table.columns,
            texts=[[made_visible(cell.text).replace("\t", " ").rstrip("\n") for cell in row] for row in table.rows],
            styles=[[TONE_STYLES[cell.tone] for cell in row] for row in table.rows],
            title=table.title,
            notes=table.notes,
        )

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        if self.title:
            yield Text(as_called(made_visible(self.title)), style="italic")
        if self.texts:
            yield from self._laid_out(options.max_width)
        yield from (Text(as_called(made_visible(note)), style="dim italic") for note in self.notes if note)

    def _laid_out(self, width: int) -> Iterator[Text]:
        kinds = {column.kind for column in self.columns[1:]}
        is_flat = not any("\n" in text for row in self.texts for text in row)
        if is_flat and (kinds == {"number"} or any(column.rank for column in self.columns)):
            width -= SPARE_COLUMNS
            brief = self._shortened()
            for table, gap, names in ((self, GAP, True), (brief, 1, True), (brief, 1, False)):
                if (places := table._that_fit(width, gap, names=names)) is not None:
                    return chain(table._lines(places, width, gap), self._without(places))
        for table in (self, self._turned()) if kinds and "prose" not in kinds else (self,):
            if (columns := table._columns_in(width)) is not None:
                return columns
        return self._as_blocks(width)

    def _turned(self) -> "TerminalTable":
        """The transposed table, with a column for each row; its cells are numbers, and empty columns are dropped."""
        kept = [at for at in range(1, len(self.columns)) if any(row[at] for row in self.texts)]
        return TerminalTable(
            columns=(Column(heading=""), *(Column(heading=row[0], kind="number") for row in self.texts)),
            texts=[[self.columns[at].heading, *(row[at] for row in self.texts)] for at in kept],
            styles=[["", *(row[at] for row in self.styles)] for at in kept],
        )

    def _columns_in(self, width: int) -> Iterator[Text] | None:
        """The table in columns; None if `width` is too small."""
        every = range(len(self.columns))
        beside = [place for place in every if self.columns[place].kind != "prose"]
        for places in filter(None, (every, beside)):
            for least in (self._natural, self._tight):
                narrow, wide = ({at: of(at) for at in places} for of in (least, self._widest))
                if (widths := _fitted(narrow, wide, width)) is not None:
                    return self._as_columns(widths, width)
        return None

    def _lines_of(self, at: int) -> list[str]:
        return [line for cell in (row[at] for row in self.texts) for line in cell.split("\n")]

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
        for row, styles in zip(self.texts, self.styles, strict=True):
            cells = {at: wrapped(row[at], self.columns[at].kind, widths[at]) for at in widths}
            yield from self._side_by_side(cells, widths, styles)
            for at in (at for at in below if row[at]):
                label = f"{self.columns[at].heading}: " if len(below) > 1 else ""
                for line in wrapped(f"{label}{row[at]}", "prose", width - 4):
                    yield _text(f"    {line}", styles[at])

    def _headings(self, widths: dict[int, int], gap: int = GAP) -> Iterator[Text]:
        headings = {at: wrapped(self.columns[at].heading, "words", widths[at]) for at in widths}
        most = max(map(len, headings.values()))
        from_below = {at: [""] * (most - len(lines)) + lines for at, lines in headings.items()}
        yield from self._side_by_side(from_below, widths, ["bold"] * len(self.columns), gap)

    def _side_by_side(
        self, cells: dict[int, list[str]], widths: dict[int, int], styles: Sequence[str], gap: int = GAP
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
        for row, styles in zip(self.texts, self.styles, strict=True):
            yield from (_text(line, styles[0] or "bold") for line in wrapped(row[0], "prose", width))
            short: list[tuple[str, str]] = []
            for at, column in enumerate(self.columns[1:], start=1):
                cell = "  ".join(filter(None, row[at].split("\n")))
                if not cell:
                    continue
                said = f"{column.heading} {cell}".strip()
                is_short = cell_len(cell) <= SHORT and column.kind != "prose" and cell_len(said) <= width - 2
                taken = sum(cell_len(one) + 3 for one, _ in short)
                if short and not (is_short and taken + cell_len(said) <= width - 2):
                    yield _joined(short)
                    short = []
                if is_short:
                    short.append((said, styles[at]))
                else:
                    yield from _labelled(column.heading, cell, column.kind, label, width, styles[at])
            if short:
                yield _joined(short)

    def _shortened(self) -> "TerminalTable":
        numbers = {at for at, column in enumerate(self.columns) if column.kind == "number"}
        texts = [[shortest(cell) if at in numbers else cell for at, cell in enumerate(row)] for row in self.texts]
        return replace(self, texts=texts)

    def _least(self, at: int) -> int:
        """The width of a column whose heading may wrap."""
        return max(map(cell_len, [*self.columns[at].heading.split(" "), *(row[at] for row in self.texts)]))

    def _that_fit(self, width: int, gap: int, *, names: bool) -> list[int] | None:
        """The columns that fit, in their order; None if the columns without a rank do not fit. Without `names`, names
        get the remaining width, and a longer name has a line of its own."""
        taken = [at for at, column in enumerate(self.columns) if not column.rank]
        spare = width + gap - sum(gap + (self._least(at) if at or names else 0) for at in taken)
        if spare < 0:
            return None
        ranked = [at for at, column in enumerate(self.columns) if column.rank and names]
        for at in sorted(ranked, key=lambda at: self.columns[at].rank):
            spare -= gap + self._least(at)
            if spare < 0:
                break
            taken.append(at)
        return sorted(taken)

    def _without(self, places: Sequence[int]) -> Iterator[Text]:
        """A line that names the columns which are not among these; nothing if all are."""
        if others := [column.heading for at, column in enumerate(self.columns) if at not in places]:
            yield Text(f"Too narrow for {', '.join(others)}.", style="dim italic")

    def _lines(self, places: Sequence[int], width: int, gap: int) -> Iterator[Text]:
        widths = {at: self._least(at) for at in places}
        room = width - sum(gap + widths[at] for at in places[1:])
        widths[0] = max((one for one in (cell_len(row[0]) for row in self.texts) if one <= room), default=0)
        for at in places:  # a heading on one line, while there is room
            spare = width + gap - sum(gap + one for one in widths.values())
            widths[at] += min(max(cell_len(self.columns[at].heading) - widths[at], 0), spare)
        first, *others = self.columns
        headed = (
            self
            if cell_len(first.heading) <= widths[0]
            else replace(self, columns=[replace(first, heading=""), *others])
        )
        yield from headed._headings(widths, gap)
        for row, styles in zip(self.texts, self.styles, strict=True):
            cells = {at: [row[at]] for at in places}
            if cell_len(row[0]) > widths[0]:
                yield from (_text(line, styles[0]) for line in wrapped(row[0], "name", width))
                cells[0] = [""]
            yield from self._side_by_side(cells, widths, styles, gap)


def shortest(cell: str) -> str:
    """The number in fewer characters.

    >>> shortest("-0.064 [-0.074, -0.054]*")
    '-.064 [-.074,-.054]*'
    """
    return LEADING_ZERO.sub(".", INTERVAL.sub(lambda found: found[0].replace(", ", ","), cell))


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
