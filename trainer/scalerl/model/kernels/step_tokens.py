"""The new tokens of a decode step in blocks of lanes: those of prompts first, then one of each decoded row."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scalerl.model.kernels.rows import LANES
from scalerl.model.kv_cache import Prefill
from scalerl.model.shared_prompts import SharedPrompts

Indices = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class StepTokens:
    """Tokens [blocks, LANES], their rows (-1 in lanes without a token) and positions."""

    token_BR: Indices
    row_BR: Indices
    position_BR: Indices
    source_BR: Indices
    """Rows with the same first positions of the cache."""
    shared_BR: Indices
    """The number of these positions."""
    prompt_blocks: int
    """Blocks of prompts, before those of decoded rows."""
    num_decoded: int
    copies: Indices
    """[:, 3]: a row that reads a prompt, another row with this prompt, and the prompt's length."""

    @classmethod
    def of(
        cls, token_n: Indices, position_n: Indices, prefills: tuple[Prefill, ...], shared: SharedPrompts
    ) -> "StepTokens":
        """StepTokens of a step that decodes these tokens of the first n rows; `shared` takes note of its prompts."""
        parts, copies = [], []
        for one in prefills:
            if one.position is not None:
                parts.append(_later_turns(one))
                continue
            parts.append(_prompts(one, position_n, copies))
            rows = one.rows.numpy()
            shared.cached(rows, one.prompts.numpy(), position_n[rows])
        prompts = [_in_blocks(np.concatenate(parts, axis=1))] if parts else []
        row_n, source_n, shared_n = np.arange(len(token_n)), *shared.sources(position_n)
        decoded = _in_blocks(np.stack((token_n, row_n, position_n, source_n, shared_n)))
        token_BR, row_BR, position_BR, source_BR, shared_BR = np.concatenate((*prompts, decoded), axis=1)
        return cls(
            token_BR=token_BR,
            row_BR=row_BR,
            position_BR=position_BR,
            source_BR=source_BR,
            shared_BR=shared_BR,
            prompt_blocks=prompts[0].shape[1] if prompts else 0,
            num_decoded=len(token_n),
            copies=np.array(copies, dtype=np.int64).reshape(-1, 3),
        )


def _prompts(prefill: Prefill, position_n: Indices, copies: list[tuple[int, int, int]]) -> Indices:
    """Tokens, rows and positions of each prompt in the first of its rows, without padding; adds its other rows."""
    tokens = prefill.tokens.numpy()
    row_of = np.full(len(tokens), -1)
    length = np.zeros(len(tokens), dtype=np.int64)
    for row, prompt in zip(prefill.rows.tolist(), prefill.prompts.tolist(), strict=True):
        if row_of[prompt] < 0:
            row_of[prompt], length[prompt] = row, position_n[row]
        else:
            copies.append((int(row_of[prompt]), row, int(length[prompt])))
    position_PW = np.broadcast_to(np.arange(tokens.shape[1]), tokens.shape)
    return _chosen(tokens, row_of, position_PW, position_PW < length[:, None])


def _later_turns(prefill: Prefill) -> Indices:
    assert prefill.position is not None
    position_PW = prefill.position.numpy()
    return _chosen(prefill.tokens.numpy(), prefill.rows.numpy(), position_PW, position_PW >= 0)


def _chosen(token_PW: Indices, row_P: Indices, position_PW: Indices, is_token_PW: NDArray[np.bool_]) -> Indices:
    """Tokens, rows, positions, and that nothing is read from another row, [5, tokens], row by row."""
    row_PW = np.broadcast_to(row_P[:, None], token_PW.shape)
    row_N = row_PW[is_token_PW]
    return np.stack((token_PW[is_token_PW], row_N, position_PW[is_token_PW], row_N, np.zeros_like(row_N)))


def _in_blocks(tokens: Indices) -> Indices:
    """[5, blocks, LANES] of tokens, rows, positions, sources and shared positions [5, tokens]."""
    number = tokens.shape[1]
    blocks = np.zeros((len(tokens), -(-number // LANES) * LANES), dtype=np.int64)
    blocks[1] = -1
    blocks[:, :number] = tokens
    return blocks.reshape(len(tokens), -1, LANES)
