"""Equal failures in a row, after which a sweep starts no more of its runs: what failed them would fail the others."""

from collections.abc import Sequence

from ablations.home.state import State
from ablations.text import cause

EQUAL_FAILURES = 3


def equal_failures(ends: Sequence[tuple[State, str]]) -> str | None:
    """The last message if the last three runs to end all failed with the same cause; `ends` are in order of time.

    >>> equal_failures([(State.FAILED, "step 3: no GPU"), (State.FAILED, "step 5: no GPU"), (State.FAILED, "no GPU")])
    >>> equal_failures([(State.FAILED, "no GPU")] * 3)
    'no GPU'
    """
    last = ends[-EQUAL_FAILURES:]
    causes = {cause(message) for _, message in last}
    if len(last) < EQUAL_FAILURES or len(causes) > 1 or any(state != State.FAILED for state, _ in last):
        return None
    return last[-1][1]


def held_because(message: str) -> str:
    """The reason of a hold, for people."""
    return f"{EQUAL_FAILURES} runs in a row failed: {message}"
