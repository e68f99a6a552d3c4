"""Trains a sweep's runs as Slurm jobs, and resubmits some, after clearing interrupted submissions and held jobs.

submitit loads slowly, so the pool is imported only when it is created.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from rich.console import Console

from ablations.errors import AblationsError
from ablations.home.start_command import start_command
from ablations.home.started_sweep import StartedSweep
from ablations.home.state import State
from ablations.running.ending import all_ended
from ablations.running.executor import Executor
from ablations.running.reconcile import cancel_held, num_missing, prune
from ablations.slurm.states import SlurmStates
from ablations.status.live_table import say
from ablations.status.progress import run_rows
from ablations.status.rows import RunRow
from ablations.status.table import summary
from ablations.study.expand import Study
from ablations.study.resources import Resources
from ablations.text import counted
from ablations.tracking.beside_a_sweep import Tracker

if TYPE_CHECKING:
    from ablations.slurm.pool import SlurmPool


@dataclass(frozen=True, kw_only=True)
class OnSlurm(Executor):
    """Slurm jobs, one per run, which keep training when the command ends."""

    resources: Resources
    threads: int
    jobs: int
    hold: bool = False
    after: str | None = None
    prune: bool = False
    """Cancel the jobs of runs that left the sweep file."""
    agree: Callable[[int], None]
    """Called with the number of jobs before anything is written; raises if the user declines."""

    outlives_command: ClassVar[bool] = True
    interrupted: ClassVar[str] = (
        "Detached. Jobs keep training; to resume the sweep's decisions, run the same command again."
    )

    def ask(self, sweep: StartedSweep, num_to_come: int = 0) -> None:
        if num_jobs := num_missing(sweep) + num_to_come:
            self.agree(num_jobs)

    def pool(self, sweep: StartedSweep, console: Console) -> "SlurmPool":
        """The pool that submits the sweep's runs, after interrupted submissions and held jobs are cleared."""
        from ablations.slurm.interrupted_submissions import forget_interrupted
        from ablations.slurm.pool import SlurmPool

        for said in forget_interrupted(sweep.home, sweep.name):
            console.print(said)
        why, held = cancel_held(sweep)
        if held:
            console.print(f"{sweep.name}: cancelled {counted(len(held), 'held job')} to submit new ones ({why})")
        if self.prune and (pruned := prune(sweep)):
            console.print(f"{sweep.name}: cancelled {counted(len(pruned), 'job')} of runs that left the sweep file")
        return SlurmPool(
            home=sweep.home,
            sweep=sweep.name,
            resources=self.resources,
            threads=self.threads,
            cancelled=sweep.cancellation,
            hold=self.hold,
            after=self.after,
        )

    def train(self, study: Study, sweep: StartedSweep, tracker: Tracker, console: Console) -> None:
        """Submit every run that is neither done nor queued; keep running only if the sweep has decisions to make."""
        if sweep.plan.stop is not None:
            super().train(study, sweep, tracker, console)
            return
        pool = self.pool(sweep, console)
        for run in sweep.plan.runs:
            pool.add(run.id, sweep.plan.budget_gpu_hours)
        for submission in pool.submit():
            say(console, f"{sweep.name}: job {submission.job} trains {counted(len(submission.runs), 'run')}")
        rows = run_rows(sweep)
        say(console, f"{sweep.name}: {summary(sweep.plan, rows)}")
        if all_ended(sweep, rows):
            tracker.begin_last()


def retry_runs(sweep: StartedSweep, rows: list[RunRow], *, states: Iterable[State]) -> Iterator[str]:
    """Resubmit the rows in one of these states and the runs held because others failed; yields messages.

    Each run has its previous resources and the current code, and resumes from its checkpoint. Raises AblationsError if
    a run in such a state was never a Slurm job.
    """
    from ablations.slurm.interrupted_submissions import forget_interrupted
    from ablations.slurm.pool import SlurmPool

    wanted = frozenset(states)
    yield from forget_interrupted(sweep.home, sweep.name)
    slurm = SlurmStates(sweep.home)
    for row in rows:
        if row.state.state in wanted and slurm.submission(row.id) is None:
            raise AblationsError(
                f"{row.name} was not trained by Slurm; to train what is missing, run `{start_command(sweep)}`"
            )
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
    groups: dict[str, list[str]] = {}
    for run_id, last in submissions.items():
        groups.setdefault(str(last.resources), []).append(run_id)
    for run_ids in groups.values():
        pool = SlurmPool(
            home=sweep.home,
            sweep=sweep.name,
            resources=Resources.model_validate(submissions[run_ids[0]].resources),
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
