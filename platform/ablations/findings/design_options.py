"""Choices of a study before any compute is spent: seeds, budget and samples per evaluation, with the cost of each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ablations.home.home import Home
from ablations.study.expand import Study
from ablations.study.fittable import readings_before

SEED_COUNTS = (2, 3, 5)
"""Numbers of seeds to consider by default. One seed does not show how much runs differ, so it is considered only on
request."""
BUDGET_FACTORS = (0.5, 1.0, 2.0)
SAMPLE_FACTORS = (1, 4)


@dataclass(frozen=True, kw_only=True)
class StudyDesign:
    """One design of a study: `StudyDesign(seeds=(0, 1, 2), budget=1.0, samples=8)`."""

    seeds: tuple[int, ...]
    budget: float
    """Compute per run, in the scale's unit."""
    samples: int
    """Generations per held-out prompt, at each evaluation."""


@dataclass(frozen=True, kw_only=True)
class Costs:
    """The cost of a design: `Costs(whole=18.0, left=12.0, num_runs=18)`, in the scale's unit."""

    whole: float
    left: float
    """Cost without the compute already spent."""
    num_runs: int
    left_share: float
    """Share of the compute, and so of the evaluations, still to come."""


@dataclass(frozen=True, kw_only=True)
class Blueprint:
    """The design in a sweep file, each number in the scale's unit."""

    study: Study
    home: Home
    budget: float
    num_seeds: int | None = None
    """The number of seeds to consider, if given; else several numbers."""

    @property
    def as_written(self) -> StudyDesign:
        """The design of the file itself."""
        samples = self.study.reference.recipe.evaluation.samples
        return StudyDesign(seeds=self.study.sweep.seeds, budget=self.budget, samples=samples)

    @property
    def num_variants(self) -> int:
        """Number of variants: the reference, the others, and the trials of a search."""
        search = self.study.sweep.search
        return len(self.study.variants) + (search.trials if search else 0)

    @property
    def unit(self) -> float:
        """GPU-hours per compute unit."""
        return self.study.reference.recipe.compute_unit_gpu_hours

    @property
    def every(self) -> float:
        """Compute between two evaluations."""
        return self.study.reference.recipe.evaluation.every

    def choices(self) -> Iterator[StudyDesign]:
        """The file's own design, then every alternative design."""
        own = self.as_written
        yield own
        for factor in BUDGET_FACTORS:
            for count in [self.num_seeds] if self.num_seeds else sorted({*SEED_COUNTS, len(own.seeds)}):
                for more in SAMPLE_FACTORS:
                    choice = StudyDesign(
                        seeds=seeds_of(own.seeds, count), budget=factor * own.budget, samples=more * own.samples
                    )
                    if choice != own:
                        yield choice

    def costs(self, choice: StudyDesign) -> Costs:
        """The total cost of a design, and the cost left to pay given the runs of this home folder."""
        num_runs = self.num_variants * len(choice.seeds)
        whole = num_runs * choice.budget
        is_own = choice.samples == self.as_written.samples  # other evaluations make another run
        left = whole - (self._trained(choice) if is_own else 0.0)
        return Costs(whole=whole, left=left, num_runs=num_runs, left_share=left / whole)

    def num_evaluations(self, choice: StudyDesign) -> int:
        """Number of evaluations of one run after step 0."""
        return readings_before(choice.budget, self.every)

    def _trained(self, choice: StudyDesign) -> float:
        ids = (variant.recipe.identity(seed) for variant in self.study.variants for seed in choice.seeds)
        spent = (self.home.run(run_id).read_status().compute_gpu_hours / self.unit for run_id in ids)
        return sum(min(one, choice.budget) for one in spent)


def seeds_of(seeds: Sequence[int], count: int) -> tuple[int, ...]:
    """`count` seeds: the given ones first, then the smallest unused ones."""
    others = (seed for seed in range(len(seeds) + count) if seed not in seeds)
    kept = tuple(seeds[:count])
    return kept + tuple(next(others) for _ in range(count - len(kept)))
