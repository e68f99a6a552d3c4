"""The labels of a comparison: its names, units and window, and the settings that each variant changes."""

from dataclasses import dataclass, field
from typing import Any

from ablations.fit.options import FitOptions, FitSettings
from ablations.text import changes_text, counted, four_digits

SAME_BUDGET = 1e-9
"""Relative difference below which two budgets are equal."""


def run_name(variant: str, seed: int) -> str:
    """The name of a run and of its curve, in every output: `scalerl-s0`."""
    return f"{variant}-s{seed}"


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
        """The larger of both in each number."""
        return StudySize(
            num_variants=max(self.num_variants, other.num_variants),
            num_seeds=max(self.num_seeds, other.num_seeds),
            budget_gpu_hours=max(self.budget_gpu_hours, other.budget_gpu_hours),
        )


@dataclass(frozen=True, kw_only=True)
class Labels:
    """The labels of a sweep (as part of its `Plan`), or of curves from another trainer.

    Labels(sweep="curves", reference="scalerl", compute_name="GPU-hours", budget_gpu_hours=2000.0,
           fit_from_gpu_hours=0.0, fit_to_gpu_hours=1000.0, variants=(scalerl, loo_loss))
    """

    sweep: str
    """The name of the sweep, file or experiment."""
    doc: str = ""
    command: str = ""
    """The command that started the sweep."""
    reference: str
    scale: str = ""
    """Name of the scale; empty for curves from another trainer."""
    compute_name: str = "modelled GPU-hours"
    """Unit of all compute: "modelled GPU-hours", or "measured device-hours" on the wall clock."""
    budget_gpu_hours: float
    """Compute to train each run for."""
    fit_from_gpu_hours: float
    fit_to_gpu_hours: float
    """Evaluations outside [fit_from, fit_to] are not fitted; those above check the forecast."""
    fit: dict[str, Any] = field(default_factory=dict)
    """Settings of the curve fits, as in the sweep file: {"r0": "anchored", "loss": "squares", "task": null, ...}."""
    published: dict[str, dict[str, float]] = field(default_factory=dict)
    """A paper's published values, by variant: {"loo-loss": {"A": 0.59, "B": 1.77, "C_mid": 2600.0}}."""
    begun: StudySize | None = None
    """The size of the study before `--shorten`; None for a study that was not shortened."""
    search: bool = False
    """True for a search, which adds trials while it runs."""
    variants: tuple[PlannedVariant, ...]

    @property
    def runs(self) -> tuple[PlannedRun, ...]:
        return tuple(run for variant in self.variants for run in variant.runs)

    @property
    def size(self) -> StudySize:
        """The size of the study; trials of a search do not count, since they are added while the search runs."""
        return StudySize(
            num_variants=1 if self.search else len(self.variants),
            num_seeds=len({run.seed for run in self.runs}),
            budget_gpu_hours=self.budget_gpu_hours,
        )

    def size_text(self, size: StudySize, *, with_variants: bool) -> str:
        """A size in words: `3 seeds at 625 GPU-hours`, or `4 variants and 3 seeds at 625 GPU-hours`."""
        variants = f"{counted(size.num_variants, 'variant')} and " if with_variants else ""
        return f"{variants}{counted(size.num_seeds, 'seed')} at {self.hours_text(size.budget_gpu_hours)}"

    @property
    def axes(self) -> dict[str, dict[str, str]]:
        return {variant.name: variant.axes for variant in self.variants}

    @property
    def hours_name(self) -> str:
        """The unit without the way of counting: `GPU-hours`, or `device-hours` on the wall clock."""
        return self.compute_name.rpartition(" ")[2]

    def hours_text(self, compute_gpu_hours: float) -> str:
        """Compute with its unit, to four digits: `1200 GPU-hours`, or `1200 device-hours` on the wall clock."""
        return f"{four_digits(compute_gpu_hours)} {self.hours_name}"

    @property
    def fit_settings(self) -> FitSettings:
        options = FitOptions(**self.fit)
        return FitSettings(
            fit_from="auto" if options.cutoff == "auto" else self.fit_from_gpu_hours,
            fit_to=self.fit_to_gpu_hours,
            **options.model_dump(exclude={"cutoff"}),
        )
