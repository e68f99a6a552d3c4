"""Trains a sweep's missing runs while this command watches, steers and updates MLflow."""

from contextlib import closing

from rich.console import Console

from ablations.home.started_sweep import StartedSweep
from ablations.pools.pool import Ended, Pool
from ablations.status.live import LiveStatus, say
from ablations.status.notifier import Notifier
from ablations.status.progress import run_rows
from ablations.status.table import status_table, summary
from ablations.study.expand import Study
from ablations.text import counted
from ablations.tracking.beside_a_sweep import Tracker


def train_missing(study: Study, sweep: StartedSweep, pool: Pool, tracking_uri: str | None, console: Console) -> None:
    """Train the runs that have not reached the budget, and keep MLflow up to date."""
    from ablations.steering.steering import Steering  # loads SciPy, which --dry-run does without

    names = {run.id: run.variant for run in study.runs}
    steering = Steering(study, sweep)
    missing = steering.begin()
    for run_id in steering.stopped:  # stopped by a killed sweep, whose jobs live on
        pool.stop(run_id)
    tracker, notifier = Tracker(sweep, tracking_uri), Notifier(console)
    if missing:
        say(console, f"{sweep.name}: {len(missing)} of {counted(len(names), 'run')} to train{pool.where}")
        for run_id in missing:
            pool.add(run_id, sweep.plan.budget_gpu_hours)
        with LiveStatus(sweep, console) as progress, closing(pool.work()) as events:
            for event in events:
                if isinstance(event, Ended):
                    say(console, f"{names[event.run]}: {event.why}")
                for said in steering.steer(pool):
                    say(console, said)
                rows = progress.update()
                notifier.look(sweep, rows, now=isinstance(event, Ended))
                tracker.look(row.state for row in rows)
        rows = run_rows(sweep)
        notifier.look(sweep, rows, now=True)
        say(console, f"{sweep.name}: {summary(sweep.plan, rows)}")
    if sweep.plan.stop is not None:  # the stopped runs with the reasons
        console.print(status_table(sweep.plan, run_rows(sweep)))
    tracker.finish(console)
