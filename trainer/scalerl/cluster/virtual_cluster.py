"""The virtual cluster: one process that simulates n generators and m trainers on one modelled clock.

Generators decode in lockstep, with sequences spread evenly over them: a decode step of S active sequences takes
a + b ceil(S / n), plus prefill and the reading of keys and values (`scalerl.cluster.cost`). New weights reach all
generators at once, at their virtual time, between two decode steps.
"""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from torch import Tensor

from scalerl.cluster.cluster import Cluster
from scalerl.cluster.cost import cost_model
from scalerl.cluster.device_seconds import Account, Activity, Role
from scalerl.cluster.engine_agreement import WeightProbe, refuse_to_disagree
from scalerl.generator.generator import Generator
from scalerl.generator.request import Request, StepWork
from scalerl.learner.learner import Update
from scalerl.recipe import Virtual


@dataclass(kw_only=True)
class VirtualCluster(Cluster):
    """Modelled devices: results are computed, durations come from the cost model."""

    generator: Generator
    pushes: list[tuple[float, int, dict[str, Tensor]]] = field(default_factory=list)
    """Weights in transit: arrival time, version, state."""
    probes: dict[int, WeightProbe] = field(default_factory=dict)
    """Probes of the weights in transit, by version, for generators of another engine."""

    def __post_init__(self) -> None:
        super().__post_init__()
        assert isinstance(self.recipe.cluster, Virtual)
        self.devices = self.recipe.cluster
        self.cost = cost_model(self.devices, self.size)
        self.accounts: dict[Role, Account] = {
            "generator": Account(devices=self.devices.generators),
            "trainer": Account(devices=self.devices.trainers),
        }

    @property
    def generator_version(self) -> int:
        """Version of the weights in use; all generators take new weights at once."""
        return self.generator.version

    @property
    def has_room(self) -> bool:
        """True if a slot is free and no request waits for it."""
        return self.generator.has_room

    @property
    def is_generating(self) -> bool:
        return self.generator.busy or self.generator.wakes_at is not None

    def submit(self, requests: list[Request]) -> None:
        self.generator.submit(requests)

    def catch_up(self) -> None:
        arrived = [push for push in self.pushes if push[0] <= self.clock.now]
        if arrived:
            _, version, state = arrived[-1]
            self.generator.set_weights(state, version)
            if version in self.probes:
                refuse_to_disagree(self.recipe, self.probes[version].gap(self.generator), version)
                self.probes = {of: probe for of, probe in self.probes.items() if of > version}
            self.pushes = self.pushes[len(arrived) :]

    def advance(self) -> None:
        """Take one decode step; with nothing to decode, advance to the next event of the trainer or the weights."""
        if self.generator.busy:
            self.decode()
            return
        moments: list[tuple[float, Activity]] = [(self.clock.trainer_free, "wait_prompts")]
        moments.extend((arrival, "wait_weights") for arrival, _, _ in self.pushes)
        if (wakes_at := self.generator.wakes_at) is not None:
            moments.append((wakes_at, "wait_environment"))
        ahead = [moment for moment in moments if moment[0] > self.clock.now]
        assert ahead, "generators are blocked and nothing is in transit"
        self.clock.now, waited = min(ahead, key=itemgetter(0))
        if wakes_at is not None:
            waited = "wait_environment"  # whatever ends the wait, rollouts are in progress
        self.accounts["generator"].book(waited, self.clock.now)
        self.generator.tell_time(self.clock.now)

    def decode(self) -> None:
        """Take one decode step of all generators, unless the run is to stop."""
        self.check_stop()
        finished, work = self.generator.step()
        if work != StepWork():  # else only environments answered
            generators = self.devices.generators
            busy = self.cost.decode_busy_s(work, generators)
            self.clock.now += self.cost.decode_s(work, generators)
            self.clock.generator_busy += busy
            self.accounts["generator"].book("wait_prompts", self.clock.now, of_which={"decode": busy})
            self.accounts["generator"].flops += self.cost.decode_flops(work)
            self.count_decoded(work)
        self.generator.tell_time(self.clock.now)
        for one in finished:
            self._collect(one)

    def trained(self, update: Update, start: float) -> None:
        trainers = self.devices.trainers
        seconds = self.cost.train_s(update, trainers)
        self.clock.trainer_free = start + seconds
        self.clock.trainer_busy += seconds * trainers
        account = self.accounts["trainer"]
        account.book("wait_rollouts", start)
        account.book("forward_backward", self.clock.trainer_free)
        account.flops += self.cost.train_flops(update)

    def push_weights(self) -> None:
        """Send the weights; they arrive one push after the end of the trainer's last step."""
        state = {name: tensor.clone() for name, tensor in self.learner.weights().items()}
        self.pushes.append((self.clock.trainer_free + self.cost.push_s, self.learner.version, state))
        if probe := self.probe():
            self.probes[self.learner.version] = probe

    def synchronise(self) -> None:
        self.push_weights()
        self.accounts["generator"].book("wait_weights", max(self.clock.now, self.clock.trainer_free))
        self.clock.now = max(self.clock.now, self.pushes[-1][0])
        for account in self.accounts.values():
            account.book("sync", self.clock.now)
        self.generator.tell_time(self.clock.now)
        self.catch_up()

    def device_seconds(self) -> dict[Role, dict[Activity, float]]:
        """Device-seconds by role and activity; decoding during the trainer's last step is not simulated yet."""
        then: Activity = "unplayed" if self.is_generating else "wait_weights"
        return {role: account.at(self.elapsed_s, then) for role, account in self.accounts.items()}

    def model_flops_utilisation(self) -> dict[Role, float]:
        peak = self.devices.device.tflops * 1e12 * self.elapsed_s
        return {role: account.flops / (account.devices * peak) for role, account in self.accounts.items()}

    @property
    def tokens_per_s(self) -> float:
        """Tokens per second of the modelled model."""
        return self.devices.tokens_stand_for * super().tokens_per_s

    def idle_shares(self) -> tuple[float, float]:
        """Under PipelineRL, decoding during the trainer's last step is not simulated yet and counts as idle."""
        elapsed = max(self.clock.now, self.clock.trainer_free)
        if elapsed == 0.0:
            return 0.0, 0.0
        busy = self.clock.generator_busy / self.devices.generators, self.clock.trainer_busy / self.devices.trainers
        return 1 - busy[0] / elapsed, 1 - busy[1] / elapsed

    def paused(self) -> AbstractContextManager[None]:
        """Context without effect, since the clock moves only with the schedule's work."""
        return nullcontext()

    def close(self) -> None:
        """End the generator's engine, if it has one, and the learner's processes."""
        self.generator.close()
        self.off_clock.close()
        self.learner.close()

    def state_dict(self) -> dict[str, Any]:
        return {
            **super().state_dict(),
            "generator": self.generator.state_dict(),
            "pushes": self.pushes,
            "accounts": {role: account.state_dict() for role, account in self.accounts.items()},
            "probes": {version: (probe.tokens, probe.expected) for version, probe in self.probes.items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.generator.load_state_dict(state["generator"])
        self.pushes = state["pushes"]
        self.probes = {
            version: WeightProbe(tokens=tokens, expected=scores)
            for version, (tokens, scores) in state["probes"].items()
        }
        self.accounts = {role: Account(**account) for role, account in state["accounts"].items()}
