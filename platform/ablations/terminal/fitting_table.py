"""A table with one line per row, in eighty columns as in more.

    variant      level less ref's      ceiling
    ratio-2.1    -.064 [-.074,-.054]*  -.052 [-.072,-.035]*

A narrow terminal shows the columns without a `rank`, with numbers in their shortest form; a wider one adds the others,
the lowest rank first. A name that leaves no room for its numbers has a line of its own.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len
from rich.text import Text

from ablations.terminal.listing import GAP, Listing, wrapped

SPARE_COLUMNS = 2
"""Columns left free at the right, so that a table pasted into a mail does not wrap."""
LEADING_ZERO = re.compile(r"(?<![\d.])0\.(?=\d)")
INTERVAL = re.compile(r"\[[^\]]*\]")


def shortest(cell: str) -> str:
    """The same number in fewer characters.

    >>> shortest("-0.064 [-0.074, -0.054]*")
    '-.064 [-.074,-.054]*'
    """
    return LEADING_ZERO.sub(".", INTERVAL.sub(lambda found: found[0].replace(", ", ","), cell))


@dataclass(kw_only=True)
class OneLine(Listing):
    """`OneLine(columns=(Column(heading="variant"), Column(heading="cost", rank=1)))`; the first column is the name."""

    def fits(self, width: int) -> bool:
        """True if every row, with its name, is one line."""
        return self._shortened()._that_fit(width - SPARE_COLUMNS, 1, names=True) is not None

    def _laid_out(self, width: int) -> Iterator[Text]:
        width -= SPARE_COLUMNS
        brief = self._shortened()
        for table, gap, names in ((self, GAP, True), (brief, 1, True), (brief, 1, False)):
            if (places := table._that_fit(width, gap, names=names)) is not None:
                return table._lines(places, width, gap)
        return super()._laid_out(width)

    def _shortened(self) -> "OneLine":
        numbers = {at for at, column in enumerate(self.columns) if column.kind == "number"}
        rows = (
            replace(row, cells=tuple(shortest(cell) if at in numbers else cell for at, cell in enumerate(row.cells)))
            for row in self.rows
        )
        return replace(self, rows=[*rows])

    def _least(self, at: int) -> int:
        """The width of a column whose heading may wrap."""
        return max(map(cell_len, [*self.columns[at].heading.split(" "), *self.cells_of(at)]))

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

    def _lines(self, places: Sequence[int], width: int, gap: int) -> Iterator[Text]:
        widths = {at: self._least(at) for at in places}
        room = width - sum(gap + widths[at] for at in places[1:])
        widths[0] = max((one for one in map(cell_len, self.cells_of(0)) if one <= room), default=0)
        for at in places:  # a heading on one line, while there is room
            spare = width + gap - sum(gap + one for one in widths.values())
            widths[at] += min(max(cell_len(self.columns[at].heading) - widths[at], 0), spare)
        yield from self._headings(widths, gap)
        for row in self.rows:
            cells = {at: [row.cells[at]] for at in places}
            if cell_len(row.cells[0]) > widths[0]:
                for line in wrapped(row.cells[0], "name", width):
                    yield Text(line, style=row.styles[0], no_wrap=True, overflow="ignore")
                cells[0] = [""]
            yield from self._side_by_side(cells, widths, dict(enumerate(row.styles)), gap)
