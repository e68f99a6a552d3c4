"""A recipe and a scale in one namespace, and the run identity they determine."""

import hashlib
import json
from functools import reduce
from pathlib import Path
from typing import Any, Self

from pydantic import model_validator

from scalerl.errors import Rejected
from scalerl.recipe.adapter import refuse_unfit
from scalerl.recipe.axes import Cispo, Recipe
from scalerl.recipe.generator import refuse_on_cpu, refuse_split
from scalerl.recipe.own import Own, OwnLoss
from scalerl.recipe.scale import Layout, Scale

LATER: dict[str, Any] = {
    "adapter": {"type": "none"},
    "cluster.attention": {"type": "free"},
    "cluster.evaluator": False,
    "correction": {"type": "none"},
    "curriculum.when_exhausted": "stop",
    "generator.head_parts": 1,
    "generator": {"type": "torch"},
    "generator.driver": None,
    "learner": {"type": "torch"},
    "loss.delta": None,
    "kv": "keep",
    "reward": "verdict",
}
"""Settings added after the first runs, with the values those runs had; a setting with this value is left out of the
identity, so that old runs keep theirs."""
HAD_A_CAP = ("dapo", "grpo", "gspo")
"""Losses that had a `max_weight` before `correction` existed. Its null stays in the identity, so that old runs keep
theirs."""
OUTSIDE = (
    "checkpoint_every_s",
    "cluster.device.memory_gb",
    "device",
    "learner.offload",
    "learner.ranks",
    "model.shape",
)
"""Settings that change no result, or only by rounding: never part of the identity."""


class ResolvedRecipe(Recipe, Scale):
    """A recipe and a scale in one namespace: everything that determines a run, apart from its seed."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        in_flight = self.cluster.generators * self.cluster.slots
        k = self.off_policy.k
        if in_flight > (k + 1) * self.batch.prompts * self.batch.generations and self.off_policy.type == "pipeline":
            raise ValueError(
                f"cluster: {in_flight} decoding slots hold more than k + 1 = {k + 1} batches of "
                f"{self.batch.prompts} x {self.batch.generations} rollouts, so most slots could never be filled; "
                f"use at most {(k + 1) * self.batch.prompts * self.batch.generations}"
            )
        return self

    @model_validator(mode="after")
    def _has_keys_to_recompute(self) -> Self:
        if self.kv == "recompute" and self.off_policy.type == "ppo_off_policy":
            raise ValueError(
                "kv 'recompute' has no effect with off_policy 'ppo_off_policy': no rollout is unfinished when weights "
                "change; remove kv, or use off_policy 'pipeline'"
            )
        return self

    @model_validator(mode="after")
    def _loss_can_clip(self) -> Self:
        if isinstance(self.loss, Cispo | OwnLoss) or not self.corrects_by_start or self.steps_of_a_round > 1:
            return self
        raise ValueError(
            f"correction {self.correction.type!r}: {self.loss.type} then clips pi_train / pi_start, which is 1 when a "
            f"round has one optimiser step, so its clip has no effect; use epochs of at least 2, ppo_off_policy with k "
            f"of at least 2, or loss cispo, which has the same gradient"
        )

    @model_validator(mode="after")
    def _values_can_clip(self) -> Self:
        if self.critic.type == "none" or self.critic.value_clip is None or self.steps_of_a_round > 1:
            return self
        raise ValueError(
            f"critic.value_clip {self.critic.value_clip:g} has no effect when a round has one optimiser step, because "
            f"values have not changed since its start; set value_clip: null, or use epochs of at least 2, or "
            f"ppo_off_policy with k of at least 2"
        )

    @model_validator(mode="after")
    def _interrupts_thinking(self) -> Self:
        if self.length_control.type == "interruption" and not self.generation.thinks:
            raise ValueError(
                "length_control 'interruption' cuts thinking short and has no effect with generation.thinking 'none'; "
                "use length_control.type 'none', which truncates a response after generation.answer tokens, or "
                "'penalty'; or set generation.thinking to a number of tokens"
            )
        return self

    @property
    def router_loss(self) -> float:
        """Weight of the load-balancing loss; 0 for a model without experts."""
        return 0.0 if self.model.type == "llama" else self.model.router_loss

    @property
    def packing(self) -> Layout:
        """Layout of the sequences in a pass: by default the fastest in which the balance of experts is measured."""
        by_sequence = self.model.type == "moe" or self.router_loss > 0
        return self.optimiser.packing or ("sequences" if by_sequence else "prompts")

    @model_validator(mode="after")
    def _router_sees_sequences(self) -> Self:
        if self.optimiser.packing == "prompts" and self.router_loss > 0:
            raise ValueError(
                "optimiser.packing 'prompts' computes a prompt once for several sequences, but model.router_loss is "
                "computed per sequence; use packing 'sequences', or a router_loss of 0"
            )
        return self

    @model_validator(mode="after")
    def _head_has_parts(self) -> Self:
        model = self.model
        if self.generator.type == "torch" and model.type != "pretrained" and model.hidden % self.generator.head_parts:
            raise ValueError(
                f"generator.head_parts {self.generator.head_parts}: a hidden width of {model.hidden} cannot be divided "
                f"into this many equal parts; use a divisor of it"
            )
        return self

    @model_validator(mode="after")
    def _can_be_served(self) -> Self:
        model = self.model
        if self.generator.type == "vllm" and model.type != "pretrained":
            refuse_split(self.generator, heads=model.heads, kv_heads=model.heads, mlp=model.mlp)
            if self.device == "cpu":
                refuse_on_cpu(self.generator, model.hidden // model.heads)
        return self

    @model_validator(mode="after")
    def _can_be_driven(self) -> Self:
        if self.generator.type == "vllm" and self.generator.driver == "async" and self.cluster.type == "virtual":
            raise ValueError(
                "generator.driver 'async' chooses as many tokens as the machine has time for, but cluster.type "
                "'virtual' is a clock that counts decode steps; remove driver, or use cluster.type 'wall'"
            )
        return self

    @model_validator(mode="after")
    def _shards_can_train(self) -> Self:
        kind = self.learner.type
        if kind == "torch":
            return self
        if self.parameters not in ("fp32", "mixed"):
            raise ValueError(
                f"learner {kind!r} keeps weights and moments in FP32, but parameters is {self.parameters!r}; "
                f"use parameters 'mixed', whose products are BF16, or 'fp32', or learner 'torch'"
            )
        if self.critic.type != "none" and self.critic.parameters != "fp32":
            raise ValueError(
                f"learner {kind!r} keeps weights and moments in FP32, but critic.parameters is "
                f"{self.critic.parameters!r}; use 'fp32', or learner 'torch'"
            )
        return self

    @model_validator(mode="after")
    def _adapter_fits(self) -> Self:
        if self.adapter.type == "none":
            return self
        refuse_unfit(self.adapter, self.model)
        if self.critic.type != "none":
            raise ValueError(
                f"critic {self.critic.type!r} trains a whole network of its own, but adapter.type is "
                f"{self.adapter.type!r}; use critic type 'none', or adapter type 'none'"
            )
        return self

    @property
    def batches_of_a_round(self) -> int:
        """Number of batches generated by one frozen policy; see `Truncate`."""
        return self.off_policy.k if self.off_policy.type == "ppo_off_policy" else 1

    @property
    def corrects_by_start(self) -> bool:
        """True if the correction weighs by pi_start / pi_gen, and the loss's ratio is pi_train / pi_start."""
        return self.correction.type == "truncate" or (
            self.correction.type == "mask" and self.correction.policy == "start"
        )

    @property
    def needs_start(self) -> bool:
        """True if the loss needs log-probabilities under the weights of the start of a round."""
        return self.corrects_by_start or (isinstance(self.loss, OwnLoss) and self.loss.start)

    @property
    def has_evaluator(self) -> bool:
        """True if a process of its own measures while training continues."""
        return self.cluster.type == "wall" and self.cluster.evaluator

    @property
    def shards_weights(self) -> bool:
        """True if no rank of the learner holds the weights whole."""
        return self.learner.type == "fsdp" or (self.learner.type == "deepspeed" and self.learner.zero == 3)

    @property
    def steps_of_a_round(self) -> int:
        """Number of optimiser steps between changes of pi_start."""
        return self.epochs * self.batches_of_a_round

    @property
    def total_threads(self) -> int:
        """CPU threads of all processes of the run."""
        return self.learner.ranks * self.threads + self.cluster.extra_threads

    @property
    def most_gpus(self) -> int:
        """GPUs that a run can use: one per rank, or one per device of a generator; on the wall clock the sum of both,
        because they work at the same time."""
        if self.device == "cpu":
            return 0
        if self.cluster.type == "wall":
            return self.trainers + self.cluster.decoders * self.devices_of_generator
        return max(self.learner.ranks, self.devices_of_generator)

    @property
    def compute_name(self) -> str:
        """Unit of compute of the run's clock."""
        return self.cluster.compute_name

    @property
    def devices_of_generator(self) -> int:
        """Number of devices that decode together as one generator."""
        return self.generator.tensor_parallel if self.generator.type == "vllm" else 1

    @property
    def trainers(self) -> int:
        """Number of training devices: modelled ones, or the learner's ranks on the wall clock."""
        return self.cluster.trainers if self.cluster.type == "virtual" else self.learner.ranks

    @property
    def own(self) -> dict[str, Own]:
        """The user's own functions by the setting that names them."""
        settings = {name: getattr(self, name) for name in Recipe.model_fields}
        settings |= {f"tasks.{number}": task for number, task in enumerate(self.tasks)}
        return {name: one for name, one in settings.items() if isinstance(one, Own)}

    def with_own_in(self, folder: Path) -> Self:
        """This recipe, with the files of the user's own functions in another folder."""
        tasks = tuple(task.moved(folder) if isinstance(task, Own) else task for task in self.tasks)
        moved = {name: own.moved(folder) for name, own in self.own.items() if name in Recipe.model_fields}
        return self.model_copy(update={**moved, "tasks": tasks})

    @model_validator(mode="after")
    def _own_files_differ(self) -> Self:
        found: dict[str, tuple[str, str]] = {}
        for setting, own in self.own.items():
            for name, sha256 in own.files.items():
                other, its_sha256 = found.setdefault(name, (setting, sha256))
                if its_sha256 != sha256:
                    raise ValueError(
                        f"{setting}: function {own.function!r} and that of {other} use different files named {name}; "
                        f"give one of them another name"
                    )
        return self

    def canonical(self, *blocks: str) -> dict[str, Any]:
        """All settings, or those of `blocks`, that determine a run, as plain values; files by hash, not path."""
        settings = without_places(self.model_dump(mode="json", include=set(blocks) or None))
        left_out = {**LATER, **dict.fromkeys(OUTSIDE, ...)}
        for path, value in left_out.items():
            *above, name = path.split(".")
            block = reduce(lambda inside, key: inside.get(key, {}), above, settings)
            if value in (..., block.get(name, ...)):
                block.pop(name, None)
        if "loss" in settings and self.loss.type in HAD_A_CAP:
            settings["loss"]["max_weight"] = None
        return settings

    @classmethod
    def from_stored(cls, stored: dict[str, Any]) -> Self:
        """The recipe in a recipe.json. A file without `cluster.attention` is older than it, and attention was free. A
        `loss.max_weight` is what `correction` truncates today."""
        cluster = stored.get("cluster", {})
        if cluster.get("type", "virtual") == "virtual":
            stored = {**stored, "cluster": {"attention": LATER["cluster.attention"], **cluster}}
        if "max_weight" in stored.get("loss", {}):
            loss = dict(stored["loss"])
            cap, of = loss.pop("max_weight"), "geometric" if loss["type"] == "gspo" else "token"
            corrected = {} if cap is None else {"correction": {"type": "truncate", "of": of, "high": cap}}
            stored = {**stored, "loss": loss, **corrected}
        return cls.model_validate(stored)

    def check_budget(self, compute: float) -> None:
        """Raises ValueError if a run of this much compute, in the scale's unit, ends in steps without effect."""
        schedule = self.optimiser.schedule
        if schedule.type == "constant" or schedule.unit == "steps" or schedule.final > 0:
            return
        if schedule.horizon < compute * (1 - 1e-9):
            raise Rejected(
                f"optimiser.schedule.horizon {schedule.horizon:g} is below the budget of {compute:g}: the learning "
                f"rate is 0 after the horizon, so later steps have no effect; use a horizon of at least {compute:g}, a "
                f"final share above 0, or a budget of at most {schedule.horizon:g}"
            )

    def canonical_json(self) -> str:
        """All settings that determine a run, including defaults, in one canonical line."""
        return json.dumps(self.canonical(), sort_keys=True, separators=(",", ":"))

    def identity(self, seed: int) -> str:
        """Name of the run, 12 hex digits: the hash of the resolved recipe and the seed, without file paths."""
        return hashlib.sha256(f"{self.canonical_json()}#{seed}".encode()).hexdigest()[:12]


def without_places(value: Any) -> Any:
    """`value` without every `path` that has a `path_sha256`, since a file is identified by its content."""
    if isinstance(value, dict):
        return {key: without_places(part) for key, part in value.items() if f"{key}_sha256" not in value}
    return [without_places(part) for part in value] if isinstance(value, list) else value
