"""A problem that a rule finds in the log of a run, and the bounds that rules share."""

from collections.abc import Callable
from dataclasses import dataclass

from ablations.diagnosis.history import StepWindow

NO_SIGNAL = 0.75
"""Share of groups with equal rewards above which there is too little signal."""
TOO_HARD, TOO_EASY = 0.1, 0.9
"""Pass rates below which groups with equal rewards are mostly all wrong, and above which they are mostly all right."""
NO_CHANGE = 0.02
"""Largest change of the score that counts as none."""


@dataclass(frozen=True, kw_only=True)
class Symptom:
    """A problem in a window: `Symptom(text="entropy rose from 0.4 to 1.9 nats", change="lower entropy_bonus")`."""

    text: str
    """A clause without a full stop."""
    change: str
    """The settings to change, as a request."""
    since: int | None = None
    """Step since which the problem holds, if a rule about a whole run knows it."""


TrainingRule = Callable[[StepWindow], Symptom | None]
