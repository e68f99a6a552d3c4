"""The runs of one variant, and which of them count in a comparison."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ablations.answers.differences import mean_ceiling
from ablations.answers.footing import Footing
from ablations.answers.level import footing_of_fits, last_compute
from ablations.answers.questions import CEILING
from ablations.answers.rise import verdict_together
from ablations.fit.asymptote import AsymptoteEstimate, asymptote_of
from ablations.fit.result import Fit
from ablations.home.state import State
from ablations.readings.fitted_run import FittedRun
from ablations.readings.hours import Hours

NO_FIT = "no fit"
"""Verdict on a variant that cannot be compared."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FittedVariant:
    """The runs of one variant, one per seed."""

    name: str
    overrides: dict[str, Any]
    runs: tuple[FittedRun, ...]
    short: frozenset[str] = frozenset()
    """Names of runs that end before the compute at which the variant is read, so that their levels do not count."""
    compared: AsymptoteEstimate | None = None
    """The mean A from the comparison, with the run-to-run spread of all seeds; None without a comparison."""

    @property
    def fits(self) -> list[Fit]:
        """The fits of the runs that count: of all that have one, without those that are short.

        The fit of a run that a rule stopped, or that ended by itself, counts for the ceiling even if it is short.
        """
        return [run.fit for run in self.runs if run.fit is not None and not self.is_left_out(run)]

    @property
    def num_counting(self) -> int:
        """Number of runs whose level counts."""
        return sum(run.fit is not None and run.name not in self.short for run in self.runs)

    def is_left_out(self, run: FittedRun) -> bool:
        """True if the run is short, although no rule stopped it and it did not end by itself."""
        return run.name in self.short and run.state != State.STOPPED

    @property
    def cost_gpu_hours(self) -> float:
        """Compute spent by all seeds together."""
        return sum(run.cost_gpu_hours for run in self.runs)

    @property
    def hours(self) -> Hours | None:
        """Device time of all seeds that logged it."""
        return Hours.of_runs([run.hours for run in self.runs if run.hours is not None])

    @property
    def reasons(self) -> list[str]:
        """Reasons why runs have no fit, one sentence per run."""
        reasons = [(run.name, run.reason) for run in self.runs if run.reason]
        return [reason if repr(name) in reason else f"{name}: {reason}" for name, reason in reasons]

    @property
    def asymptote(self) -> AsymptoteEstimate | None:
        """The mean A of all seeds for display, that of the comparison if there is one; None without a fit."""
        if self.compared is not None:
            return self.compared
        if not self.fits:
            return None
        ceiling = mean_ceiling(self.fits, CEILING.spread_of([self.fits], ()))
        assert ceiling.lo is not None  # every fit bounds A from below
        verdict = verdict_together(self.fits, ceiling.lo, ceiling.hi)
        return asymptote_of(ceiling.estimate, lo=ceiling.lo, hi=ceiling.hi, verdict=verdict)

    def __repr__(self) -> str:
        return f"<Variant {self.name!r}: {len(self.fits)} of {len(self.runs)} runs fitted; {self.asymptote or NO_FIT}>"


def on_one_footing(
    variants: Sequence[FittedVariant], reference: str
) -> tuple[tuple[FittedVariant, ...], Footing | None]:
    """The variants with their short runs marked, and the compute at which they are compared; None without a fit."""
    fits = {one.name: [run.fit for run in one.runs if run.fit is not None] for one in variants}
    fits = {name: some for name, some in fits.items() if some}
    if not fits:
        return tuple(variants), None
    footing = footing_of_fits(fits, reference)
    marked = tuple(
        replace(one, short=frozenset(run.name for run in one.runs if _is_short(run, footing.of(one.name))))
        for one in variants
    )
    return marked, footing


def _is_short(run: FittedRun, compute: float) -> bool:
    return run.fit is not None and last_compute(run.fit) < compute
