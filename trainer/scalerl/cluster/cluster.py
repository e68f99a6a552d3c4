"""The parts of generators and a trainer common to both clocks: prompts, groups, the optimiser step, counters.

`scalerl.cluster.virtual_cluster` simulates the devices on a modelled clock; `scalerl.processes` runs them as processes
on the real one. A schedule (`scalerl.schedules`) sees only this interface. Elapsed time counts on every device, busy or
not (ScaleRL §2: idle time is compute).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scalerl.cluster.cost import forward_flops, training_flops
from scalerl.cluster.device_seconds import Activity, Role
from scalerl.cluster.engine_agreement import WeightProbe, probe_tokens
from scalerl.cluster.placement import UnitState
from scalerl.generator.generator import Generator, decode_all
from scalerl.generator.make import draw_requests
from scalerl.generator.request import Finished, Request, StepWork
from scalerl.learner.learner import Learner, Update, go_on
from scalerl.prompts.judge import Judge
from scalerl.prompts.mixed_pool import AnyPool
from scalerl.recipe import ResolvedRecipe
from scalerl.rollout import Group, Prompt, Rollout
from scalerl.tasks import Task


@dataclass(kw_only=True)
class Assembly:
    """A group whose rollouts are being generated."""

    prompt: Prompt
    start_version: int
    """Oldest version of the weights that its rollouts may have started with."""
    rollouts: list[Rollout | None]


@dataclass(frozen=True, kw_only=True)
class TrainedStep:
    """One optimiser step as the schedule sees it."""

    groups: list[Group]
    update: Update
    version: int
    """Trainer version at which the groups were consumed."""


@dataclass(kw_only=True)
class Clock:
    """Virtual or real seconds, and the work done in them."""

    now: float = 0.0
    """Time that the generators have reached."""
    trainer_free: float = 0.0
    """Time at which the trainer's last step ends."""
    generator_busy: float = 0.0
    """Device-seconds in which generators were busy."""
    trainer_busy: float = 0.0
    """Device-seconds in which trainers were busy."""
    tokens: int = 0
    flops: int = 0
    trainer_flops: int = 0
    """FLOPs of training and scoring."""


@dataclass(kw_only=True)
class Cluster(ABC):
    """A trainer, the prompts and groups between it and its generators, and the clock they share."""

    recipe: ResolvedRecipe
    learner: Learner
    pool: AnyPool
    task: Task
    rng: np.random.Generator
    off_clock: Generator
    """Generator for work that costs no compute: evaluations."""
    clock: Clock = field(default_factory=Clock)
    assembling: dict[int, Assembly] = field(default_factory=dict)
    ready: list[tuple[int, Group]] = field(default_factory=list)
    """Finished groups in order of completion, each with its number."""
    pending: list[list[Group]] = field(default_factory=list)
    """Batches generated but not yet trained on (PPO-off-policy-k)."""
    next_group: int = 0
    discarded: int = 0
    """Groups discarded without a signal since the last optimiser step."""
    check_stop: Callable[[], None] = go_on
    """Called between decode steps: raises Cancelled to stop there. The state is then one that a run can resume from."""
    news: list[str] = field(default_factory=list)
    """Events of the processes since the run last collected them."""

    def __post_init__(self) -> None:
        self.size = self.learner.size
        self.judge = Judge(self.task, self.recipe)

    @property
    def compute_gpu_hours(self) -> float:
        """Device-hours up to the end of the last optimiser step, of all devices, including idle time."""
        devices = self.recipe.cluster.generators + self.recipe.trainers
        return devices * self.elapsed_s / 3600

    @property
    def elapsed_s(self) -> float:
        """Seconds up to the end of the last optimiser step."""
        return self.clock.trainer_free

    @abstractmethod
    def device_seconds(self) -> dict[Role, dict[Activity, float]]:
        """Device-seconds up to the end of the last optimiser step, by role and activity."""

    @abstractmethod
    def model_flops_utilisation(self) -> dict[Role, float]:
        """Model FLOPs as a share of the devices' peak rate, by role."""

    def units(self) -> tuple[UnitState, ...]:
        """Place and state of each unit of the run; empty if one process simulates all of them."""
        return ()

    @property
    def tokens_per_s(self) -> float:
        """Tokens generated per second, idle time included, up to the end of the last optimiser step."""
        return self.clock.tokens / self.elapsed_s

    @property
    def groups_in_system(self) -> int:
        """Number of groups started but not yet trained on."""
        return len(self.assembling) + len(self.ready)

    # --- interface to the generators, for schedules ------------------------------------------------------------------

    @property
    @abstractmethod
    def generator_version(self) -> int:
        """Oldest version of the weights in use by a generator."""

    @property
    @abstractmethod
    def has_room(self) -> bool:
        """True if the generators have room for one more group."""

    @property
    @abstractmethod
    def is_generating(self) -> bool:
        """True if requested rollouts are unfinished."""

    @abstractmethod
    def catch_up(self) -> None:
        """Process what has happened up to now: arrived weights and finished rollouts."""

    @abstractmethod
    def advance(self) -> None:
        """Let time pass until the generators have news."""

    @abstractmethod
    def push_weights(self) -> None:
        """Send the trainer's weights; generators take them between two decode steps."""

    @abstractmethod
    def synchronise(self) -> None:
        """Push the trainer's weights and wait until every generator uses them."""

    @abstractmethod
    def submit(self, requests: list[Request]) -> None:
        """Request the rollouts of one group from the generators."""

    def admit(self) -> None:
        """Draw a prompt and request one group of rollouts from the generators."""
        prompt = self.pool.draw()
        self.assembling[self.next_group] = Assembly(
            prompt=prompt, start_version=self.generator_version, rollouts=[None] * self.recipe.batch.generations
        )
        self.submit(self._requests(self.next_group, prompt))
        self.next_group += 1

    def _requests(self, group: int, prompt: Prompt) -> list[Request]:
        return draw_requests(self.recipe, self.rng, prompt, group, self.recipe.batch.generations)

    def count_decoded(self, work: StepWork) -> None:
        """Add the tokens and FLOPs of decoding and prefill."""
        self.clock.tokens += work.sequences
        self.clock.flops += forward_flops(self.size, work.sequences + work.prefill_tokens, work.context_tokens)

    def _collect(self, finished: Finished) -> None:
        number = finished.request.group
        assembly = self.assembling[number]
        assembly.rollouts[finished.request.index] = finished.rollout
        rollouts: list[Rollout] = []
        for rollout in assembly.rollouts:
            if rollout is None:
                return
            rollouts.append(rollout)
        del self.assembling[number]
        group = self.judge.group(assembly.prompt, rollouts)
        if group is not None:
            self.pool.record(group)
            self.ready.append((number, group))

    def train(self, groups: list[Group], start: float) -> TrainedStep:
        """Take one optimiser step, starting at time `start` of the clock; Cancelled leaves everything as it was."""
        version = self.learner.version
        update = self.learner.step(groups, self.compute_gpu_hours)
        self.trained(update, start)
        self.discarded = 0
        flops = training_flops(self.size, update.trained_tokens, update.context_tokens)
        flops += forward_flops(self.size, update.scored_tokens, update.scored_context_tokens)
        self.clock.flops += flops
        self.clock.trainer_flops += flops
        return TrainedStep(groups=groups, update=update, version=version)

    @abstractmethod
    def trained(self, update: Update, start: float) -> None:
        """Add the time of an optimiser step that began at `start` to the clock."""

    @abstractmethod
    def idle_shares(self) -> tuple[float, float]:
        """Shares of idle time so far, of the generators' and of the trainers' devices."""

    # --- interface for a run -----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the generators and the clock; does nothing if they advance only with the schedule's work."""

    @abstractmethod
    def paused(self) -> AbstractContextManager[None]:
        """Context in which no time passes and no generator decodes, for work that costs no compute."""

    def probe(self) -> WeightProbe | None:
        """Probe of the learner's current weights; None if generators use the learner's code."""
        if self.recipe.generator.type == "torch":
            return None
        tokens = probe_tokens(self.recipe, self.task.train)
        self.off_clock.set_weights(self.learner.weights(), self.learner.version)
        return WeightProbe(tokens=tokens, expected=self.off_clock.score(tokens))

    def sample(self, requests: list[Request]) -> list[Finished]:
        """Decode requests off the clock with the trainer's current weights; rollouts in the order in which they
        finish. Raises Cancelled if the run is to stop."""
        with self.paused():
            self.off_clock.set_weights(self.learner.weights(), self.learner.version)
            return decode_all(self.off_clock, requests, self.check_stop)

    @abstractmethod
    def close(self) -> None:
        """End everything that runs beside this process."""

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next step depends on."""
        return {
            "learner": self.learner.state_dict(),
            "pool": self.pool.state_dict(),
            "judge": self.judge.state_dict(),
            "rng": self.rng.bit_generator.state,
            "clock": vars(self.clock).copy(),
            **{name: getattr(self, name) for name in SHARED_STATE},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly from a `state_dict`."""
        self.learner.load_state_dict(state["learner"])
        self.pool.load_state_dict(state["pool"])
        self.judge.load_state_dict(state["judge"])
        self.rng.bit_generator.state = state["rng"]
        self.clock = Clock(**state["clock"])
        for name in SHARED_STATE:
            setattr(self, name, state[name])


SHARED_STATE = ("assembling", "ready", "pending", "next_group", "discarded")
