"""A sweep that decides while it trains: which runs end early, and which get more of the total.

The rules are `stopping` and `allocation`; here they meet run folders, files and the pool. Every decision is on disk
before it takes effect, so that the same command, started again, resumes with the same ones.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from ablations.errors import AblationsError
from ablations.home.allocation import Allocation, Extension
from ablations.home.started_sweep import StartedSweep
from ablations.home.state import read_state
from ablations.home.stops import Stopped
from ablations.pools.pool import Pool
from ablations.steering.allocation import (
    Candidate,
    EvaluationGrid,
    Newcomer,
    equal_share,
    evaluation_gpu_hours,
    first_round,
    least_of_first_round,
    least_share,
    next_round,
    standings,
    why_closed,
)
from ablations.steering.live_fits import LiveFits, num_readings
from ablations.steering.stopping import StopReason, ceiling_below_probability, stop_reason
from ablations.study.expand import Study, SweepRun
from ablations.text import counted


class Steering:
    """Stops and rounds of one sweep; its process is the only one that writes their files."""

    def __init__(self, study: Study, sweep: StartedSweep) -> None:
        self._study, self._sweep, self._plan = study, sweep, sweep.plan
        self._stop = study.sweep.stop
        self._stops = sweep.read_stops()
        # What is left of a run is foretold from all that it has shown, beyond fit_on too.
        self._fits = LiveFits(sweep.home, replace(sweep.plan.fit_settings, fit_to=math.inf))
        self._runs = {run.id: run for run in study.runs}
        self._allocation = sweep.read_allocation()

    @property
    def stopped(self) -> list[str]:
        """The runs that a rule has ended."""
        return [run_id for run_id in self._runs if self._is_stopped(run_id)]

    def begin(self) -> dict[str, float]:
        """Judge what is there; then the runs to train and the GPU-hours to which."""
        self._judge_news()
        if self._allocation is None:
            return self._unreached(dict.fromkeys(self._runs, self._plan.budget_gpu_hours))
        self._share_first(self._allocation)
        while not (missing := self._unreached(self._allocation.allotted)) and self._decide_round():
            pass
        return missing

    def steer(self, pool: Pool) -> list[str]:
        """Judge the runs that have a new evaluation, and begin the next round when one is over; returns what to say."""
        said = self._judge_news(pool)
        if self._allocation is None or any(pool.is_busy(run_id) for run_id in self._runs):
            return said
        if not self._sweep.cancellation.is_whole:
            for extension in self._decide_round():
                pool.add(extension.run, extension.to)
        return said

    def _judge_news(self, pool: Pool | None = None) -> list[str]:
        """Judge the runs that have a new evaluation and stop those that are to end; returns what to say."""
        if self._stop is None:
            return []
        said = []
        for run in [run for run in self._study.runs if self._fits.refresh(run)]:
            was_stopped = self._is_stopped(run.id)
            said += self._judged(run)
            # Once: another sweep without the rule may train it on.
            if pool and self._is_stopped(run.id) and not was_stopped:
                pool.stop(run.id)
        return said

    def _is_stopped(self, run_id: str) -> bool:
        return run_id in self._stops and self._stops[run_id].ends_run

    def _is_done(self, run_id: str, budget_gpu_hours: float) -> bool:
        return read_state(self._sweep.run(run_id), budget_gpu_hours).state.is_finished

    def _unreached(self, budgets: dict[str, float]) -> dict[str, float]:
        return {
            run_id: budget
            for run_id, budget in budgets.items()
            if run_id in self._runs and not self._is_stopped(run_id) and not self._is_done(run_id, budget)
        }

    def _judged(self, run: SweepRun) -> list[str]:
        """Judge a run and write down what was found; returns what to say of it."""
        reason = self._stop_reason(run)
        if reason is None:
            return []
        is_done = self._is_done(run.id, self._plan.budget_gpu_hours)
        if is_done and reason.rule in ("gain", "dominated"):
            return []
        ends_run = reason.ends_run and not is_done
        before = self._stops.get(run.id)
        is_flagged = before is not None and (before.rule == "collapse" or reason.rule != "collapse")
        if is_flagged and not ends_run:
            return []  # for this, or for something that a collapse would follow
        fits, _ = self._fits.newest(run, 1)
        curve, stop = self._fits.curve(run), self._stop
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
        self._sweep.write_stops(self._stops.values())
        return [f"{run.variant}, seed {run.seed}: {stopped.text(self._plan)}"]

    def _stop_reason(self, run: SweepRun) -> StopReason | None:
        if self._stop is None or self._is_stopped(run.id):
            return None
        fits, compute = self._fits.newest(run, 2)
        is_reference = run.variant == self._plan.reference
        return stop_reason(
            self._stop,
            fits=fits,
            compute_now=compute,
            budget=self._plan.budget_gpu_hours,
            truncation=self._fits.truncation(run),
            reference_fits=None if is_reference else self._fits.fits(self._runs_of(self._plan.reference)),
        )

    def _runs_of(self, variant: str) -> list[SweepRun]:
        return [run for run in self._study.runs if run.variant == variant]

    def _grid(self, total: float) -> EvaluationGrid:
        every = evaluation_gpu_hours(self._study.reference.recipe)
        return EvaluationGrid(every=every, slice_evaluations=equal_share(total, len(self._runs), every=every))

    def _share_first(self, allocation: Allocation) -> None:
        """The first share of every run that has none; AblationsError when too little is left for them."""
        new = [
            Newcomer(run=run.id, name=_name(run), trained=self._trained(run))
            for run in self._study.runs
            if run.id not in allocation.allotted
        ]
        if not new:
            return
        grid, most = self._grid(allocation.total_gpu_hours), self._plan.budget_gpu_hours
        least = least_share(every=grid.every, fit_from=self._plan.fit_from_gpu_hours)
        left = allocation.left(self._unused(allocation))
        needed = least_of_first_round(new, most=most, least=least, grid=grid)
        if round(needed - left, 9) > 0:  # sums of evaluations are off by rounding errors
            unit = self._plan.compute_unit_gpu_hours
            runs = f"{counted(len(new), 'run')} without a first share"
            raise AblationsError(
                f"sweep '{self._plan.sweep}': budget.total: found {allocation.total_gpu_hours / unit:g}, of which "
                f"{left / unit:g} is left for {runs} ({', '.join(one.name for one in new)}); must be at least "
                f"{_rounded_up((allocation.total_gpu_hours + needed - left) / unit):g}"
            )
        self._write(allocation.with_round(first_round(new, left, most=most, least=least, grid=grid), standings={}))

    def _trained(self, run: SweepRun) -> float:
        return self._sweep.run(run.id).read_status().compute_gpu_hours

    def _decide_round(self) -> Sequence[Extension]:
        """Decide who trains on, write it down and return it; empty when nobody does.

        No rank can be decided without the reference: one that failed is tried again by the next start, before anything
        else is given out.
        """
        allocation = self._allocation
        assert allocation is not None
        candidates, reference = self._candidates(allocation), self._plan.reference
        left = allocation.left(self._unused(allocation))
        if not any(one.is_reference for one in candidates):
            if all(self._is_collapsed(run) for run in self._runs_of(reference)):
                why = f"{reference}, the reference, has collapsed, so no rank can be decided"
                self._write(allocation.closed(f"{why}; {self._plan.hours_text(left)} are left", standings(candidates)))
            return ()
        extensions = next_round(candidates, left, grid=self._grid(allocation.total_gpu_hours))
        if extensions:
            self._write(allocation.with_round(extensions, standings(candidates)))
        else:
            num_untrained = len(self._unreached(allocation.allotted))
            why = why_closed(candidates, self._plan.hours_text(left), num_untrained=num_untrained)
            self._write(allocation.closed(why, standings(candidates)))
        return extensions

    def _is_collapsed(self, run: SweepRun) -> bool:
        fits, _ = self._fits.newest(run, 1)
        return bool(fits) and fits[0].verdict == "collapsed"

    def _unused(self, allocation: Allocation) -> float:
        """GPU-hours that stopped runs were given and did not use."""
        bought, allotted = allocation.bought, allocation.allotted
        return sum(
            min(bought[run_id], max(0.0, allotted[run_id] - stopped.compute_gpu_hours))
            for run_id, stopped in self._stops.items()
            if stopped.ends_run and run_id in allotted
        )

    def _candidates(self, allocation: Allocation) -> list[Candidate]:
        """The runs that have reached what they were given, and are neither stopped nor collapsed."""
        candidates = []
        for run in self._study.runs:
            allotted, most = allocation.allotted[run.id], self._plan.budget_gpu_hours
            if self._stop is None:  # else an evaluation is read where it is judged
                self._fits.refresh(run)
            fits, _ = self._fits.newest(run, 1)
            if self._is_stopped(run.id) or not self._is_done(run.id, allotted) or self._is_collapsed(run):
                continue
            grid = self._grid(allocation.total_gpu_hours)
            width = None if not fits else (1.0 if fits[0].A_hi is None else fits[0].A_hi) - fits[0].A_lo
            candidates.append(
                Candidate(
                    run=run.id,
                    name=_name(run),
                    reached=max(allotted, grid.reached(self._trained(run), most)),
                    most=most,
                    width=width,
                    above=self._above_reference(run.variant),
                    is_reference=run.variant == self._plan.reference,
                )
            )
        return candidates

    def _above_reference(self, variant: str) -> float | None:
        """P(the variant's ceiling lies above the reference's); None where either has no fit."""
        if variant == self._plan.reference:
            return None
        fits, reference_fits = (self._fits.fits(self._runs_of(name)) for name in (variant, self._plan.reference))
        return 1 - ceiling_below_probability(fits, reference_fits) if fits and reference_fits else None

    def _write(self, allocation: Allocation) -> None:
        self._sweep.write_allocation(allocation)
        self._allocation = allocation


def _name(run: SweepRun) -> str:
    return f"{run.variant}, seed {run.seed}"


def _rounded_up(total: float) -> float:
    """To six digits, as it is printed, so that the number named is enough."""
    digit = 10.0 ** (math.floor(math.log10(total)) - 5)
    return math.ceil(total / digit - 1e-6) * digit
