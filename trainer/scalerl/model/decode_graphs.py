"""Decode steps as CUDA graphs: one launch for a step instead of hundreds, which is what a step of a small model costs.

A graph replays the same kernels on the same memory. So there is one for every size of a step, rows and reach each
rounded up to a bucket, and its inputs are copied into the memory it was captured on. Rows beyond those in use decode
token 0 at position 0: their slots hold nothing, and whoever gets one is written from its start.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

REACH = 256
"""Positions by which a bucket is larger than the one before."""
DecodeStep = Callable[[Tensor, Tensor, int], Tensor]
"""Logits [n, V] of tokens [n] at positions [n] that attend to so many positions; the host does not wait in it."""


class Graph(Protocol):
    """What was captured."""

    def replay(self) -> None:
        """Compute it again from what its inputs hold, into the outputs that it had."""


Capture = Callable[[Callable[[], Tensor]], tuple[Graph, Tensor]]
"""Of a computation, its graph and its output."""


def cuda_graph(compute: Callable[[], Tensor]) -> tuple[Graph, Tensor]:
    """Compute once beside the present stream, as PyTorch asks for before a capture, and capture it."""
    beside, present = torch.cuda.Stream(), torch.cuda.current_stream()
    beside.wait_stream(present)
    with torch.cuda.stream(beside):
        compute()
    present.wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        output = compute()
    return graph, output


@dataclass(frozen=True, kw_only=True)
class _Captured:
    tokens: Tensor
    positions: Tensor
    graph: Graph
    logits: Tensor


class DecodeGraphs:
    """The decode steps of one cache."""

    def __init__(self, step: DecodeStep, *, slots: int, positions: int, capture: Capture = cuda_graph) -> None:
        self._step, self._capture = step, capture
        self.slots, self.positions = slots, positions
        self._captured: dict[tuple[int, int], _Captured] = {}

    def bucket(self, rows: int, reach: int) -> tuple[int, int]:
        """Rows and positions of the graph that serves so many."""
        wide = min(self.slots, 2 ** math.ceil(math.log2(rows)))
        return wide, min(self.positions, math.ceil(reach / REACH) * REACH)

    def forget(self) -> None:
        """The cache is elsewhere now: capture again."""
        self._captured.clear()

    def logits(self, tokens_n: Tensor, position_n: Tensor, reach: int) -> Tensor:
        """Logits [n, V], which the next step overwrites."""
        rows, reach = self.bucket(len(tokens_n), reach)
        found = self._captured.get((rows, reach))
        if found is None:  # captured on the step's own inputs, for the first computation writes to the cache
            tokens, positions = (
                filled(tokens_n.new_zeros(rows), tokens_n),
                filled(position_n.new_zeros(rows), position_n),
            )
            graph, logits = self._capture(lambda: self._step(tokens, positions, reach))
            found = _Captured(tokens=tokens, positions=positions, graph=graph, logits=logits)
            self._captured[rows, reach] = found
        filled(found.tokens, tokens_n)
        filled(found.positions, position_n)
        found.graph.replay()
        return found.logits[: len(tokens_n)]


def filled(held: Tensor, given: Tensor) -> Tensor:
    """`held` with what is given in its first places and 0 in the others."""
    held[: len(given)] = given
    held[len(given) :] = 0
    return held
