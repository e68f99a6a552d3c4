"""The variants and runs of a plan, with their names, and the size of a study."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ablations.text import changes_text

FIRST_REFERENCE = "The reference is {}, the first variant given; --reference NAME chooses another."
"""Note of an import without a reference."""
SAME_BUDGET = 1e-9
"""Relative difference below which two budgets are equal."""

MOST_LISTED = 5
"""Maximum number of runs that a sentence lists."""
SEED_WORDS = (", seed ", " seed ")
"""Words between the name of a variant and its seed, in the terminal and in MLflow."""


def run_name(variant: str, seed: int) -> str:
    """The name of a run and of its curve, in every output: `scalerl-s0`."""
    return f"{variant}-s{seed}"


def named_runs(names: Sequence[str]) -> str:
    """The first names of runs, and the number of the others: `dapo-s0, dapo-s1 and 3 more`."""
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return f"{', '.join(names[:MOST_LISTED])}{more}"


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """One training run: `PlannedRun(seed=0, id="3f0c9a1b2d4e")`."""

    seed: int
    id: str


@dataclass(frozen=True, kw_only=True)
class PlannedVariant:
    """One recipe, trained once with each seed; the reference overrides nothing.

    PlannedVariant(name="loo-loss", overrides={"loss": {"type": "dapo"}}, runs=(PlannedRun(seed=0, id="81d2f0a95c3b"),))
    """

    name: str
    overrides: dict[str, Any]
    """Settings in which the variant differs from the reference."""
    runs: tuple[PlannedRun, ...]
    axes: dict[str, str] = field(default_factory=dict)
    """The variant's value on each axis that it combines; for the reference, its own value on each axis of the grid."""

    @property
    def changes(self) -> str:
        """The overrides as text: `loss.type = dapo, batch.prompts = 32`; empty for the reference."""
        return changes_text(self.overrides)


def run_of_name(variants: Iterable[PlannedVariant], name: str) -> PlannedRun | None:
    """The run with this name as outputs write it: `dapo-s0`, `dapo, seed 0` or `dapo seed 0`; None if there is none."""
    for variant in variants:
        for run in variant.runs:
            if name in (run_name(variant.name, run.seed), *(f"{variant.name}{one}{run.seed}" for one in SEED_WORDS)):
                return run
    return None


@dataclass(frozen=True, kw_only=True)
class StudySize:
    """Size of a study: `StudySize(num_variants=3, num_seeds=3, budget_gpu_hours=625.0)`."""

    num_variants: int
    num_seeds: int
    budget_gpu_hours: float

    def is_below(self, other: "StudySize") -> bool:
        """True if any number is smaller than that of the other study."""
        return (
            self.num_variants < other.num_variants
            or self.num_seeds < other.num_seeds
            or self.budget_gpu_hours < other.budget_gpu_hours * (1 - SAME_BUDGET)
        )

    def or_larger(self, other: "StudySize") -> "StudySize":
        """The larger of the two sizes in each number."""
        return StudySize(
            num_variants=max(self.num_variants, other.num_variants),
            num_seeds=max(self.num_seeds, other.num_seeds),
            budget_gpu_hours=max(self.budget_gpu_hours, other.budget_gpu_hours),
        )
