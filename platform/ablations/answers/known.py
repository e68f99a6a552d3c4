"""What is known of a scale before a study: the law of its curves, their noise, how far runs lie apart, their speed.

Earlier runs say it (`earlier`). Where there is none it is assumed: eq. 1 of the paper's ScaleRL run, with the paper's
budget as one unit of the scale, residuals as of published runs, and the run-to-run sd that comparisons assume.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ablations.answers.run_to_run import NO_OTHERS, PRIOR_SD, OtherSweeps

Law = Callable[[np.ndarray], np.ndarray]
"""Pass rate at each compute, in GPU-hours."""

PAPER_A, PAPER_B, PAPER_C_MID, PAPER_R_0 = 0.610, 1.92, 2542.0, 0.3
"""The ScaleRL run of table 1 (arXiv 2510.13786), GPU-hours; R_0 as read off its figures."""
PAPER_BUDGET = 16_000.0
PAPER_PROMPTS = 1000
"""Held-out prompts (ScaleRL A.5), of a task whose number is only known once its file is read."""
PAPER_RUN_SD = 0.0045
"""Of readings about their curve: residuals of published runs scatter by .004."""
PAPER_AUTOCORRELATION = 0.4
"""Lag 1; those of published runs have .3 to .56."""


@dataclass(frozen=True, kw_only=True)
class RunSpread:
    """How far runs of one recipe lie apart, in pass rate: RunSpread(level=0.0096, ceiling=0.0096, target=0.0074)."""

    level: float
    ceiling: float
    target: float
    freedom: int
    """Degrees of freedom that seeds of earlier runs give the level's; 0 where all three are assumed or stated."""


@dataclass(frozen=True, kw_only=True)
class Speed:
    """How fast runs are here: Speed(seconds_per_gpu_hour=0.18, seconds_per_evaluation=4.1)."""

    seconds_per_gpu_hour: float
    """Evaluations left out."""
    seconds_per_evaluation: float


@dataclass(frozen=True, kw_only=True, eq=False)
class KnownScale:
    """What is known of a scale. `num_runs` earlier runs say it; with 0 it is assumed."""

    law: Law
    run_sd: float
    """Of readings about their curve, what finite samples do left out."""
    autocorrelation: float
    prompts: int
    """Held-out prompts of an evaluation."""
    sampling_share: float
    """Sampling variance of a reading, as a part of p (1 - p) / n."""
    spread: RunSpread
    speed: Speed | None = None
    num_runs: int = 0
    others: OtherSweeps = NO_OTHERS
    """What the comparison will take from other sweeps of the home folder beside the study's own seeds."""
    is_stated: bool = False
    """Whether the user has said how far runs lie apart."""
    unkept: str = ""
    """Why fits of earlier runs could not be kept; empty where they were."""

    def stated(self, sd: float) -> "KnownScale":
        """The same with a run-to-run standard deviation that is given."""
        return replace(self, spread=RunSpread(level=sd, ceiling=sd, target=sd, freedom=0), is_stated=True)

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON: "source" is "earlier runs" or "assumed"."""
        return {
            "source": "earlier runs" if self.num_runs else "assumed",
            "num_runs": self.num_runs,
            "run_to_run": {
                "level": self.spread.level,
                "ceiling": self.spread.ceiling,
                "target": self.spread.target,
                "degrees_of_freedom": self.spread.freedom,
                "source": "stated" if self.is_stated else "earlier runs" if self.spread.freedom else "assumed",
            },
            "noise_sd": self.run_sd,
            "autocorrelation": self.autocorrelation,
        }


def assumed(*, unit_gpu_hours: float, prompts: int) -> KnownScale:
    """The paper's numbers, for a scale that has no runs yet: one unit of its compute is the paper's budget."""
    C_mid = PAPER_C_MID / PAPER_BUDGET * unit_gpu_hours

    def law(compute: np.ndarray) -> np.ndarray:
        """R_C = R_0 + (A - R_0) / (1 + (C_mid / C)^B) (ScaleRL eq. 1)."""
        with np.errstate(divide="ignore"):
            return PAPER_R_0 + (PAPER_A - PAPER_R_0) / (1 + (C_mid / compute) ** PAPER_B)

    return KnownScale(
        law=law,
        run_sd=PAPER_RUN_SD,
        autocorrelation=PAPER_AUTOCORRELATION,
        prompts=prompts,
        sampling_share=1.0,
        spread=RunSpread(level=PRIOR_SD, ceiling=PRIOR_SD, target=PRIOR_SD, freedom=0),
    )
