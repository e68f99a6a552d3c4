"""Measures everything for one evaluation: held-out prompts, task files, and a few rollouts for people to read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from scalerl.evaluation.held_out import Sampler
from scalerl.evaluation.measured_rows import MeasuredRows


class Evaluator(Protocol):
    """Measures a sampler's weights; seed and index determine all random numbers."""

    @property
    def kept(self) -> Sequence[dict[str, Any]]:
        """Sample rollouts of the last measurement, for people to read."""
        ...

    @property
    def faults(self) -> Sequence[str]:
        """Sentences about environments that failed in the last measurement."""
        ...

    def measure(self, sampler: Sampler, index: int) -> Iterable[dict[str, Any]]:
        """Columns of the rows of measurement `index`, counted from 0."""
        ...


@dataclass(frozen=True, kw_only=True)
class Meter:
    """The evaluators of a run."""

    held_out: Evaluator
    downstream: Evaluator

    def measure(self, sampler: Sampler, index: int, reading: int) -> MeasuredRows:
        """Measure the sampler's weights: held-out prompts as number `index`, task files as number `reading`."""
        held_out = list(self.held_out.measure(sampler, index))
        downstream = list(self.downstream.measure(sampler, reading))
        return MeasuredRows(
            held_out=held_out,
            downstream=downstream,
            rollouts=[*self.held_out.kept, *self.downstream.kept],
            faults=[*self.held_out.faults, *self.downstream.faults],
        )
