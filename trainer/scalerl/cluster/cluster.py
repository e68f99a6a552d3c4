"""What generators and a trainer share whatever clock they run by: prompts, groups, the optimiser step, what is counted.

`scalerl.cluster.virtual_cluster` plays the devices on a modelled clock; `scalerl.processes` runs them as processes on
the real one. A schedule (`scalerl.schedules`) sees only what is here. Elapsed time counts on every device, busy or not
(ScaleRL §2: idle time is compute).
"""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from scalerl.cluster.cost import forward_flops
from scalerl.cluster.device_seconds import Activity, Role
from scalerl.cluster.probe import WeightProbe, probe_tokens
from scalerl.cluster.unit_state import UnitState
from scalerl.generator.generator import Generator, decode_all
from scalerl.generator.make import draw_cuts
from scalerl.generator.random_numbers import draw_seeds
from scalerl.generator.request import Finished, Request, StepWork
from scalerl.learner.learner import Learner, Update
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
    """Weights it may have been begun under, at the earliest."""
    rollouts: list[Rollout | None]


@dataclass(frozen=True, kw_only=True)
class TrainedStep:
    """One optimiser step as the schedule saw it."""

    groups: list[Group]
    update: Update
    version: int
    """Trainer version the groups were consumed at."""


@dataclass(kw_only=True)
class Clock:
    """Seconds, virtual or real, and what was done in them."""

    now: float = 0.0
    """Time the generators have reached."""
    trainer_free: float = 0.0
    """Time the trainer's last step ends."""
    generator_busy: float = 0.0
    """Device-seconds."""
    trainer_busy: float = 0.0
    """Device-seconds."""
    tokens: int = 0
    flops: int = 0
    trainer_flops: int = 0
    """Those of training and scoring."""


@dataclass(kw_only=True)
class Cluster(ABC):
    """A trainer, the prompts and groups between it and its generators, and the clock they share."""

    recipe: ResolvedRecipe
    learner: Learner
    pool: AnyPool
    task: Task
    rng: np.random.Generator
    off_clock: Generator
    """Decodes what costs no compute: evaluations."""
    clock: Clock = field(default_factory=Clock)
    assembling: dict[int, Assembly] = field(default_factory=dict)
    ready: list[tuple[int, Group]] = field(default_factory=list)
    """Finished groups in order of completion, each with its number."""
    pending: list[list[Group]] = field(default_factory=list)
    """Batches generated but not yet trained on (PPO-off-policy-k)."""
    next_group: int = 0
    news: list[str] = field(default_factory=list)
    """What befell the processes since the run last took note of it."""

    def __post_init__(self) -> None:
        self.size = self.learner.size
        self.judge = Judge(self.task, self.recipe)

    @property
    def compute_gpu_hours(self) -> float:
        """Device-hours up to the end of the last optimiser step, all devices, idle time included."""
        devices = self.recipe.cluster.generators + self.recipe.trainers
        return devices * self.elapsed_s / 3600

    @property
    def num_devices(self) -> dict[Role, int]:
        """Devices by role."""
        return {"generator": self.recipe.cluster.generators, "trainer": self.recipe.trainers}

    @property
    def elapsed_s(self) -> float:
        """Seconds up to the end of the last optimiser step."""
        return self.clock.trainer_free

    @abstractmethod
    def device_seconds(self) -> dict[Role, dict[Activity, float]]:
        """Where the hours went: device-seconds up to the end of the last optimiser step, by role and activity."""

    @abstractmethod
    def model_flops_utilisation(self) -> dict[Role, float]:
        """Share of the devices' peak rate that went into the model's FLOPs, by role."""

    def units(self) -> tuple[UnitState, ...]:
        """Where each unit of the run is and what it does; none where one process plays all of them."""
        return ()

    @property
    def tokens_per_s(self) -> float:
        """Tokens generated in a second of that time, idle time included."""
        return self.clock.tokens / self.elapsed_s

    @property
    def compute_without_attention_gpu_hours(self) -> float | None:
        """A second account of that time, without what attention takes, where the clock has one."""
        return None

    @property
    def groups_in_system(self) -> int:
        """Groups started and not yet trained on."""
        return len(self.assembling) + len(self.ready)

    # --- what a schedule asks of the generators ---------------------------------------------------------------------

    @property
    @abstractmethod
    def generator_version(self) -> int:
        """The oldest weights that a generator decodes with."""

    @property
    @abstractmethod
    def has_room(self) -> bool:
        """Whether the generators could do with one more group."""

    @property
    @abstractmethod
    def is_generating(self) -> bool:
        """Whether rollouts that were asked for are not finished."""

    @abstractmethod
    def catch_up(self) -> None:
        """Take note of what has happened up to now: weights that arrived, rollouts that were finished."""

    @abstractmethod
    def advance(self) -> None:
        """Let time pass until something new has happened to the generators."""

    @abstractmethod
    def push_weights(self) -> None:
        """Send the trainer's weights off; generators take them between two decode steps."""

    @abstractmethod
    def synchronise(self) -> None:
        """Push the trainer's weights and wait until every generator decodes with them."""

    @abstractmethod
    def submit(self, requests: list[Request]) -> None:
        """Ask the generators for the rollouts of one group."""

    def admit(self) -> None:
        """Draw a prompt and ask the generators for one group of rollouts."""
        prompt = self.pool.draw()
        self.assembling[self.next_group] = Assembly(
            prompt=prompt, start_version=self.generator_version, rollouts=[None] * self.recipe.batch.generations
        )
        self.submit(self._requests(self.next_group, prompt))
        self.next_group += 1

    def _requests(self, group: int, prompt: Prompt) -> list[Request]:
        """The rollouts of a group, with newly drawn seeds and interruptions."""
        generations = self.recipe.batch.generations
        cuts, seeds = draw_cuts(self.recipe, self.rng, generations), draw_seeds(self.rng, generations)
        return [Request(prompt=prompt, group=group, index=i, seed=seeds[i], cut=cuts[i]) for i in range(generations)]

    def count_decoded(self, work: StepWork) -> None:
        """Add the tokens and FLOPs of decoding and prefill."""
        self.clock.tokens += work.sequences
        self.clock.flops += forward_flops(self.size, work.sequences + work.prefill_tokens, work.context_tokens)

    def _collect(self, finished: Finished) -> None:
        number = finished.request.group
        assembly = self.assembling[number]
        assembly.rollouts[finished.request.index] = finished.rollout
        rollouts = tuple(rollout for rollout in assembly.rollouts if rollout is not None)
        if len(rollouts) < len(assembly.rollouts):
            return
        del self.assembling[number]
        group = self.judge.group(assembly.prompt, rollouts)
        if group is not None:
            self.pool.record(group)
            self.ready.append((number, group))

    def train(self, groups: list[Group], start: float) -> TrainedStep:
        """One optimiser step that starts at time `start` of the clock."""
        version = self.learner.version
        update = self.learner.step(groups, self.compute_gpu_hours)
        self.trained(update, start)
        flops = 3 * forward_flops(self.size, update.trained_tokens, update.context_tokens)
        flops += forward_flops(self.size, update.scored_tokens, update.scored_context_tokens)
        self.clock.flops += flops
        self.clock.trainer_flops += flops
        return TrainedStep(groups=groups, update=update, version=version)

    @abstractmethod
    def trained(self, update: Update, start: float) -> None:
        """Put the time of an optimiser step that began at `start` on the clock."""

    @abstractmethod
    def idle_shares(self) -> tuple[float, float]:
        """Shares of the generators' and of the trainers' device time so far in which they had nothing to do."""

    # --- what a run asks ---------------------------------------------------------------------------------------------

    @abstractmethod
    def start(self) -> None:
        """Let generators generate and the clock run."""

    @abstractmethod
    def paused(self) -> AbstractContextManager[None]:
        """Inside, no time passes and no generator decodes: for what costs no compute, evaluations and checkpoints."""

    def probe(self) -> WeightProbe | None:
        """What the learner's present weights make of some tokens; None where generators decode by the same code."""
        if self.recipe.generator.type == "torch":
            return None
        tokens = probe_tokens(self.recipe, self.task.train)
        self.off_clock.set_weights(self.learner.weights(), self.learner.version)
        return WeightProbe(tokens=tokens, expected=self.off_clock.score(tokens))

    def sample(self, requests: list[Request]) -> list[Finished]:
        """Decode requests off the clock under the trainer's present weights; in the order in which rollouts end."""
        with self.paused():
            self.off_clock.set_weights(self.learner.weights(), self.learner.version)
            return decode_all(self.off_clock, requests)

    @abstractmethod
    def close(self) -> None:
        """End what runs beside this process."""

    def state_dict(self) -> dict[str, Any]:
        """Everything the next step depends on."""
        return {
            "learner": self.learner.state_dict(),
            "pool": self.pool.state_dict(),
            "judge": self.judge.state_dict(),
            "rng": self.rng.bit_generator.state,
            "clock": vars(self.clock).copy(),
            **{name: getattr(self, name) for name in SHARED_STATE},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on exactly where `state_dict` was taken."""
        self.learner.load_state_dict(state["learner"])
        self.pool.load_state_dict(state["pool"])
        self.judge.load_state_dict(state["judge"])
        self.rng.bit_generator.state = state["rng"]
        self.clock = Clock(**state["clock"])
        for name in SHARED_STATE:
            setattr(self, name, state[name])


SHARED_STATE = ("assembling", "ready", "pending", "next_group")
