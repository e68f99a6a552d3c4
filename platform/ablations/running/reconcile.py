"""A sweep and its jobs brought to agree: what is missing is counted, what left the file or was held is cancelled.

Nothing here trains or waits; what is submitted needs no process of ours any more.
"""

from collections.abc import Iterable

from ablations.home.home import Home
from ablations.home.plan import Plan
from ablations.home.state import State
from ablations.slurm import commands
from ablations.slurm.hold import lift_hold, read_hold
from ablations.slurm.states import SlurmStates
from ablations.slurm.submissions import read_submissions
from ablations.status.progress import read_rows
from ablations.status.rows import Row


def num_missing(home: Home, plan: Plan) -> int:
    """How many runs of a plan a sweep would submit now: they have not ended, nor a job that goes on to the budget."""
    states, hold = SlurmStates(home), read_hold(home, plan.sweep)
    held = hold.submissions if hold else ()

    def goes_on(row: Row) -> bool:
        jobs = states.in_queue(row.id)
        if not jobs:
            return row.state.state == State.RUNNING  # from another command, on this machine
        return any(
            one.budget_gpu_hours >= plan.budget_gpu_hours
            and (one.name not in held if job.waits else row.state.state != State.CANCELLED)
            for one, job in jobs
        )

    return sum(not row.state.state.is_finished and not goes_on(row) for row in read_rows(home, plan))


def cancel_held(home: Home, sweep: str) -> tuple[str, list[str]]:
    """Cancel the waiting jobs of a sweep that were held after equal failures; returns why, and the runs."""
    hold = read_hold(home, sweep)
    if hold is None:
        return "", []
    states = SlurmStates(home)
    waiting = [states.waiting_jobs(one) for one in read_submissions(home, sweep) if one.name in hold.submissions]
    commands.cancel(job for jobs in waiting for job in jobs.values())
    lift_hold(home, sweep)
    return str(hold), list(dict.fromkeys(run for jobs in waiting for run in jobs))


def prune(home: Home, plan: Plan) -> list[str]:
    """Cancel jobs that this sweep submitted for runs that no sweep's plan has any more; returns the runs."""
    wanted = {
        run.id for name in home.sweep_names() for variant in home.read_plan(name).variants for run in variant.runs
    }
    left = {run for one in read_submissions(home, plan.sweep) for run in one.runs if run not in wanted}
    return cancel_runs(home, plan.sweep, sorted(left))[0]


def cancel_runs(home: Home, sweep: str, run_ids: Iterable[str]) -> tuple[list[str], list[str]]:
    """Cancel the jobs of runs; returns those whose jobs were cancelled, and those whose job another sweep submitted."""
    states, mine, others = SlurmStates(home), {}, []
    for run_id in run_ids:
        there = states.in_queue(run_id)
        if jobs := [job.id for submission, job in there if submission.sweep == sweep]:
            mine[run_id] = jobs
        elif there:
            others.append(run_id)
    commands.cancel(job for jobs in mine.values() for job in jobs)
    return list(mine), others
