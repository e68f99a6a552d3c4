"""Requests that wait for one of a generator's slots: the part that generators have in common, whatever decodes."""

from abc import ABC, abstractmethod
from collections import deque

from scalerl.generator.request import Request


class RequestQueue(ABC):
    """The requests of a generator with so many slots that have not begun; they begin in order."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.waiting: deque[Request] = deque()

    @property
    @abstractmethod
    def active(self) -> int:
        """Slots that hold an unfinished rollout."""

    @property
    def busy(self) -> bool:
        """Whether a decode step has anything to do."""
        return bool(self.active or self.waiting)

    @property
    def has_room(self) -> bool:
        """Whether a slot is free that no request waits for."""
        return self.active + len(self.waiting) < self.slots

    @property
    def first_waiting(self) -> int | None:
        """The lowest number of a group none of whose rollouts has begun: requests of a group start in order."""
        return next((request.group for request in self.waiting if request.index == 0), None)

    def submit(self, requests: list[Request]) -> None:
        """Queue requests; they start in order as slots become free."""
        self.waiting.extend(requests)
