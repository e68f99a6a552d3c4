"""The virtual cluster: one process that plays n generators and m trainers over one modelled clock.

Generators decode in lockstep, sequences spread evenly over them: a decode step of S active sequences takes
a + b ceil(S / n), plus prefill. New weights reach all of them at once, at their virtual time, between two decode steps.
"""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from scalerl.cluster.cluster import Cluster
from scalerl.cluster.cost import cost_model
from scalerl.generator.generator import Generator
from scalerl.generator.request import Request
from scalerl.learner.learner import Update
from scalerl.recipe import Virtual


@dataclass(kw_only=True)
class VirtualCluster(Cluster):
    """Modelled devices: what they compute is real, the time it takes is the cost model's."""

    generator: Generator
    pushes: list[tuple[float, int, dict[str, Tensor]]] = field(default_factory=list)
    """Weights under way: arrival time, version, state."""

    def __post_init__(self) -> None:
        super().__post_init__()
        assert isinstance(self.recipe.cluster, Virtual)
        self.devices = self.recipe.cluster
        self.cost = cost_model(self.devices, self.size)

    @property
    def generator_version(self) -> int:
        """All generators take new weights at once."""
        return self.generator.version

    @property
    def has_room(self) -> bool:
        """Whether a slot is free that no request waits for."""
        return self.generator.has_room

    @property
    def is_generating(self) -> bool:
        """Whether a decode step has anything to do."""
        return self.generator.busy

    def submit(self, requests: list[Request]) -> None:
        """Requests start as slots become free."""
        self.generator.submit(requests)

    def catch_up(self) -> None:
        """Give the generators the newest weights that have arrived by now."""
        arrived = [push for push in self.pushes if push[0] <= self.clock.now]
        if arrived:
            _, version, state = arrived[-1]
            self.generator.set_weights(state, version)
            self.pushes = self.pushes[len(arrived) :]

    def advance(self) -> None:
        """One decode step, or on to the trainer's or the weights' next moment when there is nothing to decode."""
        if self.generator.busy:
            self.decode()
            return
        moments = [self.clock.trainer_free, *(arrival for arrival, _, _ in self.pushes)]
        ahead = [moment for moment in moments if moment > self.clock.now]
        assert ahead, "generators are blocked and nothing is under way"
        self.clock.now = min(ahead)

    def decode(self) -> None:
        """One decode step of all generators."""
        finished, work = self.generator.step()
        generators = self.devices.generators
        self.clock.now += (
            self.cost.decode_base_s
            + self.cost.decode_sequence_s * -(-work.sequences // generators)
            + self.cost.prefill_token_s * work.prefill_tokens / generators
        )
        self.clock.generator_busy += (
            self.cost.decode_base_s * min(work.sequences, generators)
            + self.cost.decode_sequence_s * work.sequences
            + self.cost.prefill_token_s * work.prefill_tokens
        )
        self.count_decoded(work)
        for one in finished:
            self._collect(one)

    def trained(self, update: Update, start: float) -> None:
        """The cost of the step's tokens, divided by the trainers."""
        trainers = self.devices.trainers
        seconds = (
            self.cost.train_token_s * update.trained_tokens + self.cost.prefill_token_s * update.scored_tokens
        ) / trainers
        self.clock.trainer_free = start + seconds
        self.clock.trainer_busy += seconds * trainers

    def push_weights(self) -> None:
        """Weights arrive one push after the trainer's last step ended."""
        state = {name: tensor.clone() for name, tensor in self.learner.weights().items()}
        self.pushes.append((self.clock.trainer_free + self.cost.push_s, self.learner.version, state))

    def synchronise(self) -> None:
        """Generators stand still until the weights are there."""
        self.push_weights()
        self.clock.now = max(self.clock.now, self.pushes[-1][0])
        self.catch_up()

    def idle_shares(self) -> tuple[float, float]:
        """Shares of the generators' and of the trainers' device time so far in which they had nothing to do.

        Under PipelineRL what generators do during the trainer's last step is not simulated yet and counts as idle.
        """
        elapsed = max(self.clock.now, self.clock.trainer_free)
        if elapsed == 0.0:
            return 0.0, 0.0
        busy = self.clock.generator_busy / self.devices.generators, self.clock.trainer_busy / self.devices.trainers
        return 1 - busy[0] / elapsed, 1 - busy[1] / elapsed

    def start(self) -> None:
        """Nothing to do: generators decode when they are told to."""

    def paused(self) -> AbstractContextManager[None]:
        """The clock moves only with the schedule's work."""
        return nullcontext()

    def close(self) -> None:
        """Nothing runs beside this process."""

    def state_dict(self) -> dict[str, Any]:
        """With the generators' and the weights under way."""
        return {**super().state_dict(), "generator": self.generator.state_dict(), "pushes": self.pushes}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on exactly where `state_dict` was taken."""
        super().load_state_dict(state)
        self.generator.load_state_dict(state["generator"])
        self.pushes = state["pushes"]
