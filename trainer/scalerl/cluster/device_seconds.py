"""Where the hours go: device-seconds by role and activity, on either clock.

    generator   decode             sequences are decoded, their prompts prefilled
                wait_prompts       no prompt may be admitted, or the fullest generator takes longer
                wait_weights       all that was asked for is generated, and the next weights are not there
                sync               weights are sent or taken, and nothing else is done
                unplayed           on the virtual clock, decode steps during the last optimiser step, played later
    trainer     forward_backward   an optimiser step
                wait_rollouts      no batch is full
                sync               weights are sent, and nothing else is done
                wait_evaluator     as many evaluations as may be kept are not measured yet, and the next is due
                coordinate         on the wall clock, prompts, verifiers, the publication of weights and the run log
    evaluator   evaluate           answers to the measured prompts are decoded and judged
                sync               the weights to be measured are fetched
                wait_weights       no evaluation is due
    all         dead               from a process's death to the first word of its successor

Every second of every device is booked on one activity, so those of a role add up to its devices times the time that
has passed. What costs no compute, checkpoints and evaluations without an evaluator, stops the clock and is not in here.
The evaluator's seconds are no compute either: `scalerl.recipe.Wall.evaluator`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Activity = Literal[
    "decode", "forward_backward", "wait_prompts", "wait_weights", "wait_rollouts", "wait_evaluator", "sync",
    "coordinate", "evaluate", "dead", "unplayed",
]  # fmt: skip
Role = Literal["generator", "trainer", "evaluator"]
MOMENT_ROUNDING = 1e-14
"""Relative error of a difference of two moments: less time than that has not passed."""
NOTHING: Mapping[Activity, float] = {}


@dataclass(kw_only=True)
class Account:
    """The device-seconds of some devices, booked one stretch of time after the other.

    >>> account = Account(devices=2)
    >>> account.book("wait_prompts", until=3.0, of_which={"decode": 5.0})
    >>> account.book("wait_weights", until=4.0)
    >>> account.seconds
    {"decode": 5.0, "wait_prompts": 1.0, "wait_weights": 2.0}
    """

    devices: int = 1
    until: float = 0.0
    """The moment up to which all is booked."""
    seconds: dict[Activity, float] = field(default_factory=dict)
    flops: float = 0.0
    """Done in that time."""
    last_from: float = 0.0
    """The moment at which the last stretch began."""
    last: dict[Activity, float] = field(default_factory=dict)
    """Device-seconds of the last stretch, which `seconds` has too."""

    def book(self, activity: Activity, until: float, of_which: Mapping[Activity, float] = NOTHING) -> None:
        """Spend the time up to `until` with `activity`, but for the device-seconds that `of_which` names."""
        assert until >= self.until, f"all is booked up to {self.until}, so no stretch can end at {until}"
        if until == self.until:
            return
        rest = self.devices * (until - self.until) - sum(of_which.values())
        assert rest >= -MOMENT_ROUNDING * self.devices * until, f"{of_which} is more than {self.devices} devices have"
        rest = 0.0 if rest < MOMENT_ROUNDING * self.devices * until else rest
        self.last_from, self.until = self.until, until
        stretch: dict[Activity, float] = {**of_which, activity: rest}
        self.last = {name: spent for name, spent in stretch.items() if spent}
        for name, spent in self.last.items():
            self.seconds[name] = self.seconds.get(name, 0.0) + spent

    def at(self, moment: float, then: Activity) -> dict[Activity, float]:
        """The seconds up to `moment`: the last stretch cut off there, or the time since then spent with `then`."""
        assert moment >= self.last_from, f"the account can be cut from {self.last_from} on, not at {moment}"
        seconds = dict(self.seconds)
        if moment > self.until:
            seconds[then] = seconds.get(then, 0.0) + self.devices * (moment - self.until)
        elif moment < self.until:
            beyond = (self.until - moment) / (self.until - self.last_from)
            for name, spent in self.last.items():
                seconds[name] -= beyond * spent
        return seconds

    def state_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {**vars(self), "seconds": dict(self.seconds), "last": dict(self.last)}
