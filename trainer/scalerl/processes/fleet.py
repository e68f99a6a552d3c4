"""The generator processes as the trainer's process sees them: started, talked to, watched and ended."""

import atexit
import pickle
import queue
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection

import torch
import torch.multiprocessing
from torch import Tensor

from scalerl.generator.generator import Generator
from scalerl.processes.generator_process import Outfit, generate
from scalerl.processes.messages import Answer, Order, from_bytes, to_bytes
from scalerl.weights.channel import WeightChannel

PROCESSES = torch.multiprocessing.get_context("spawn")
"""Not forked: torch's threads do not survive that. Not by a fork server: these are to be our own children."""
BURIAL_LIMIT_S = 5.0
"""A process whose connection has closed is gone within an instant; its exit code may come a little later."""


class GeneratorDied(RuntimeError):
    """A generator process ended on its own; the run can be resumed from its last checkpoint."""


class Fleet:
    """Generator processes and the connections to them.

    Each connection is read by a thread that only moves bytes, so that a generator is never held up because the
    trainer's process is in the middle of an optimiser step.
    """

    def __init__(self, generators: Sequence[Generator], channel: WeightChannel, threads: int) -> None:
        self.seconds: Tensor = torch.zeros(len(generators), 2, dtype=torch.float64).share_memory_()
        """How long each was busy and idle."""
        self._inbox: queue.SimpleQueue[tuple[int, bytes | None]] = queue.SimpleQueue()
        self._connections: list[Connection] = []
        self._processes = []
        atexit.register(self.close)
        for number, generator in enumerate(generators):
            ours, theirs = PROCESSES.Pipe()
            outfit = Outfit(
                connection=theirs,
                generator=pickle.dumps(generator),
                channel=channel,
                seconds=self.seconds[number],
                threads=threads,
            )
            process = PROCESSES.Process(target=generate, args=(outfit,), name=f"generator {number}")
            with no_signals():
                process.start()
            theirs.close()
            self._connections.append(ours)
            self._processes.append(process)
            threading.Thread(target=self._receive, args=(number, ours), daemon=True).start()

    def __len__(self) -> int:
        return len(self._processes)

    @property
    def process_ids(self) -> list[int]:
        """Of the processes, in order."""
        return [process.pid or 0 for process in self._processes]

    def send(self, number: int, order: Order) -> None:
        """Give generator `number` an order; GeneratorDied when it is gone."""
        try:
            self._connections[number].send_bytes(to_bytes(order))
        except ConnectionError:
            raise self._died(number) from None

    def send_all(self, order: Order) -> None:
        """Give every generator the same order."""
        for number in range(len(self)):
            self.send(number, order)

    def answers(self, *, wait: bool) -> Iterator[tuple[int, Answer]]:
        """All that has come, each with the number of its generator; `wait`: at least one.

        Raises GeneratorDied when a process has ended, after what it had still said.
        """
        while wait or not self._inbox.empty():
            number, content = self._inbox.get()
            if content is None:
                raise self._died(number)
            yield number, from_bytes(content)
            wait = False

    def close(self) -> None:
        """End the processes; there is nothing in them that a checkpoint has not."""
        atexit.unregister(self.close)
        for process in self._processes:
            process.kill()
        for process, connection in zip(self._processes, self._connections, strict=True):
            process.join()
            connection.close()

    def _receive(self, number: int, connection: Connection) -> None:
        try:
            while True:
                self._inbox.put((number, connection.recv_bytes()))
        except (EOFError, OSError):
            self._inbox.put((number, None))

    def _died(self, number: int) -> GeneratorDied:
        process = self._processes[number]
        process.join(BURIAL_LIMIT_S)
        code = process.exitcode
        how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}, see the log"
        return GeneratorDied(f"generator process {number} died ({how})")


@contextmanager
def no_signals() -> Iterator[None]:
    """Processes started inside never see Ctrl-C or SIGTERM: their trainer does, writes its checkpoint and ends them."""
    resource_tracker.ensure_running()  # the first start would do it, and leave the signals unblocked
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
