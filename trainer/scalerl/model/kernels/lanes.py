"""Rows of a cache side by side, as compiled decode steps read them.

A block holds `LANES` rows: [heads, 2, positions, G, LANES x QUAD], where G = ceil(D / QUAD). A vector of the processor
then holds numbers of several rows, so that a step attends for all of them at once. `QUAD` adjacent numbers of each row
lie together, because a row is also written alone.
"""

from torch import Tensor
from torch.nn import functional as F

LANES = 32
"""Rows side by side: their activations stay in the nearest cache, and products run at nearly full speed."""
QUAD = 4
"""Adjacent numbers of one row."""
POSITIONS_AT_ONCE = 4
"""Positions come in multiples of this number, so that a step may add so many values at once."""


def whole_blocks(rows: int) -> int:
    """The number of blocks that hold so many rows."""
    return -(-rows // LANES)


def whole_positions(positions: int) -> int:
    """The next multiple of `POSITIONS_AT_ONCE`."""
    return -(-positions // POSITIONS_AT_ONCE) * POSITIONS_AT_ONCE


def side_by_side(rows: Tensor) -> Tensor:
    """[blocks, heads, 2, positions, G, LANES x QUAD] of rows [R, heads, 2, positions, D]; filled up with zeros."""
    missing = whole_blocks(len(rows)) * LANES - len(rows)
    padded = F.pad(rows, (0, -rows.shape[-1] % QUAD, *(0,) * 6, 0, missing))
    return padded.unflatten(-1, (-1, QUAD)).unflatten(0, (-1, LANES)).permute(0, 2, 3, 4, 5, 1, 6).flatten(-2)


def single_rows(blocks: Tensor, size: int) -> Tensor:
    """[blocks x LANES, heads, 2, positions, D] of blocks as `side_by_side` returns them, with D = `size`."""
    rows = blocks.unflatten(-1, (LANES, QUAD)).permute(0, 5, 1, 2, 3, 4, 6)
    return rows.flatten(-2).flatten(0, 1)[..., :size]
