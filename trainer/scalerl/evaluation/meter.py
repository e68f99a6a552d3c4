"""Everything that one evaluation measures: held-out prompts, task files, and a few rollouts for people to read."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from scalerl.evaluation.downstream import DownstreamEvaluator
from scalerl.evaluation.held_out import HeldOutEvaluator, Sampler


@dataclass(frozen=True, kw_only=True)
class MeasuredRows:
    """Columns of the rows of one evaluation: `MeasuredRows(held_out=[{"pass_rate": .48}], downstream=[])`."""

    held_out: Sequence[dict[str, Any]]
    downstream: Sequence[dict[str, Any]]
    rollouts: Sequence[dict[str, Any]] = field(default_factory=list)
    """Sample rollouts of the held-out prompts, for people to read."""


@dataclass(frozen=True, kw_only=True)
class Meter:
    """The evaluators of a run."""

    held_out: HeldOutEvaluator
    downstream: DownstreamEvaluator

    def measure(self, sampler: Sampler, index: int, reading: int) -> MeasuredRows:
        """Measure the sampler's weights: held-out prompts as number `index`, task files as number `reading`."""
        held_out = list(self.held_out.measure(sampler, index))
        downstream = list(self.downstream.measure(sampler, reading))
        return MeasuredRows(held_out=held_out, downstream=downstream, rollouts=self.held_out.kept)
