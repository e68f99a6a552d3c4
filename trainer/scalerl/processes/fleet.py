"""The processes of one role: start, send, notice a death or silence, restart, end.

One rule holds for generators and the evaluator. A process that owes an answer and sends nothing for too long is killed,
and one that sends not even a sign of life (`scalerl.processes.voice`) much sooner.
A dead process is restarted, MOST_RESTARTS times in an attempt of a run, if its node is reachable.
"""

import atexit
import queue
from collections.abc import Iterator, Sequence

from scalerl.cluster.placement import PlacedUnit
from scalerl.processes.launch import Launcher
from scalerl.processes.line import Death, UnitLine
from scalerl.processes.messages import Order, ProcessReply
from scalerl.processes.running_clock import running_s

START_LIMIT_S = 900.0
"""Time limit for a process to start: an engine may load and compile a large model."""
SILENCE_LIMIT_S = 300.0
"""Time limit for a process that owes an answer to send any message; at work it sends one every few seconds."""
LIFELESS_LIMIT_S = 60.0
"""Time limit for a process that owes an answer to send a sign of life, which needs no progress of its work."""
MISSING_S = 5.0
"""Time without a sign of life after which a process counts as missing."""
MOST_RESTARTS = 3
"""Maximum number of restarts of one process in one attempt of a run."""


class Fleet:
    """A line to each process."""

    def __init__(self, launcher: Launcher, units: Sequence[PlacedUnit], works: Sequence[bytes]) -> None:
        """Start the units, numbered from 0; each executes its own of the `works`."""
        self._launcher, self._units, self._works = launcher, tuple(units), tuple(works)
        self._inbox: queue.SimpleQueue[UnitLine] = queue.SimpleQueue()
        self.deaths = [0 for _ in units]
        """Deaths of each process in this attempt, including those of its predecessors."""
        self._owes_since: list[float | None] = [None for _ in units]
        """Time since which a process is known to owe an answer, by the monotonic clock; None if it may be silent."""
        self._lines: list[UnitLine] = []
        atexit.register(self.close)
        for number, unit in enumerate(self._units):
            assert unit.index == number, f"unit {number} is {unit.name}"
            self._lines.append(self._start(number))

    def __len__(self) -> int:
        return len(self._lines)

    def node_name(self, number: int) -> str:
        """Name of the node of process `number`, for messages."""
        return self._launcher.node_name(self._units[number].node)

    @property
    def process_ids(self) -> list[int]:
        """Process ids in order; a process that is not restarted keeps its last."""
        return [line.body.process_id for line in self._lines]

    def line(self, number: int) -> UnitLine:
        """Line to the current process `number`; useless once that process has been restarted."""
        return self._lines[number]

    def send(self, number: int, order: Order) -> None:
        """Send process `number` an order; a dead one does not receive it, and `answers` reports its death."""
        self._lines[number].send(order)

    def answers(self, *, wait_s: float = 0.0) -> Iterator[tuple[int, ProcessReply | Death]]:
        """Yield all answers, each with the number of its process; waits for the first."""
        while True:
            try:
                line = self._inbox.get(timeout=wait_s) if wait_s else self._inbox.get_nowait()
            except queue.Empty:
                return
            wait_s = 0.0
            said = line.hear()
            if line is self._lines[line.unit.index]:  # else from a process that has been replaced
                yield line.unit.index, said

    def kill_if_silent(self, number: int, owed: str, limit_s: float) -> None:
        """Kill process `number` if it has been silent too long; `answers` then reports its death.

        `owed` is the work whose answer it owes; empty if it may be silent.
        """
        now, line = running_s(), self._lines[number]
        if not owed:
            self._owes_since[number] = None
            return
        since = self._owes_since[number] or now
        silent, lifeless = now - max(since, line.said), now - max(since, line.heard)
        if silent > limit_s or (line.has_begun and lifeless > LIFELESS_LIMIT_S):
            line.kill(f"was killed: silent for {silent:.0f} s while {owed}")
            since = now
        self._owes_since[number] = since

    def missing_s(self, number: int) -> float:
        """Seconds since a process that is dead, not started yet or silent was last alive; else 0."""
        line, now = self._lines[number], running_s()
        silent = now - line.heard
        return 0.0 if line.has_begun and silent <= MISSING_S else max(silent, 1e-9)

    def restart(self, number: int) -> tuple[bool, str]:
        """Replace the dead process `number`, if the rule allows it, with one that starts from the first weights.
        Returns whether it did, and a sentence about it.
        """
        self.deaths[number] += 1
        if self.deaths[number] > MOST_RESTARTS:
            return False, f"Not restarting: all {MOST_RESTARTS} restarts are used"
        if not self._launcher.reaches(self._units[number].node):
            return False, "Not restarting: its node is gone"
        self._lines[number].kill()
        self._lines[number].close()
        self._lines[number] = self._start(number)
        self._owes_since[number] = None
        return True, f"Restarting (attempt {self.deaths[number]} of {MOST_RESTARTS})"

    def close(self) -> None:
        """End the processes; everything needed later is in the checkpoint."""
        atexit.unregister(self.close)
        for line in self._lines:
            line.kill()
        for line in self._lines:
            line.close()

    def _start(self, number: int) -> UnitLine:
        unit = self._units[number]
        return UnitLine(unit, self._launcher.start(unit, self._works[number]), self._inbox)
