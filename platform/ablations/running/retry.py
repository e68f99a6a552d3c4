"""Resubmits runs with their previous resources and the current code; each resumes from its checkpoint."""

from collections import Counter
from collections.abc import Iterable, Iterator

from ablations.errors import AblationsError
from ablations.home.started_sweep import StartedSweep
from ablations.home.state import State
from ablations.running.reconcile import cancel_held
from ablations.slurm.pool import SlurmPool, forget_interrupted
from ablations.slurm.states import SlurmStates
from ablations.slurm.submissions import Submission
from ablations.status.rows import RunRow
from ablations.study.resources import Resources
from ablations.text import counted


def retry_runs(sweep: StartedSweep, rows: list[RunRow], *, states: Iterable[State]) -> Iterator[str]:
    """Resubmit the rows in one of these states and the runs held because others failed; yields messages.

    Raises AblationsError if a run in such a state was never a Slurm job.
    """
    wanted = frozenset(states)
    for name in forget_interrupted(sweep.home, sweep.name):
        yield f"{sweep.name}: submission {name} was interrupted; cancelled any job it had started"
    slurm = SlurmStates(sweep.home)
    for row in rows:
        if row.state.state in wanted and slurm.submission(row.id) is None:
            command = sweep.plan.command or "platform sweep FILE"
            raise AblationsError(f"{row.name} was not trained by Slurm; to train what is missing, run `{command}`")
    why, held = cancel_held(sweep)
    chosen = [row for row in rows if row.state.state in wanted or row.id in held]
    submissions = {row.id: last for row in chosen if (last := slurm.submission(row.id))}
    if why:
        yield f"{sweep.name}: cancelled {counted(len(held), 'held job')} ({why})"
    if not chosen:
        states = Counter(row.state.state for row in rows if not row.state.state.is_finished)
        others = ", ".join(f"{number} {state}" for state, number in sorted(states.items()))
        others = f"of {counted(len(rows), 'run')}, {others}" if others else f"all {counted(len(rows), 'run')} are done"
        yield f"{sweep.name}: nothing to retry; {others}"
    sweep.cancellation.lift()
    for run_ids, first in _by_resources(submissions):
        pool = SlurmPool(
            home=sweep.home,
            sweep=sweep.name,
            resources=Resources.model_validate(first.resources),
            threads=sweep.run(run_ids[0]).read_recipe()[0].threads,
            cancelled=sweep.cancellation,
        )
        for run_id in run_ids:
            pool.add(run_id, submissions[run_id].budget_gpu_hours)
        submitted = pool.submit()
        for submission in submitted:
            yield f"{sweep.name}: job {submission.job} trains {counted(len(submission.runs), 'run')}"
        if left := len(run_ids) - sum(len(one.runs) for one in submitted):
            yield (
                f"{sweep.name}: {counted(left, 'run')} not submitted, because the job is still queued or running, or "
                "the run is done; to end a job that hangs, run `platform cancel`"
            )


def _by_resources(submissions: dict[str, Submission]) -> list[tuple[list[str], Submission]]:
    groups: dict[str, tuple[list[str], Submission]] = {}
    for run_id, submission in submissions.items():
        groups.setdefault(str(submission.resources), ([], submission))[0].append(run_id)
    return list(groups.values())
