"""What a response says: the text that its tokens write, where its thinking ends in that text, and its answer.

    reader = Reader(pieces=(b"so ", b"</", b"think", b">\\n\\n", b"4", b""), thinks=True)
    reader.answer([0, 1, 2, 3, 4, 5])    StatedAnswer(text="\\n\\n4", tokens=[4, 5])

A model writes `</think>` as it likes: as one token, in pieces, or merged with what stands before or after it. So the
end is looked for in the bytes that tokens write, never among token ids. Generator, tasks and demonstrations all ask a
`Reader`. The generator asks one token at a time: it remembers how many bytes of `</think>` each row has just written,
and a table says what a token makes of that number.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

THINK, END_THINK = "<think>", "</think>"
MARK = END_THINK.encode()
ENDED = len(MARK)
"""All bytes of `</think>` are written."""


@dataclass(frozen=True, kw_only=True)
class StatedAnswer:
    """What follows the thinking part, or the whole response of a model that does not think."""

    text: str
    tokens: list[int]
    """Those after the token that completes `</think>`. That token may write the first characters of the answer too."""


class Reader:
    """Reads responses of one vocabulary; `pieces[id]` are the bytes that the token writes, none for padding and ends.

    Without `thinks` the whole response is the answer.
    """

    def __init__(self, pieces: Sequence[bytes], *, thinks: bool) -> None:
        self.pieces, self.thinks = pieces, thinks

    @cached_property
    def table(self) -> NDArray[np.int8]:
        """[V, 9]: bytes of `</think>` written after a token, by how many were written before it."""
        table = np.zeros((len(self.pieces), ENDED + 1), dtype=np.int8)
        table[:, ENDED] = ENDED
        for token, piece in enumerate(self.pieces):
            # All other pieces neither continue the mark nor begin it.
            if not piece or piece[0] in MARK or MARK[0] in piece:
                table[token, :ENDED] = [matched(piece, before)[0] for before in range(ENDED)]
        return table

    def text(self, tokens: Sequence[int]) -> str:
        """What tokens write; bytes that are no UTF-8 read as the replacement character."""
        return b"".join(self.pieces[token] for token in tokens).decode(errors="replace")

    def answer(self, response: Sequence[int]) -> StatedAnswer | None:
        """What follows the first end of thinking; None if thinking never ends."""
        if not self.thinks:
            return StatedAnswer(text=self.text(response), tokens=list(response))
        written = 0
        for index, token in enumerate(response):
            before, written = written, int(self.table[token, written])
            if written == ENDED:
                piece, rest = self.pieces[token], list(response[index + 1 :])
                start = piece[matched(piece, before)[1] :]
                text = b"".join((start, *(self.pieces[token] for token in rest)))
                return StatedAnswer(text=text.decode(errors="replace"), tokens=rest)
        return None

    def written(self, response: Sequence[int]) -> int:
        """Bytes of `</think>` that a response has just written, 8 once thinking has ended."""
        written = 0
        for token in response:
            written = int(self.table[token, written])
        return written


def matched(piece: bytes, before: int) -> tuple[int, int]:
    """Bytes of `</think>` written after `piece`, if `before` were written before it, and how much of it was read.

    `matched(b"k>\\n", 6)` is (8, 2). Only the first byte of the mark may begin it again, because it occurs once.
    """
    for read, byte in enumerate(piece, start=1):
        before = before + 1 if byte == MARK[before] else int(byte == MARK[0])
        if before == ENDED:
            return ENDED, read
    return before, len(piece)
