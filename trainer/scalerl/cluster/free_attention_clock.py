"""A second account of a run's virtual time, as if attention were free.

The same work is done in the same order and after the same waits, so the accounts differ only in the cost of attention.
Nothing depends on this one. For PPO-off-policy-k, which would have done the same work, it is the cost of the run
without attention; PipelineRL would have received some weights at other tokens.
"""

from dataclasses import dataclass, field
from typing import Any

from scalerl.cluster.cost import CostModel
from scalerl.generator.request import StepWork
from scalerl.learner.learner import Update


@dataclass(kw_only=True)
class FreeAttentionClock:
    """Times at which the events of a `VirtualCluster` would have happened if attention cost nothing."""

    cost: CostModel
    now: float = 0.0
    """Time that the generators have reached."""
    before_step: float = 0.0
    """Time at which the last decode step began."""
    trainer_free: float = 0.0
    """Time at which the trainer's last step ends."""
    arrivals: dict[int, float] = field(default_factory=dict)
    """Arrival times of weights in transit, by version."""

    def decoded(self, work: StepWork, generators: int) -> None:
        """Note a decode step of the generators."""
        self.before_step = self.now
        self.now += self.cost.decode_s(work, generators)

    def trained(self, update: Update, trainers: int, *, in_a_decode_step: bool) -> None:
        """Note a step of the trainer, on groups finished by now, or before the last decode step if it began during
        it."""
        ready = self.before_step if in_a_decode_step else self.now
        self.trainer_free = max(ready, self.trainer_free) + self.cost.train_s(update, trainers)

    def pushed(self, version: int) -> None:
        """Note a push of the weights from the trainer's last step."""
        self.arrivals[version] = self.trainer_free + self.cost.push_s

    def waited_for_trainer(self) -> None:
        """Note that the generators waited for the end of the trainer's step."""
        self.now = max(self.now, self.trainer_free)

    def waited_for_weights(self, version: int) -> None:
        """Note that the generators waited for these weights."""
        self.now = max(self.now, self.arrivals[version])

    def took_weights(self, version: int) -> None:
        """Note that the generators use these weights, which makes older ones irrelevant."""
        self.arrivals = {number: arrival for number, arrival in self.arrivals.items() if number > version}

    def state_dict(self) -> dict[str, Any]:
        """State of the clock's times."""
        return {name: value for name, value in vars(self).items() if name != "cost"}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a `state_dict`."""
        vars(self).update(state)
