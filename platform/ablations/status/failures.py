"""Groups failed runs by cause, so that an error shared by every run is shown once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ablations.files.tail import tail
from ablations.home.home import Home
from ablations.home.state import State
from ablations.status.rows import RunRow
from ablations.status.run_logs import job_logs, modified
from ablations.text import cause, cut_message

NUM_TRACE_LINES = 8
"""Number of lines shown from the end of a log: a short trace, or the end of a long one."""
MAX_CAUSE = 600
"""Maximum length of a cause; some libraries put a whole configuration into an exception."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Runs that ended for the same cause.

    Failure(state=State.FAILED, cause="RuntimeError: CUDA out of memory", runs=("81d2f0a95c3b",),
            names=("loo-loss-s0",), log=".../attempt-1.log", trace=("Traceback (most recent call last):", ...))
    """

    state: State
    cause: str
    """The message of the run whose log is shown; the messages of the other runs may differ in numbers and ids."""
    runs: tuple[str, ...]
    names: tuple[str, ...]
    log: str
    """The newest log of these runs; empty if none has printed anything."""
    trace: tuple[str, ...]
    """The last lines of the log."""


def group_failures(home: Home, rows: Iterable[RunRow]) -> list[Failure]:
    """The failed runs among `rows`, grouped by cause, the largest group first."""
    groups: dict[tuple[State, str], list[tuple[RunRow, str]]] = {}
    for row in rows:
        if row.state.state.is_failure:
            said = cut_message(_own_word(home, row) or row.state.message, MAX_CAUSE)
            groups.setdefault((row.state.state, cause(said)), []).append((row, said))
    found = [_failure(home, members) for members in groups.values()]
    return sorted(found, key=lambda failure: -len(failure.runs))


def _own_word(home: Home, row: RunRow) -> str:
    """A run's own message about its failure; the sweep's message may be longer, or about a later job."""
    own = home.run(row.id).read_status().message
    return own if row.state.state == State.FAILED and row.state.message.startswith(own) else ""


def _failure(home: Home, members: Sequence[tuple[RunRow, str]]) -> Failure:
    logs = [(home.run(row.id).log(row.state.attempt), row, said) for row, said in members]
    log, row, said = max(logs, key=lambda one: modified(one[0]))
    if not modified(log) or (row.state.state == State.FAILED and not _own_word(home, row)):
        log = next(reversed(job_logs(home, row.id)), log)
    has_log = modified(log) > 0
    return Failure(
        state=row.state.state,
        cause=said,
        runs=tuple(row.id for row, _ in members),
        names=tuple(row.name for row, _ in members),
        log=str(log) if has_log else "",
        trace=tuple(tail(log, NUM_TRACE_LINES)),
    )
