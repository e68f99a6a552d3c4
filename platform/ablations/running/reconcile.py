"""Reconciles a sweep with its jobs: counts missing runs, cancels jobs that were held or whose runs left the file.

Nothing here trains or waits.
"""

from collections.abc import Iterable

from ablations.home.started_sweep import StartedSweep, read_sweep
from ablations.home.state import State
from ablations.slurm import commands
from ablations.slurm.hold import lift_hold, read_hold
from ablations.slurm.states import SlurmStates
from ablations.slurm.submissions import read_submissions
from ablations.status.progress import run_rows
from ablations.status.rows import RunRow


def num_missing(sweep: StartedSweep) -> int:
    """Number of runs to submit now: those that have not ended and have no job that trains to the budget."""
    states, hold = SlurmStates(sweep.home), read_hold(sweep.home, sweep.name)
    held = hold.submissions if hold else ()

    def goes_on(row: RunRow) -> bool:
        jobs = states.in_queue(row.id)
        if not jobs:
            return row.state.state == State.RUNNING  # for another command, on this machine
        return any(
            one.budget_gpu_hours >= sweep.plan.budget_gpu_hours
            and (one.name not in held if job.waits else row.state.state != State.CANCELLED)
            for one, job in jobs
        )

    return sum(not row.state.state.is_finished and not goes_on(row) for row in run_rows(sweep))


def cancel_held(sweep: StartedSweep) -> tuple[str, list[str]]:
    """Cancel the waiting jobs of a sweep that were held after equal failures; returns the reason and the runs."""
    home, name = sweep.home, sweep.name
    hold = read_hold(home, name)
    if hold is None:
        return "", []
    states = SlurmStates(home, fresh=True)  # the last job to fail was waiting a moment ago
    waiting = [states.waiting_jobs(one) for one in read_submissions(home, name) if one.name in hold.submissions]
    commands.cancel_jobs(job for jobs in waiting for job in jobs.values())
    lift_hold(home, name)
    return str(hold), list(dict.fromkeys(run for jobs in waiting for run in jobs))


def prune(sweep: StartedSweep) -> list[str]:
    """Cancel jobs that this sweep submitted for runs that are no longer in any sweep's plan; returns the runs."""
    home = sweep.home
    wanted = {run.id for name in home.sweep_names() for run in read_sweep(home, name).plan.runs}
    left = {run for one in read_submissions(home, sweep.name) for run in one.runs if run not in wanted}
    return cancel_runs(sweep, sorted(left))[0]


def cancel_runs(sweep: StartedSweep, run_ids: Iterable[str]) -> tuple[list[str], list[str]]:
    """Cancel the jobs of runs; returns the runs whose jobs were cancelled and those with a job of another sweep."""
    states, mine, others = SlurmStates(sweep.home), {}, []
    for run_id in run_ids:
        there = states.in_queue(run_id)
        if jobs := [job.id for submission, job in there if submission.sweep == sweep.name]:
            mine[run_id] = jobs
        elif there:
            others.append(run_id)
    commands.cancel_jobs(job for jobs in mine.values() for job in jobs)
    return list(mine), others
