"""The exit code of a sweep that has ended, or not."""

from ablations.cli.exit_codes import FAILED, NOT_FINISHED
from ablations.home.started_sweep import StartedSweep
from ablations.home.state import State
from ablations.running.ending import all_ended
from ablations.status.progress import run_rows
from ablations.status.rows import RunRow


def unfinished_code(
    sweep: StartedSweep, rows: list[RunRow] | None = None, *, also_failed: tuple[State, ...] = ()
) -> int:
    """Exit code: 0 if every run is done or was stopped by a rule, 1 if one failed, 3 if runs are not finished."""
    rows = run_rows(sweep) if rows is None else rows
    if all_ended(sweep, rows):
        return 0
    has_failed = any(row.state.state.is_failure or row.state.state in also_failed for row in rows)
    return FAILED if has_failed else NOT_FINISHED
