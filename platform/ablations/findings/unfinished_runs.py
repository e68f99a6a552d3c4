"""The runs of a comparison that have not reached the budget, and the command that trains each of them on.

>>> to_continue(results)
['Wait: 1 of 9 runs still trains.', '`platform sweep loo.yaml` continues loo-loss-s2, which failed.']
"""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from ablations.findings.remarks import has_failed
from ablations.findings.results import Results
from ablations.home.plan import Plan
from ablations.home.start_command import start_command
from ablations.home.started_sweep import StartedSweep, read_sweep
from ablations.home.state import State
from ablations.readings.fitted_run import FittedRun
from ablations.text import counted

MOST_NAMED_RUNS = 2
"""Limit on the runs that a sentence names; beyond it they are only counted."""
MAY_HAVE_A_JOB = (None, State.PENDING, State.PREEMPTED)
"""States, by the files of a run, of which only Slurm knows whether a job waits for its turn."""


def is_unfinished(results: Results) -> bool:
    """True if runs will go on, so it is too early to say what would decide an open question."""
    return not results.plan.imported and any(_is_left(results, run) and not has_failed(run) for run in results.runs)


def to_continue(results: Results) -> list[str]:
    """Sentences on the runs that have not reached the budget, with the command that trains each of them on."""
    if results.plan.imported:
        return []
    left = [run for run in results.runs if _is_left(results, run)]
    active = [run for run in left if run.state is not None and run.state.is_active]
    due: list[FittedRun] = []
    said: list[str] = []
    sweeps = {one.name: one for run in left for one in [sweep_that_trains(results, run.variant)]}
    for name, sweep in sweeps.items():
        own = [run for run in left if run not in active and sweep_that_trains(results, run.variant).name == name]
        is_at_work = sweep.is_at_work  # a second command would be refused
        if is_at_work:
            due += [run for run in own if not has_failed(run)]
        elif _is_on_slurm(sweep.plan) and (waiting := [run for run in own if run.state in MAY_HAVE_A_JOB]):
            said.append(
                f"`platform status {name}{sweep.home.end_of_command}` shows the Slurm jobs of {_runs_said(waiting)}."
            )
            own = [run for run in own if run not in waiting]
        if own := [run for run in own if run not in due]:
            what = f"{_runs_said(own)} up to the budget"
            what = f"continues {_runs_said(own)}, which failed" if all(map(has_failed, own)) else f"trains {what}"
            after = f"Once the `platform sweep` at work on {name} has ended, " if is_at_work else ""
            said.append(f"{after}`{start_command(sweep)}` {what}.")
    of = f"of {counted(len(results.runs), 'run')}"
    waits = [f"{len(active)} {of} still {'trains' if len(active) == 1 else 'train'}"] if active else []
    waits += [f"{len(due)} {of} {'is' if len(due) == 1 else 'are'} due"] if due else []
    return [*([f"Wait: {' and '.join(waits)}."] if waits else []), *said]


def _runs_said(runs: Sequence[FittedRun]) -> str:
    return " and ".join(run.name for run in runs) if len(runs) <= MOST_NAMED_RUNS else f"{len(runs)} runs"


def _is_on_slurm(plan: Plan) -> bool:
    """True if the sweep was last started with `--executor slurm`."""
    words = shlex.split(plan.command)
    return "--executor=slurm" in words or ("--executor", "slurm") in pairwise(words)


def _is_left(results: Results, run: FittedRun) -> bool:
    """True if the run has not reached the budget, and neither a rule nor its curriculum has ended it."""
    return run.cost_gpu_hours < results.plan.budget_gpu_hours and run.state != State.STOPPED


def sweep_that_trains(results: Results, variant: str) -> StartedSweep:
    """The sweep that trains a variant, with its own variants only."""
    of_others = [name for name in results.beside if variant.endswith(f" ({name})")]
    if of_others:
        return read_sweep(results.sweep.home, of_others[0])
    suffixes = tuple(f" ({name})" for name in results.beside)
    own = tuple(one for one in results.plan.variants if not one.name.endswith(suffixes))
    return replace(results.sweep, plan=replace(results.plan, variants=own), beside=())
