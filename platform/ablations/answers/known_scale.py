"""What is known about a scale before a study: the law of its curves, their noise, the run-to-run spread and the speed.

Earlier runs provide it (`earlier`). Without earlier runs it is assumed: eq. 1 of the paper's ScaleRL run, with the
paper's budget as one unit of the scale, the residuals of published runs, and the run-to-run sd that comparisons assume.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ablations.answers.repeats import NO_OTHERS, OtherSweeps
from ablations.answers.run_to_run import ASSUMED_SD, RunToRun
from ablations.fit.result import Fit

Law = Callable[[np.ndarray], np.ndarray]
"""Pass rate at each compute, in GPU-hours."""

PAPER_A, PAPER_B, PAPER_C_MID, PAPER_R_0 = 0.610, 1.92, 2542.0, 0.3
"""The ScaleRL run of table 1 (arXiv 2510.13786), in GPU-hours; R_0 is read off its figures."""
PAPER_BUDGET = 16_000.0
PAPER_PROMPTS = 1000
"""Number of held-out prompts (ScaleRL A.5), for a task whose number is unknown until its file is read."""
PAPER_RUN_SD = 0.0045
"""Standard deviation of readings about their curve; the residuals of published runs scatter by .004."""
PAPER_AUTOCORRELATION = 0.4
"""Lag-1 autocorrelation; published runs lie between .3 and .56."""


@dataclass(frozen=True, kw_only=True)
class RunSpread:
    """The run-to-run spread without errors of readings: RunSpread(level=0.0096, ceiling=0.0096, compute=0.08)."""

    level: float
    ceiling: float
    compute: float | None
    """Run-to-run sd of ln compute to a target; None if it follows from the ceiling's sd and the law."""
    freedom: int
    """Degrees of freedom of the level's spread, from seeds of earlier runs; 0 if all three spreads are assumed or
    stated."""

    @classmethod
    def of(cls, spreads: Mapping[str, RunToRun]) -> "RunSpread":
        """The spread left between runs once the effect of a shared start cancels. If no ceiling or compute has a second
        seed, the spread of the levels is used.
        """
        level, ceiling, compute = (spreads[name] for name in ("level", "ceiling", "compute"))
        return cls(
            level=level.paired_tau,
            ceiling=(ceiling if ceiling.is_known else level).paired_tau,
            compute=compute.paired_tau if compute.is_known else None,
            freedom=level.freedom,
        )


@dataclass(frozen=True, kw_only=True)
class Speed:
    """The speed of runs on this machine: Speed(seconds_per_gpu_hour=0.18, seconds_per_evaluation=4.1)."""

    seconds_per_gpu_hour: float
    """Seconds per GPU-hour, without evaluations."""
    seconds_per_evaluation: float


@dataclass(frozen=True, kw_only=True, eq=False)
class KnownScale:
    """What is known about a scale from `num_runs` earlier runs; assumed if 0."""

    law: Law
    run_sd: float
    """Standard deviation of readings about their curve, without the sampling noise of finite samples."""
    autocorrelation: float
    prompts: int
    """Number of held-out prompts of an evaluation."""
    sampling_share: float
    """Sampling variance of a reading, as a share of p (1 - p) / n."""
    spread: RunSpread
    speed: Speed | None = None
    num_runs: int = 0
    others: OtherSweeps = NO_OTHERS
    """Evidence from other sweeps of the home folder, which the comparison will add to the study's own seeds."""
    is_stated: bool = False
    """True if the user has stated the run-to-run sd."""
    unkept: str = ""
    """The reason why fits of earlier runs could not be saved; empty if they were."""

    def stated(self, sd: float) -> "KnownScale":
        """A copy with the given run-to-run standard deviation."""
        return replace(self, spread=RunSpread(level=sd, ceiling=sd, compute=None, freedom=0), is_stated=True)

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON: "source" is "earlier runs" or "assumed"."""
        return {
            "source": "earlier runs" if self.num_runs else "assumed",
            "num_runs": self.num_runs,
            "run_to_run": {
                "level": self.spread.level,
                "ceiling": self.spread.ceiling,
                "compute": self.spread.compute,
                "degrees_of_freedom": self.spread.freedom,
                "source": "stated" if self.is_stated else "earlier runs" if self.spread.freedom else "assumed",
            },
            "noise_sd": self.run_sd,
            "autocorrelation": self.autocorrelation,
        }


def noise_of(fits: Sequence[Fit]) -> tuple[float, float]:
    """Standard deviation of readings about their curve, without the sampling noise of finite samples, and lag-1
    autocorrelation: the medians over the fits.
    """
    variances = [max(fit.noise_sd**2 - fit.readings.sampling_variance, 0.0) for fit in fits]
    rho = float(np.clip(np.median([fit.autocorrelation for fit in fits]), 0, 0.95))  # 1 would be a random walk
    return math.sqrt(float(np.median(variances))), rho


def assumed(*, unit_gpu_hours: float, prompts: int) -> KnownScale:
    """The paper's numbers, for a scale without runs: one unit of its compute is the paper's budget."""
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
        spread=RunSpread(level=ASSUMED_SD, ceiling=ASSUMED_SD, compute=None, freedom=0),
    )
