"""Consecutive equal failures, after which a sweep starts no more runs, since the same cause would fail the others too.

Three in a row are enough where runs queue for their machine (`EQUAL_FAILURES`), two everywhere while no run of the
sweep has trained at all (`FIRST_FAILURES`): then not even the reference has shown that a run can.
"""

from collections.abc import Sequence

from ablations.errors import AblationsError
from ablations.home.state import State
from ablations.text import cause

EQUAL_FAILURES, FIRST_FAILURES = 3, 2


class RunsHeld(AblationsError):
    """Runs failed with the same cause, so the waiting ones were not started."""

    exit_code = 1


def equal_failures(ends: Sequence[tuple[State, str]], number: int = EQUAL_FAILURES) -> str | None:
    """The last message if the last `number` runs to end all failed with the same cause; `ends` are in chronological
    order.

    >>> equal_failures([(State.FAILED, "step 3: no GPU"), (State.FAILED, "step 5: no GPU"), (State.FAILED, "no GPU")])
    >>> equal_failures([(State.FAILED, "no GPU")] * 3)
    'no GPU'
    """
    last = ends[-number:]
    causes = {cause(message) for _, message in last}
    if len(last) < number or len(causes) > 1 or any(state != State.FAILED for state, _ in last):
        return None
    return last[-1][1]


def held_because(message: str, number: int = EQUAL_FAILURES) -> str:
    """The reason for a hold, to show to the user."""
    return f"{number} runs in a row failed: {message}"
