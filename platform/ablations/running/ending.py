"""Whether a sweep has anything left to do."""

from ablations.home.allocation import read_plan_allocation
from ablations.home.home import Home
from ablations.home.plan import Plan
from ablations.search.record import read_search
from ablations.status.rows import Row


def all_ended(home: Home, plan: Plan, rows: list[Row]) -> bool:
    """Whether nothing is left to do: every run has ended, and no round of a total or trial is still to come."""
    allocation, search = read_plan_allocation(home, plan), read_search(home, plan)
    is_decided = allocation is None or allocation.finished != ""
    is_searched = not plan.search or (search is not None and search.is_complete)
    return all(row.state.state.is_finished for row in rows) and is_decided and is_searched
