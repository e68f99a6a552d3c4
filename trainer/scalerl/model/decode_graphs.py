"""Decode steps as CUDA graphs: one launch per step instead of the hundreds that dominate a small model's step.

A graph replays the same kernels on the same memory. There is one graph for each size of step (rows and reach, each
rounded up to a bucket), and inputs are copied into the memory it was captured on. Unused rows decode token 0 at
position 0; their slots hold nothing, and a slot is rewritten from the start when it is assigned.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

REACH = 256
"""Step between bucket sizes, in positions."""
DecodeStep = Callable[[Tensor, Tensor, int], Tensor]
"""Logits [n, V] of tokens [n] at positions [n] with a given reach; the host does not wait."""


Replay = Callable[[], None]
"""Recomputes the output of a captured computation in place from the current inputs."""
Capture = Callable[[Callable[[], Tensor]], tuple[Replay, Tensor]]
"""Function from a computation to its replay and output."""


def cuda_graph(compute: Callable[[], Tensor]) -> tuple[Replay, Tensor]:
    """Capture a computation after one warm-up run on a side stream, which PyTorch requires."""
    beside, present = torch.cuda.Stream(), torch.cuda.current_stream()
    beside.wait_stream(present)
    with torch.cuda.stream(beside):
        compute()
    present.wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = compute()
    return graph.replay, output


@dataclass(frozen=True, kw_only=True)
class _Captured:
    tokens: Tensor
    positions: Tensor
    replay: Replay
    logits: Tensor


class DecodeGraphs:
    """Captured decode steps of one cache."""

    def __init__(self, step: DecodeStep, *, slots: int, positions: int, capture: Capture = cuda_graph) -> None:
        self._step, self._capture = step, capture
        self.slots, self.positions = slots, positions
        self._captured: dict[tuple[int, int], _Captured] = {}

    def bucket(self, rows: int, reach: int) -> tuple[int, int]:
        """Rows and positions of the graph that serves this size."""
        wide = min(self.slots, 2 ** math.ceil(math.log2(rows)))
        return wide, min(self.positions, math.ceil(reach / REACH) * REACH)

    def forget(self) -> None:
        """Drop all graphs, because the cache has moved in memory."""
        self._captured.clear()

    def logits(self, tokens_n: Tensor, position_n: Tensor, reach: int) -> Tensor:
        """Logits [n, V]; the next step overwrites them."""
        rows, reach = self.bucket(len(tokens_n), reach)
        found = self._captured.get((rows, reach))
        if found is None:  # captured on the step's own inputs, because the first computation writes to the cache
            tokens, positions = (filled(one.new_zeros(rows), one) for one in (tokens_n, position_n))
            replay, logits = self._capture(lambda: self._step(tokens, positions, reach))
            found = _Captured(tokens=tokens, positions=positions, replay=replay, logits=logits)
            self._captured[rows, reach] = found
        filled(found.tokens, tokens_n)
        filled(found.positions, position_n)
        found.replay()
        return found.logits[: len(tokens_n)]


def filled(held: Tensor, given: Tensor) -> Tensor:
    """Copy `given` into the first places of `held`, and 0 into the rest."""
    held[: len(given)] = given
    held[len(given) :] = 0
    return held
