"""Rows of task files that are not used, with reasons.

LeftOut(where="train.jsonl:9", reason="duplicate", detail="the same problem as train.jsonl:3", same_as="train.jsonl:3")
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from scalerl.errors import Rejected

Reason = Literal["unreadable", "cannot be judged", "duplicate", "held out", "downstream", "too long"]
"""unreadable        the row, or a column that the task needs, has no usable value; makes the file unusable
cannot be judged  no verifier here can judge the problem
duplicate         an earlier row of the file has the same problem, or an earlier task trains on it in the same words
held out          a training problem that is held out, in this or another task
downstream        a training problem that a downstream file measures
too long          the prompt has more tokens than `max_prompt_tokens`"""
MOST_ROWS_NAMED = 10
"""Maximum number of rows named in one message."""


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A row that is not used."""

    where: str
    """File and line, or file and row."""
    reason: Reason
    detail: str
    """Details, as a sentence."""
    same_as: str = ""
    """File and line of the problem that it repeats."""


class UnreadableRows(Rejected):
    """A task file has unusable rows; names all of them, so that one does not hide the next."""

    def __init__(self, rows: Sequence[LeftOut]) -> None:
        self.rows = tuple(rows)
        lines = [f"{row.where}: {row.detail}" for row in self.rows[:MOST_ROWS_NAMED]]
        if more := len(self.rows) - len(lines):
            lines.append(f"and {more:,} more")
        head = [] if len(self.rows) == 1 else [f"{len(self.rows):,} rows cannot be used; correct or remove them:"]
        super().__init__("\n  ".join([*head, *lines]))


def reasons_text(rows: Iterable[LeftOut]) -> str:
    """Text such as `3 duplicate, 1 too long`, in the order of first occurrence."""
    return ", ".join(f"{count:,} {reason}" for reason, count in Counter(row.reason for row in rows).items())


def pairs_of_files(rows: Iterable[LeftOut]) -> list[str]:
    """One sentence per pair of files with the same problems: their number, and the first of them."""
    by_pair: dict[tuple[str, str, str], list[LeftOut]] = {}
    for row in rows:
        if row.same_as:
            by_pair.setdefault((file_of(row.where), file_of(row.same_as), row.reason), []).append(row)
    return [
        f"{len(found):,} of {here} {'is' if len(found) == 1 else 'are'} left out as {reason}: the same as in "
        f"{'the same file' if here == there else there}, first {found[0].where} = {found[0].same_as}"
        for (here, there, reason), found in by_pair.items()
    ]


def file_of(where: str) -> str:
    """File part of a place: `train.jsonl` from `train.jsonl:9` or `train.jsonl, row 9`."""
    file, is_row, _ = where.rpartition(", row ")
    return file if is_row else where.rpartition(":")[0]
