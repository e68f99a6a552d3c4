"""Estimates when a run and a whole sweep will end, from the compute spent and the time taken. Pure functions.

The estimate assumes that a training run keeps its recent speed, and that a run without a speed has the mean speed of
the others; for ended runs, all attempts and the warm start count. The number of runs training at a time stays the same,
and a waiting run takes the first free place. Failed, cancelled and stopped runs stay as they are. Slurm may start more
or fewer runs.
"""

import heapq
from collections.abc import Sequence
from datetime import datetime, timedelta

from ablations.home.state import RunState, State
from ablations.text import MINUTE_S, duration_text

HANDOVER_S = 30.0
"""Maximum number of seconds until another run takes the place of an ended run."""


def seconds_left(state: RunState, budget_gpu_hours: float) -> float | None:
    """Seconds until a run reaches its budget; None if the run is not training or its speed is unknown."""
    pace = _pace(state) if state.state == State.RUNNING else None
    return None if pace is None else _compute_left(state, budget_gpu_hours) * pace


def sweep_seconds_left(states: Sequence[RunState], budget_gpu_hours: float, now: float | None = None) -> float | None:
    """Seconds until the last run has ended; None if no run is training or no run has a speed yet.

    The place of a run that ended within HANDOVER_S seconds before `now`, in seconds since 1970, is free for the next.
    """
    mean = seconds_for(1.0, states)
    training = [state for state in states if state.state == State.RUNNING]
    if mean is None or not training:
        return None
    places = [_compute_left(state, budget_gpu_hours) * (_pace(state) or mean) for state in training]
    if now is not None:
        places += [0.0 for state in states if state.state.is_finished and abs(now - state.heartbeat) < HANDOVER_S]
    heapq.heapify(places)
    for state in states:
        if state.state.waits:
            own = _compute_left(state, budget_gpu_hours) * (_pace(state) or mean)
            heapq.heapreplace(places, places[0] + own)
    return max(places)


def seconds_for(compute_gpu_hours: float, states: Sequence[RunState]) -> float | None:
    """Seconds for this much compute at the mean speed of these runs, one after another; None without a speed."""
    paces = [pace for state in states if (pace := _pace(state)) is not None]
    return compute_gpu_hours * sum(paces) / len(paces) if paces else None


def _pace(state: RunState) -> float | None:
    """Wall-clock seconds per GPU-hour."""
    if state.pace_s is not None:
        return state.pace_s
    return state.wall_s / state.compute_gpu_hours if state.wall_s > 0 and state.compute_gpu_hours > 0 else None


def _compute_left(state: RunState, budget_gpu_hours: float) -> float:
    return max(0.0, budget_gpu_hours - state.compute_gpu_hours)


def time_left_text(seconds: float) -> str:
    """An estimate as text: `< 1 min`, `12 min`, `3.5 h`, `14 h`, `3.1 days`."""
    return "< 1 min" if seconds < MINUTE_S else duration_text(seconds, digits=2)


def end_text(seconds: float, now: datetime) -> str:
    """The time left and the end: `about 40 min left, until 15:20`; with the date unless it is today."""
    end = now + timedelta(seconds=seconds)
    day = "" if end.date() == now.date() else f"{end.day} {end:%b} "
    about = "less than 1 min" if seconds < MINUTE_S else f"about {time_left_text(seconds)}"
    return f"{about} left, until {day}{end:%H:%M}"
