"""Which rows of a cache hold equal keys and values of one prompt, so that attention reads one copy for all of them.

Rows that get one prompt in one step get equal numbers, and keep them until another prompt replaces it.
"""

import numpy as np
from numpy.typing import NDArray


class SharedPrompts:
    """The prompt of each row, and how many of its positions are cached."""

    def __init__(self, slots: int) -> None:
        self._number = np.full(slots, -1, dtype=np.int64)
        """Number of the prompt, counted over all that were cached; -1 if none is known."""
        self._length = np.zeros(slots, dtype=np.int64)
        self._next = 0

    def cached(self, rows: NDArray[np.int64], prompts: NDArray[np.int64], length: NDArray[np.int64]) -> None:
        """Note that each of these rows got the first `length` positions of prompt number `prompts` of this step."""
        self._number[rows] = self._next + prompts
        self._length[rows] = length
        self._next += int(prompts.max(initial=-1)) + 1

    def moved(self, target: list[int], source: list[int]) -> None:
        """Note that `source` rows were copied to `target` rows."""
        for array in (self._number, self._length):
            array[target] = array[source]

    def forget(self) -> None:
        """Note that nothing is known about any row."""
        self._number[:], self._length[:] = -1, 0

    def sources(self, position_n: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For each of the first n rows, a row with the same first positions, and their number.

        A row that writes to one of these positions, as one whose new prompt needed no prefill, has none.
        """
        n = len(position_n)
        rewritten = position_n < self._length[:n]
        self._number[:n][rewritten], self._length[:n][rewritten] = -1, 0
        _, first, which = np.unique(self._number[:n], return_index=True, return_inverse=True)
        return first[which], self._length[:n]
