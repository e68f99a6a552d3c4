"""The designs considered for a study, with cost and resolution, and the cheapest one that detects a given
difference."""

from dataclasses import dataclass
from typing import Any

from ablations.answers.half_widths import BLIND, Sight
from ablations.answers.known_scale import KnownScale
from ablations.answers.questions import LEVEL
from ablations.findings.design_options import Blueprint, Costs, StudyDesign
from ablations.fit.options import MIN_READINGS


@dataclass(frozen=True, kw_only=True)
class Foreseen:
    """One design with its cost and its resolution."""

    choice: StudyDesign
    costs: Costs
    seconds: float | None
    """Duration of all runs left to train, one after the other, at the speed of earlier runs; None if unknown."""
    num_readings: int
    """Number of fitted readings of one run, after step 0."""
    sights: dict[str, Sight]
    interaction: Sight = BLIND
    """For the interaction of two changes in level."""

    @property
    def can_be_fitted(self) -> bool:
        """True if there are enough readings for a fit."""
        return self.num_readings >= MIN_READINGS

    def to_json(self, unit_gpu_hours: float) -> dict[str, Any]:
        """Plain data for JSON, one line of `platform design --json`."""
        return {
            "seeds": list(self.choice.seeds),
            "budget": self.choice.budget,
            "samples": self.choice.samples,
            "num_runs": self.costs.num_runs,
            "cost": self.costs.whole,
            "cost_gpu_hours": self.costs.whole * unit_gpu_hours,
            "left": self.costs.left,
            "left_gpu_hours": self.costs.left * unit_gpu_hours,
            "seconds": self.seconds,
            "readings": self.num_readings,
            **{question: sight.to_json(question) for question, sight in self.sights.items()},
            "interaction": self.interaction.to_json(LEVEL.name),
        }


@dataclass(frozen=True, kw_only=True, eq=False)
class Prospect:
    """Every design considered, the file's own first, and what the numbers are based on."""

    blueprint: Blueprint
    known: KnownScale
    designs: tuple[Foreseen, ...]

    @property
    def own(self) -> Foreseen:
        """The file's own design."""
        return self.designs[0]

    @property
    def by_cost(self) -> list[Foreseen]:
        """The designs by the cost left to pay, then by total cost, then by samples."""
        return sorted(self.designs, key=lambda one: (one.costs.left, one.costs.whole, one.choice.samples))

    @property
    def advisable(self) -> list[Foreseen]:
        """The designs that may be recommended, by cost: with two seeds or more, or with the requested number."""
        asked = self.blueprint.num_seeds
        return [one for one in self.by_cost if (len(one.choice.seeds) == asked if asked else len(one.choice.seeds) > 1)]

    def cheapest(self, question: str, detect: float) -> Foreseen | None:
        """The cheapest design that detects this difference, in ln for compute; None if no design does."""
        return next((one for one in self.advisable if one.sights[question].sees(detect)), None)

    def finest(self, question: str) -> Foreseen | None:
        """The design that detects the smallest difference; None if no design detects any."""
        seeing = [one for one in self.advisable if one.sights[question].seen is not None]
        return min(seeing, key=lambda one: one.sights[question].seen or 0.0, default=None)

    def to_json(self) -> dict[str, Any]:
        study = self.blueprint.study
        return {
            "sweep": study.sweep.name,
            "scale": study.scale,
            "num_variants": self.blueprint.num_variants,
            "num_pairs": len(study.pairs),
            "num_possible_pairs": len(study.possible_pairs),
            "compute_unit_gpu_hours": self.blueprint.unit,
            "known": self.known.to_json(),
            "designs": [one.to_json(self.blueprint.unit) for one in self.by_cost],
        }
