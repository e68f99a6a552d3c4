"""The virtual cluster: one process that plays n generators and m trainers over one modelled clock.

Generators decode in lockstep, sequences spread evenly over them: a decode step of S active sequences takes
a + b ceil(S / n), plus prefill. New weights reach all of them at once, at their virtual time, between two decode steps.
Elapsed time counts on every device, busy or not (ScaleRL §2: idle time is compute).
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from scalerl.batch import Group, Prompt, Rollout
from scalerl.cost import cost_model, forward_flops
from scalerl.generator import NEVER, Finished, Generator, Request
from scalerl.judge import Judge
from scalerl.learner import Learner, Update
from scalerl.mixed_pool import MixedPool
from scalerl.pool import PromptPool
from scalerl.recipe import ResolvedRecipe
from scalerl.tasks import Task
from scalerl.tokens import make_tokenizer


@dataclass(kw_only=True)
class Assembly:
    """A group whose rollouts are being generated."""

    prompt: Prompt
    start_version: int
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
    """Virtual seconds and what was done in them."""

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


@dataclass(kw_only=True)
class Cluster:
    """Generators, trainers, the prompts between them, and the clock they share."""

    recipe: ResolvedRecipe
    generator: Generator
    learner: Learner
    pool: PromptPool | MixedPool
    task: Task
    rng: np.random.Generator
    clock: Clock = field(default_factory=Clock)
    assembling: dict[int, Assembly] = field(default_factory=dict)
    ready: list[tuple[int, Group]] = field(default_factory=list)
    """Finished groups in order of completion, each with its number."""
    pushes: list[tuple[float, int, dict[str, Tensor]]] = field(default_factory=list)
    """Weights under way: arrival time, version, state."""
    pending: list[list[Group]] = field(default_factory=list)
    """Batches generated but not yet trained on (PPO-off-policy-k)."""
    next_group: int = 0

    def __post_init__(self) -> None:
        self.num_parameters = self.learner.policy.num_parameters()
        self.cost = cost_model(self.recipe.cluster, self.num_parameters)
        self.judge = Judge(self.task, self.recipe)

    @property
    def compute_gpu_hours(self) -> float:
        """Modelled GPU-hours up to the end of the last optimiser step, all devices, idle time included."""
        devices = self.recipe.cluster.generators + self.recipe.cluster.trainers
        return devices * self.clock.trainer_free / 3600

    @property
    def groups_in_system(self) -> int:
        """Groups started and not yet trained on."""
        return len(self.assembling) + len(self.ready)

    def admit(self) -> None:
        """Draw a prompt and ask the generators for one group of rollouts."""
        prompt = self.pool.draw()
        generations = self.recipe.batch.generations
        self.assembling[self.next_group] = Assembly(
            prompt=prompt, start_version=self.generator.version, rollouts=[None] * generations
        )
        cuts = draw_cuts(self.recipe, self.rng, generations)
        self.generator.submit(
            [Request(prompt=prompt, group=self.next_group, index=i, cut=cuts[i]) for i in range(generations)]
        )
        self.next_group += 1

    def decode(self) -> None:
        """One decode step of all generators."""
        finished, work = self.generator.step()
        cluster = self.recipe.cluster
        self.clock.now += (
            self.cost.decode_base_s
            + self.cost.decode_sequence_s * -(-work.sequences // cluster.generators)
            + self.cost.prefill_token_s * work.prefill_tokens / cluster.generators
        )
        self.clock.generator_busy += (
            self.cost.decode_base_s * min(work.sequences, cluster.generators)
            + self.cost.decode_sequence_s * work.sequences
            + self.cost.prefill_token_s * work.prefill_tokens
        )
        self.clock.tokens += work.sequences
        self.clock.flops += forward_flops(
            self.recipe.model, self.num_parameters, work.sequences + work.prefill_tokens, work.context_tokens
        )
        for one in finished:
            self._collect(one)

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
        """One optimiser step that starts at virtual time `start`."""
        version = self.learner.version
        update = self.learner.step(groups, self.compute_gpu_hours)
        seconds = (
            self.cost.train_token_s * update.trained_tokens + self.cost.prefill_token_s * update.scored_tokens
        ) / self.recipe.cluster.trainers
        self.clock.trainer_free = start + seconds
        self.clock.trainer_busy += seconds * self.recipe.cluster.trainers
        self.clock.flops += 3 * forward_flops(
            self.recipe.model, self.num_parameters, update.trained_tokens, update.context_tokens
        )
        self.clock.flops += forward_flops(
            self.recipe.model, self.num_parameters, update.scored_tokens, update.scored_context_tokens
        )
        return TrainedStep(groups=groups, update=update, version=version)

    def push_weights(self) -> None:
        """Send the trainer's weights off; they arrive one push after its last step ended."""
        state = {name: tensor.clone() for name, tensor in self.learner.policy.state_dict().items()}
        self.pushes.append((self.clock.trainer_free + self.cost.push_s, self.learner.version, state))

    def deliver_weights(self) -> None:
        """Give the generators the newest weights that have arrived by now."""
        arrived = [push for push in self.pushes if push[0] <= self.clock.now]
        if arrived:
            _, version, state = arrived[-1]
            self.generator.set_weights(state, version)
            self.pushes = self.pushes[len(arrived) :]

    def idle_shares(self) -> tuple[float, float]:
        """Shares of the generators' and of the trainers' device time so far in which they had nothing to do.

        Under PipelineRL what generators do during the trainer's last step is not simulated yet and counts as idle.
        """
        elapsed = max(self.clock.now, self.clock.trainer_free)
        if elapsed == 0.0:
            return 0.0, 0.0
        cluster = self.recipe.cluster
        busy = self.clock.generator_busy / cluster.generators, self.clock.trainer_busy / cluster.trainers
        return 1 - busy[0] / elapsed, 1 - busy[1] / elapsed

    def state_dict(self) -> dict[str, Any]:
        """Everything the next step depends on."""
        own = ("assembling", "ready", "pushes", "pending", "next_group")
        return {
            "generator": self.generator.state_dict(),
            "learner": self.learner.state_dict(),
            "pool": self.pool.state_dict(),
            "judge": self.judge.state_dict(),
            "rng": self.rng.bit_generator.state,
            "clock": vars(self.clock).copy(),
            **{name: getattr(self, name) for name in own},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on exactly where `state_dict` was taken."""
        self.generator.load_state_dict(state["generator"])
        self.learner.load_state_dict(state["learner"])
        self.pool.load_state_dict(state["pool"])
        self.judge.load_state_dict(state["judge"])
        self.rng.bit_generator.state = state["rng"]
        self.clock = Clock(**state["clock"])
        for name in ("assembling", "ready", "pushes", "pending", "next_group"):
            setattr(self, name, state[name])


def draw_cuts(recipe: ResolvedRecipe, rng: np.random.Generator, count: int) -> list[int]:
    """Thinking tokens after which each rollout is interrupted, uniform in [earliest, 1] of the budget (A.10)."""
    if recipe.length_control.type != "interruption":
        return [NEVER] * count
    latest = recipe.generation.thinking
    earliest = max(1, round(recipe.length_control.earliest * latest))
    return rng.integers(earliest, latest + 1, size=count).tolist()


def make_generator(recipe: ResolvedRecipe, task: Task, policy: Any, slots: int, seed: int) -> Generator:
    """A generator for the recipe's token limits that fits every prompt of the task."""
    longest = max(len(prompt.tokens) for prompt in (*task.train, *task.validation))
    rng = torch.Generator().manual_seed(seed)
    tokenizer = make_tokenizer(recipe.model)
    phrase = None
    if recipe.length_control.type == "interruption" and recipe.length_control.phrase is not None:
        phrase = tokenizer.encode(recipe.length_control.phrase)
    return Generator(policy, recipe.generation, tokenizer, slots=slots, max_prompt=longest, rng=rng, phrase=phrase)
