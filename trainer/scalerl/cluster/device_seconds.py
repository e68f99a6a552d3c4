"""Accounts of device-seconds by role and activity, on either clock.

    generator   decode             decoding sequences and prefilling their prompts
                wait_prompts       no prompt may be admitted, or the fullest generator takes longer
                wait_weights       all requests are finished, and the next weights are not there
                wait_environment   all unfinished rollouts wait for their environments
                sync               sending or receiving weights, with no other work
                unplayed           virtual clock: decode steps during the last optimiser step, simulated later
    trainer     forward_backward   an optimiser step
                wait_rollouts      no batch is full
                sync               sending weights, with no other work
                wait_evaluator     the next evaluation is due, but too many are still unfinished
                coordinate         wall clock: prompts, verifiers, publication of weights and the run log
    evaluator   evaluate           decoding and judging answers to the measured prompts
                sync               fetching the weights to be measured
                wait_weights       no evaluation is due
    all         dead               from a process's death to the first message of its successor

Every second of every device is booked to one activity, so the seconds of a role add up to its devices times the elapsed
time. Work that costs no compute, checkpoints and evaluations without an evaluator, stops the clock and is not included.
An evaluator's seconds are not compute either: `scalerl.recipe.Wall.evaluator`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Activity = Literal[
    "decode", "forward_backward", "wait_prompts", "wait_weights", "wait_environment", "wait_rollouts",
    "wait_evaluator", "sync", "coordinate", "evaluate", "dead", "unplayed",
]  # fmt: skip
Role = Literal["generator", "trainer", "evaluator"]
MOMENT_ROUNDING = 1e-14
"""Relative rounding error of the difference of two times; a shorter stretch counts as zero."""
NOTHING: Mapping[Activity, float] = {}


@dataclass(kw_only=True)
class Account:
    """Device-seconds of some devices, booked one stretch of time after another.

    >>> account = Account(devices=2)
    >>> account.book("wait_prompts", until=3.0, of_which={"decode": 5.0})
    >>> account.book("wait_weights", until=4.0)
    >>> account.seconds
    {"decode": 5.0, "wait_prompts": 1.0, "wait_weights": 2.0}
    """

    devices: int = 1
    until: float = 0.0
    """Time up to which everything is booked."""
    seconds: dict[Activity, float] = field(default_factory=dict)
    flops: float = 0.0
    """FLOPs done up to that time."""
    last_from: float = 0.0
    """Time at which the last stretch began."""
    last: dict[Activity, float] = field(default_factory=dict)
    """Device-seconds of the last stretch, also included in `seconds`."""

    def book(self, activity: Activity, until: float, of_which: Mapping[Activity, float] = NOTHING) -> None:
        """Book the time up to `until` to `activity`, except the device-seconds in `of_which`."""
        assert until >= self.until, f"everything is booked up to {self.until}, so no stretch can end at {until}"
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
        """Seconds up to `moment`: the last stretch is cut off there, or the time after it is booked to `then`."""
        assert moment >= self.last_from, f"the account can only be cut from {self.last_from} on, not at {moment}"
        seconds = dict(self.seconds)
        if moment > self.until:
            seconds[then] = seconds.get(then, 0.0) + self.devices * (moment - self.until)
        elif moment < self.until:
            beyond = (self.until - moment) / (self.until - self.last_from)
            for name, spent in self.last.items():
                seconds[name] -= beyond * spent
        return seconds

    def state_dict(self) -> dict[str, Any]:
        """State as plain values."""
        return {**vars(self), "seconds": dict(self.seconds), "last": dict(self.last)}
