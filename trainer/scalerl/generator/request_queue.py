"""Requests waiting for one of a generator's slots; common to all generators."""

from abc import ABC, abstractmethod
from collections import deque

from scalerl.generator.request import Request


class RequestQueue(ABC):
    """First-in, first-out queue of the requests that have not started, for a given number of slots."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.waiting: deque[Request] = deque()

    @property
    @abstractmethod
    def active(self) -> int:
        """Number of slots with an unfinished rollout."""

    @property
    def busy(self) -> bool:
        """True if a decode step has work to do."""
        return bool(self.active or self.waiting)

    @property
    def has_room(self) -> bool:
        """True if a slot is free and no request waits for it."""
        return self.active + len(self.waiting) < self.slots

    @property
    def first_waiting(self) -> int | None:
        """Lowest number of a group with no rollout started; requests of a group start in order."""
        return next((request.group for request in self.waiting if request.index == 0), None)

    def submit(self, requests: list[Request]) -> None:
        """Queue requests; they start in order as slots become free."""
        self.waiting.extend(requests)
