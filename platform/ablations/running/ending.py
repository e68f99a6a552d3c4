"""Checks whether a sweep has anything left to do."""

from ablations.errors import AblationsError
from ablations.home.started_sweep import StartedSweep
from ablations.search.record import read_search
from ablations.status.progress import is_still_going, run_rows
from ablations.status.rows import RunRow


def all_ended(sweep: StartedSweep, rows: list[RunRow]) -> bool:
    """True if every run has ended and no trial of a search is pending."""
    search = read_search(sweep)
    is_searched = not sweep.plan.search or (search is not None and search.is_complete)
    return all(row.state.state.is_finished for row in rows) and is_searched


def refuse_while_going(sweep: StartedSweep) -> None:
    """Raise AblationsError while a run of the sweep trains or waits for its turn."""
    if is_still_going(sweep, run_rows(sweep)):
        raise AblationsError(
            f"sweep '{sweep.name}' is still training or queued; run `platform cancel {sweep.name}` first"
        )
