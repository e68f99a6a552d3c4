"""A short table with one closing line, for a prompt (text) and for a notebook (HTML).

>>> print(Summary(title="loo", headings=("variant", "level"), rows=(("scalerl", "0.594"),), closing="1 variant"))
loo
variant  level
scalerl  0.594
1 variant
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from ablations.terminal.visible import made_visible

ROWS_PRINTED = 10
"""Maximum number of rows of the text; a longer table ends with the number of remaining rows."""
NAMES_IN_GROUP = 4
"""Maximum number of names in one group of `grouped`; a larger group ends with the number of remaining ones."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A table of cells as text, its title, and a line below it; control characters are made visible."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    closing: str

    def __str__(self) -> str:
        """At most `ROWS_PRINTED` rows in columns, between the title and the closing line."""
        lines = [self.headings, *self.rows[:ROWS_PRINTED]]
        cells = [[made_visible(cell).replace("\n", " ") for cell in line] for line in lines]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        table = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells
        ]
        more = len(self.rows) - ROWS_PRINTED
        table += [f"and {more} more; to_frame() has every variant"] if more > 0 else []
        return "\n".join([made_visible(self.title), *table, made_visible(self.closing)])

    def html(self) -> str:
        """The whole table as HTML without links, scripts or styles of its own."""
        head = "".join(f"<th>{_text(heading)}</th>" for heading in self.headings)
        body = "".join(f"<tr>{''.join(f'<td>{_text(cell)}</td>' for cell in row)}</tr>" for row in self.rows)
        return (
            f"<p><b>{_text(self.title)}</b></p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"<p>{_text(self.closing)}</p>"
        )


def grouped(names_by_group: Mapping[str, Sequence[str]]) -> str:
    """Groups with their names on one line: `level down: loo-loss; cannot tell: a, b, c, d and 36 more`."""
    return "; ".join(f"{group}: {_listed(names)}" for group, names in names_by_group.items())


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMES_IN_GROUP} more" if len(names) > NAMES_IN_GROUP else ""
    return ", ".join(names[:NAMES_IN_GROUP]) + more


def _text(text: str) -> str:
    return escape(made_visible(text))
