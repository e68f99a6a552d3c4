"""Checks whether a sweep has anything left to do."""

from ablations.home.started_sweep import StartedSweep
from ablations.search.record import read_search
from ablations.status.rows import RunRow


def all_ended(sweep: StartedSweep, rows: list[RunRow]) -> bool:
    """True if every run has ended and no trial of a search is pending."""
    search = read_search(sweep)
    is_searched = not sweep.plan.search or (search is not None and search.is_complete)
    return all(row.state.state.is_finished for row in rows) and is_searched
