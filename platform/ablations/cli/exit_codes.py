"""The exit codes of the commands: 0 for done or submitted to Slurm, and those below."""

from ablations.home.started_sweep import StartedSweep
from ablations.home.state import State
from ablations.running.ending import all_ended
from ablations.status.progress import run_rows
from ablations.status.rows import RunRow

FAILED, WRONG_INPUT, NOT_FINISHED = 1, 2, 3
"""1: a run failed, or a check found an error. 2: input, files or machine do not fit. 3: runs are left, or Ctrl-C."""

KEEP, DISCARD, RUN_AGAIN, SAME_AS_BEFORE = 0, 10, 11, 12
"""The answers of `platform keep`."""


def unfinished_code(
    sweep: StartedSweep, rows: list[RunRow] | None = None, *, also_failed: tuple[State, ...] = ()
) -> int:
    """Exit code: 0 if every run is done or was stopped by a rule, 1 if one failed, 3 if runs are not finished."""
    rows = run_rows(sweep) if rows is None else rows
    if all_ended(sweep, rows):
        return 0
    has_failed = any(row.state.state.is_failure or row.state.state in also_failed for row in rows)
    return FAILED if has_failed else NOT_FINISHED
