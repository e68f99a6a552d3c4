"""The new tokens of a decode step in blocks of lanes: those of prompts first, then one of each decoded row."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scalerl.model.kernels.lanes import LANES, whole_blocks
from scalerl.model.kv_cache import Prefill

Indices = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class StepTokens:
    """Tokens [blocks, LANES], their rows (-1 in lanes without a token) and positions."""

    token_BR: Indices
    row_BR: Indices
    position_BR: Indices
    prompt_blocks: int
    """Blocks of prompts, before those of decoded rows."""
    num_decoded: int
    copies: Indices
    """[:, 3]: a row that reads a prompt, another row with this prompt, and the prompt's length."""

    @classmethod
    def of(cls, token_n: Indices, position_n: Indices, prefills: tuple[Prefill, ...]) -> "StepTokens":
        """StepTokens of a step that decodes these tokens of the first n rows."""
        parts, copies = [], [np.empty((0, 3), dtype=np.int64)]
        for one in prefills:
            if one.position is not None:
                parts.append(_later_turns(one))
                continue
            rows, prompts = one.rows.numpy(), one.prompts.numpy()
            row_P = np.full(len(one.tokens), -1)
            row_P[prompts[::-1]] = rows[::-1]  # the first row of each prompt
            parts.append(_prompts(one, row_P, position_n))
            readers = np.stack((row_P[prompts], rows, position_n[rows]), axis=1)
            copies.append(readers[rows != row_P[prompts]])
        n, read = len(token_n), np.concatenate(parts, axis=1) if parts else np.empty((3, 0), dtype=np.int64)
        start = whole_blocks(read.shape[1]) * LANES
        all_lanes = np.zeros((3, start + whole_blocks(n) * LANES), dtype=np.int64)
        all_lanes[1] = -1
        all_lanes[:, : read.shape[1]] = read
        all_lanes[:, start : start + n] = token_n, np.arange(n), position_n
        token_BR, row_BR, position_BR = all_lanes.reshape(3, -1, LANES)
        return cls(
            token_BR=token_BR,
            row_BR=row_BR,
            position_BR=position_BR,
            prompt_blocks=start // LANES,
            num_decoded=n,
            copies=np.concatenate(copies),
        )


def _prompts(prefill: Prefill, row_P: Indices, position_n: Indices) -> Indices:
    """What `_chosen` returns of each prompt in its row, without padding."""
    tokens = prefill.tokens.numpy()
    position_PW = np.broadcast_to(np.arange(tokens.shape[1]), tokens.shape)
    return _chosen(tokens, row_P, position_PW, position_PW < position_n[row_P][:, None])


def _later_turns(prefill: Prefill) -> Indices:
    assert prefill.position is not None
    position_PW = prefill.position.numpy()
    return _chosen(prefill.tokens.numpy(), prefill.rows.numpy(), position_PW, position_PW >= 0)


def _chosen(token_PW: Indices, row_P: Indices, position_PW: Indices, is_token_PW: NDArray[np.bool_]) -> Indices:
    """Tokens, rows and positions, [3, tokens], row by row."""
    row_PW = np.broadcast_to(row_P[:, None], token_PW.shape)
    return np.stack((token_PW[is_token_PW], row_PW[is_token_PW], position_PW[is_token_PW]))
