"""Checks whether a sweep has anything left to do."""

from ablations.errors import AblationsError
from ablations.home.started_sweep import StartedSweep
from ablations.status.progress import is_still_going, run_rows
from ablations.status.rows import RunRow


def all_ended(sweep: StartedSweep, rows: list[RunRow]) -> bool:
    """True if every run has ended and no trial of a search is pending."""
    return all(row.state.state.is_finished for row in rows) and not (sweep.plan.search and _has_trials_to_come(sweep))


def _has_trials_to_come(sweep: StartedSweep) -> bool:
    from ablations.search.record import read_search  # loads the recipes, which no other sweep needs here

    search = read_search(sweep)
    return search is None or not search.is_complete


def refuse_while_going(sweep: StartedSweep) -> None:
    """Raise AblationsError while a run of the sweep trains or waits for its turn."""
    if is_still_going(sweep, run_rows(sweep)):
        raise AblationsError(
            f"sweep '{sweep.name}' is still training or queued; run "
            f"`platform cancel {sweep.name}{sweep.home.end_of_command}` first"
        )
