"""The text of a response, the end of thinking in it, and its answer.

    reader = Reader(pieces=(b"so ", b"</", b"think", b">\\n\\n", b"4", b""), thinks=True)
    reader.answer([0, 1, 2, 3, 4, 5])    StatedAnswer(text="\\n\\n4", tokens=[4, 5])

A model may write `</think>` as one token, in pieces, or merged with its neighbours. So the end is found in the bytes
that tokens write, never in token ids. Generator, tasks and demonstrations all use a `Reader`. The generator reads one
token at a time: it keeps the number of bytes of `</think>` that each row has just written, and a table updates that
number for the next token.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

THINK, END_THINK = "<think>", "</think>"
MARK = END_THINK.encode()
ENDED = len(MARK)
"""State in which all bytes of `</think>` are written."""


@dataclass(frozen=True, kw_only=True)
class StatedAnswer:
    """Text after the thinking part; the whole response for a model that does not think."""

    text: str
    tokens: list[int]
    """Tokens after the one that completes `</think>`, which may also write the answer's first characters."""


class Reader:
    """Reads responses of one vocabulary; `pieces[id]` are the bytes of a token, empty for padding and ends.

    `marks` are the names of padding and ends, which a prompt shows and a response does not. Without `thinks` the whole
    response is the answer.
    """

    def __init__(self, pieces: Sequence[bytes], *, thinks: bool, marks: Mapping[int, bytes] | None = None) -> None:
        self.pieces, self.thinks, self.marks = pieces, thinks, marks or {}

    @cached_property
    def table(self) -> NDArray[np.int8]:
        """[V, 9]: bytes of `</think>` matched after a token, given the number matched before it."""
        table = np.zeros((len(self.pieces), ENDED + 1), dtype=np.int8)
        table[:, ENDED] = ENDED
        for token, piece in enumerate(self.pieces):
            # No other piece continues or begins the mark.
            if not piece or piece[0] in MARK or MARK[0] in piece:
                table[token, :ENDED] = [matched(piece, before)[0] for before in range(ENDED)]
        return table

    @cached_property
    def _rows(self) -> list[list[int]]:
        """`table` as lists, which Python reads three times as fast."""
        return self.table.tolist()

    def text(self, tokens: Sequence[int]) -> str:
        """Text of tokens; invalid UTF-8 becomes the replacement character."""
        return b"".join([self.pieces[token] for token in tokens]).decode(errors="replace")

    def answer(self, response: Sequence[int]) -> StatedAnswer | None:
        """Answer after the first end of thinking; None if thinking never ends."""
        if not self.thinks:
            return StatedAnswer(text=self.text(response), tokens=list(response))
        written, rows = 0, self._rows
        for index, token in enumerate(response):
            before, written = written, rows[token][written]
            if written == ENDED:
                piece, rest = self.pieces[token], list(response[index + 1 :])
                start = piece[matched(piece, before)[1] :]
                text = b"".join((start, *(self.pieces[token] for token in rest)))
                return StatedAnswer(text=text.decode(errors="replace"), tokens=rest)
        return None

    def written(self, response: Sequence[int]) -> int:
        """Number of bytes of `</think>` just written by a response, or 8 once thinking has ended."""
        written = 0
        for token in response:
            written = self._rows[token][written]
        return written


def matched(piece: bytes, before: int) -> tuple[int, int]:
    """Bytes of `</think>` matched after `piece`, given the number matched before, and the bytes of `piece` read.

    `matched(b"k>\\n", 6)` is (8, 2). Only the first byte of the mark can restart a match, because it occurs once.
    """
    for read, byte in enumerate(piece, start=1):
        before = before + 1 if byte == MARK[before] else int(byte == MARK[0])
        if before == ENDED:
            return ENDED, read
    return before, len(piece)
