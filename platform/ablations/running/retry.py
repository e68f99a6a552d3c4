"""Runs submitted once more: with the resources they had, the present code, and from their checkpoints."""

from collections.abc import Iterable, Iterator

from ablations.errors import AblationsError
from ablations.home.cancellation import cancellation
from ablations.home.home import Home
from ablations.home.plan import Plan
from ablations.home.state import State
from ablations.running.reconcile import cancel_held
from ablations.slurm.pool import SlurmPool, forget_interrupted
from ablations.slurm.states import SlurmStates
from ablations.slurm.submissions import Submission
from ablations.status.rows import Row
from ablations.study.resources import Resources
from ablations.text import counted


def retry_runs(home: Home, plan: Plan, rows: list[Row], *, states: Iterable[State]) -> Iterator[str]:
    """Submit the rows in one of these states again, and those that were held because others failed; says what it did.

    Raises AblationsError when a row in such a state never was a job of Slurm's.
    """
    wanted = frozenset(states)
    for name in forget_interrupted(home, plan.sweep):
        yield f"{plan.sweep}: {name} was interrupted while it was submitted; its jobs, if any, are cancelled"
    slurm = SlurmStates(home)
    for row in rows:
        if row.state.state in wanted and slurm.submission(row.id) is None:
            raise AblationsError(
                f"{row.variant}, seed {row.seed}, was not trained by Slurm; `{plan.command or 'platform sweep FILE'}` "
                "trains again what is missing"
            )
    why, held = cancel_held(home, plan.sweep)
    chosen = [row for row in rows if row.state.state in wanted or row.id in held]
    submissions = {row.id: last for row in chosen if (last := slurm.submission(row.id))}
    if why:
        yield f"{plan.sweep}: {counted(len(held), 'held job')} cancelled ({why})"
    if not chosen:
        there = (
            ", ".join(sorted({row.state.state for row in rows if not row.state.state.is_finished}))
            or "none that is not done"
        )
        yield f"{plan.sweep}: no run is {' or '.join(sorted(wanted))}; there are: {there}"
    marker = cancellation(home, plan.sweep)
    marker.lift()
    for run_ids, first in _by_resources(submissions):
        pool = SlurmPool(
            home=home,
            sweep=plan.sweep,
            resources=Resources.model_validate(first.resources),
            threads=home.run(run_ids[0]).read_recipe()[0].threads,
            cancelled=marker,
        )
        for run_id in run_ids:
            pool.add(run_id, submissions[run_id].budget_gpu_hours)
        submitted = pool.submit()
        for submission in submitted:
            yield f"{plan.sweep}: job {submission.job} trains {counted(len(submission.runs), 'run')}"
        if left := len(run_ids) - sum(len(one.runs) for one in submitted):
            yield (
                f"{plan.sweep}: {counted(left, 'run')} left alone: the job still waits or runs, or all is trained; "
                "`platform cancel` ends a job that does nothing"
            )


def _by_resources(submissions: dict[str, Submission]) -> list[tuple[list[str], Submission]]:
    groups: dict[str, tuple[list[str], Submission]] = {}
    for run_id, submission in submissions.items():
        groups.setdefault(str(submission.resources), ([], submission))[0].append(run_id)
    return list(groups.values())
