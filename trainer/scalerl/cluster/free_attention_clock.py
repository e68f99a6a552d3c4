"""A second account of a run's virtual time, beside the clock that decides: had attention been free.

The same work is done in the same order and after the same waits, so the two accounts differ only in what attention
costs. Nothing follows from this one. PPO-off-policy-k would have done the same work, so its second account is what the
run would have cost; PipelineRL would have received some weights at other tokens.
"""

from dataclasses import dataclass, field
from typing import Any

from scalerl.cluster.cost import CostModel
from scalerl.generator.request import StepWork
from scalerl.learner.learner import Update


@dataclass(kw_only=True)
class FreeAttentionClock:
    """`VirtualCluster` tells it of each event; it keeps the moments at which these would have happened."""

    cost: CostModel
    now: float = 0.0
    """Time that the generators have reached."""
    before_step: float = 0.0
    """Time at which their last decode step began."""
    trainer_free: float = 0.0
    """Time at which the trainer's last step ends."""
    arrivals: dict[int, float] = field(default_factory=dict)
    """When weights under way arrive, by version."""

    def decoded(self, work: StepWork, generators: int) -> None:
        """The generators took a decode step."""
        self.before_step = self.now
        self.now += self.cost.decode_s(work, generators)

    def trained(self, update: Update, trainers: int, *, in_a_decode_step: bool) -> None:
        """The trainer took a step on what was finished by now, or before the last decode step, in which it began."""
        ready = self.before_step if in_a_decode_step else self.now
        self.trainer_free = max(ready, self.trainer_free) + self.cost.train_s(update, trainers)

    def pushed(self, version: int) -> None:
        """The trainer sent off the weights of its last step."""
        self.arrivals[version] = self.trainer_free + self.cost.push_s

    def waited_for_trainer(self) -> None:
        """The generators stood still until the trainer's step ended."""
        self.now = max(self.now, self.trainer_free)

    def waited_for_weights(self, version: int) -> None:
        """The generators stood still until these weights arrived."""
        self.now = max(self.now, self.arrivals[version])

    def took_weights(self, version: int) -> None:
        """The generators decode with these; older ones are not waited for."""
        self.arrivals = {number: arrival for number, arrival in self.arrivals.items() if number > version}

    def state_dict(self) -> dict[str, Any]:
        """Its moments."""
        return {name: value for name, value in vars(self).items() if name != "cost"}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue where `state_dict` was taken."""
        vars(self).update(state)
