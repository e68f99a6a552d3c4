"""The lines to the generator processes: start, send, restart, end."""

import atexit
import queue
from collections.abc import Iterator, Sequence

from scalerl.cluster.placement import PlacedUnit
from scalerl.processes.launch import Launcher
from scalerl.processes.line import Death, UnitLine
from scalerl.processes.messages import Order, Reply


class Fleet:
    """A line to each generator process."""

    def __init__(self, launcher: Launcher, units: Sequence[PlacedUnit], work: bytes) -> None:
        """Start the units, generators numbered from 0; each executes `work`."""
        self._launcher, self._units, self._work = launcher, tuple(units), work
        self._inbox: queue.SimpleQueue[UnitLine] = queue.SimpleQueue()
        self._lines: list[UnitLine] = []
        atexit.register(self.close)
        for number, unit in enumerate(self._units):
            assert unit.index == number, f"unit {number} is {unit.name}"
            self._lines.append(self._start(number))

    def __len__(self) -> int:
        return len(self._lines)

    def node_name(self, number: int) -> str:
        """Name of the node of generator `number`, for people."""
        return self._launcher.node_name(self._units[number])

    @property
    def process_ids(self) -> list[int]:
        """Process ids in order; a generator that is not restarted keeps its last."""
        return [line.body.process_id for line in self._lines]

    def heard(self, number: int) -> float:
        """Time of generator `number`'s last message, by the monotonic clock."""
        return self._lines[number].heard

    def send(self, number: int, order: Order) -> None:
        """Send generator `number` an order; a dead generator does not receive it, and `answers` reports its death."""
        self._lines[number].send(order)

    def answers(self, *, wait_s: float = 0.0) -> Iterator[tuple[int, Reply | Death]]:
        """Yield all answers, each with the number of its generator; waits for the first."""
        while True:
            try:
                line = self._inbox.get(timeout=wait_s) if wait_s else self._inbox.get_nowait()
            except queue.Empty:
                return
            wait_s = 0.0
            said = line.hear()
            if line is self._lines[line.unit.index]:  # else from a process that has been replaced
                yield line.unit.index, said

    def kill(self, number: int, why: str) -> None:
        """Kill generator `number`; `answers` then reports its death, with the reason `why`."""
        self._lines[number].kill(why)

    def can_start_again(self, number: int) -> bool:
        """True if the node of generator `number` is reachable."""
        return self._launcher.reaches(self._units[number])

    def start_again(self, number: int) -> None:
        """Replace the dead generator `number` by a new process, which begins with the first weights."""
        old = self._lines[number]
        old.kill()
        old.close()
        self._lines[number] = self._start(number)

    def close(self) -> None:
        """End the processes; everything needed later is in the checkpoint."""
        atexit.unregister(self.close)
        for line in self._lines:
            line.kill()
        for line in self._lines:
            line.close()
        self._launcher.close()

    def _start(self, number: int) -> UnitLine:
        unit = self._units[number]
        return UnitLine(unit, self._launcher.start(unit, self._work), self._inbox)
