"""A sweep that decides during training which runs end early.

`stopping` has the rules; this module applies them to run folders, files and the pool. Every decision is on disk before
it takes effect, so the same command, restarted, resumes with the same decisions.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from ablations.answers.questions import LEVEL
from ablations.answers.repeats import NO_OTHERS, OtherSweeps
from ablations.answers.run_to_run import RunToRun
from ablations.findings.repeated_runs import of_other_sweeps
from ablations.fit.result import Fit
from ablations.home.labels import run_name
from ablations.home.started_sweep import StartedSweep
from ablations.home.state import read_state
from ablations.home.stops import Stopped, read_stops, write_stops
from ablations.pools.pool import Pool
from ablations.steering.live_fits import LiveFits, num_readings
from ablations.steering.stopping import StopReason, stop_reason
from ablations.study.expand import Study, SweepRun


class Steering:
    """Applies the stop rules to one sweep; only its process writes the file of stops."""

    def __init__(self, study: Study, sweep: StartedSweep) -> None:
        self._study, self._sweep, self._plan = study, sweep, sweep.plan
        self._stop = study.sweep.stop
        self._stops = read_stops(sweep)
        # Forecasts use everything that a run has shown, also beyond fit_on.
        self._fits = LiveFits(sweep.home, replace(sweep.plan.fit_settings, fit_to=math.inf))
        self._runs = {run.id: run for run in study.runs}

    @property
    def stopped(self) -> list[str]:
        """The runs that a rule has ended."""
        return [run_id for run_id in self._runs if self._is_stopped(run_id)]

    def begin(self) -> list[str]:
        """Judge the runs so far; returns the ids of the runs to train."""
        self.steer()
        return [run_id for run_id in self._runs if not self._is_stopped(run_id) and not self._is_done(run_id)]

    def steer(self, pool: Pool | None = None) -> list[str]:
        """Judge the runs with a new evaluation and stop runs by the rules; returns messages."""
        if self._stop is None:
            return []
        said = []
        for run in [run for run in self._study.runs if self._fits.refresh(run)]:
            was_stopped = self._is_stopped(run.id)
            said += self._judged(run)
            # Only once, since another sweep without the rule may resume the run.
            if pool and self._is_stopped(run.id) and not was_stopped:
                pool.stop(run.id)
        return said

    def _is_stopped(self, run_id: str) -> bool:
        return run_id in self._stops and self._stops[run_id].ends_run

    def _is_done(self, run_id: str) -> bool:
        return read_state(self._sweep.run(run_id), self._plan.budget_gpu_hours).state.is_finished

    def _judged(self, run: SweepRun) -> list[str]:
        """Judge a run and record the result; returns messages."""
        reason = self._stop_reason(run)
        if reason is None:
            return []
        is_done = self._is_done(run.id)
        if is_done and reason.rule in ("gain", "dominated"):
            return []
        ends_run = reason.ends_run and not is_done
        before = self._stops.get(run.id)
        is_flagged = before is not None and (before.rule == "collapse" or reason.rule != "collapse")
        if is_flagged and not ends_run:
            return []  # the run was already judged for this reason, or for one that a collapse would follow
        fits = self._fits.newest(run, 1)
        curve, stop = self._fits.logs[run.id].curve, self._stop
        assert curve is not None
        assert stop is not None
        stopped = Stopped(
            run=run.id,
            variant=run.variant,
            seed=run.seed,
            rule=reason.rule,
            ends_run=ends_run,
            value=reason.value,
            compute_gpu_hours=float(curve.compute[-1]),
            num_readings=num_readings(curve),
            A_lo=fits[-1].ceiling.lo if fits else None,
            A_hi=fits[-1].ceiling.hi if fits else None,
            budget_gpu_hours=self._plan.budget_gpu_hours,
            stop=stop.model_dump(),
        )
        self._stops[run.id] = stopped
        write_stops(self._sweep, self._stops.values())
        return [f"{run_name(run.variant, run.seed)}: {stopped.text(self._plan)}"]

    def _stop_reason(self, run: SweepRun) -> StopReason | None:
        if self._stop is None or self._is_stopped(run.id):
            return None
        fits = self._fits.newest(run, 2)
        is_reference = run.variant == self._plan.reference
        reference_fits = self._fits_of(self._plan.reference)
        return stop_reason(
            self._stop,
            fits=fits,
            budget=self._plan.budget_gpu_hours,
            truncation=self._fits.logs[run.id].truncation,
            reference_fits=None if is_reference else reference_fits,
            spread=self._spread(reference_fits),
        )

    def _spread(self, reference_fits: Sequence[Fit]) -> RunToRun:
        """The run-to-run spread that the sweep's verdicts would use, given the readings so far."""
        fits_of_variants = [fits for variant in self._plan.variants if (fits := self._fits_of(variant.name))]
        return LEVEL.spread_of(fits_of_variants, reference_fits, self._others.of(LEVEL.name))

    @cached_property
    def _others(self) -> OtherSweeps:
        """Evidence from other sweeps; empty if no rule compares runs."""
        if self._stop is None or self._stop.dominated is None:
            return NO_OTHERS
        repeated = [variant.runs for variant in self._plan.variants if len(variant.runs) > 1]
        own = {run.id for runs in repeated for run in runs}
        return of_other_sweeps(self._sweep, own, sum(len(runs) - 1 for runs in repeated))

    def _fits_of(self, variant: str) -> list[Fit]:
        return self._fits.fits([run for run in self._study.runs if run.variant == variant])
