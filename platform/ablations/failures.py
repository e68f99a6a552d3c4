"""Failed runs grouped by cause: when every run dies of one error, its user reads it once."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ablations.home import Home
from ablations.rows import Row
from ablations.run_logs import job_logs, tail
from ablations.state import State

FAILED: frozenset[State] = frozenset({"failed", "lost", "timed out", "out of memory", "node failed"})
"""States of a run that has ended without being done or asked to end."""
NUM_LINES = 8
"""Of a log's end: a short trace, or the end of a long one."""
MAX_CAUSE = 400
"""Characters of a cause; some libraries put a whole configuration into an exception."""
DIFFERING = re.compile(
    r"0x[0-9a-f]+|tmp[\w]{8}\b|\b(?=[a-z]*\d)[0-9a-f]{7,}\b|\d+(?:\.\d+)?(?:e[+-]?\d+)?", re.IGNORECASE
)
"""What the same error says differently of each run: addresses, temporary names, run ids and hashes, numbers."""


@dataclass(frozen=True, kw_only=True)
class Failure:
    """Runs that ended for the same cause.

    Failure(state="failed", cause="RuntimeError: CUDA out of memory", runs=("81d2f0a95c3b",),
            names=("loo-loss, seed 0",), log=".../attempt-1.log", trace=("Traceback (most recent call last):", ...))
    """

    state: State
    cause: str
    """As the run says it whose log is shown; other numbers and ids in others."""
    runs: tuple[str, ...]
    names: tuple[str, ...]
    log: str
    """The newest log of one of the runs; empty where none has printed anything."""
    trace: tuple[str, ...]
    """Its last lines."""


def cause(message: str) -> str:
    """What two runs that failed alike have in common: `"step # of run #"` of `"step 12 of run 81d2f0a95c3b"`."""
    return DIFFERING.sub("#", message)


def group_failures(home: Home, rows: Iterable[Row]) -> list[Failure]:
    """The failed runs among `rows`, those with the most runs first."""
    groups: dict[tuple[State, str], list[tuple[Row, str]]] = {}
    for row in rows:
        if row.state.state in FAILED:
            said = _said(home, row)
            groups.setdefault((row.state.state, cause(said)), []).append((row, said))
    found = [_failure(home, members) for members in groups.values()]
    return sorted(found, key=lambda failure: -len(failure.runs))


def _said(home: Home, row: Row) -> str:
    """Why a run failed, on one line. Its own file has that alone; the sweep adds what it decided of the run."""
    own = home.run(row.id).read_status().get("message") if row.state.state == "failed" else ""
    text = " ".join((own or row.state.message).split())
    return text if len(text) <= MAX_CAUSE else f"{text[:MAX_CAUSE]} ..."


def _failure(home: Home, members: Sequence[tuple[Row, str]]) -> Failure:
    logs = [(home.run(row.id).log(row.state.attempt), said) for row, said in members]
    log, said = max(logs, key=lambda one: _written(one[0]))
    if not _written(log):
        first, said = members[0]
        log = next(reversed(job_logs(home, first.id)), None)
    return Failure(
        state=members[0][0].state.state,
        cause=said,
        runs=tuple(row.id for row, _ in members),
        names=tuple(row.name for row, _ in members),
        log="" if log is None else str(log),
        trace=() if log is None else tuple(tail(log, NUM_LINES)),
    )


def _written(log: Path) -> float:
    """When a log was last written to; 0 when there is none."""
    try:
        return log.stat().st_mtime
    except OSError:
        return 0.0
