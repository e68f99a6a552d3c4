"""One optimiser step: groups in, new weights and what happened out."""

import copy
import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from scalerl.advantages import advantages
from scalerl.aggregation import AGGREGATIONS
from scalerl.batch import Batch, Group, make_batch
from scalerl.kl import token_kl
from scalerl.learning_rate import learning_rate
from scalerl.loss_scale import INITIAL_SCALE, LossScale
from scalerl.losses import token_loss
from scalerl.packing import packed_micro_batches, padded_micro_batches
from scalerl.policy import Policy, Scores
from scalerl.recipe import ResolvedRecipe
from scalerl.running_statistics import RunningStatistics

MAX_BAD_STEPS = 5
"""Steps in a row whose loss or gradient is not finite before the run stops."""


class Diverged(RuntimeError):
    """The loss or its gradient was not finite for several steps in a row."""


@dataclass(frozen=True, kw_only=True)
class Update:
    """What one optimiser step did; `metrics` are the learner's columns of a train row."""

    trained_tokens: int
    """Prompt and answer tokens that went forward and backward, counted once for each epoch."""
    context_tokens: int
    """Positions attended to, summed over those tokens."""
    scored_tokens: int = 0
    """Tokens that went forward only, through the reference policy or the weights of the start of the round."""
    scored_context_tokens: int = 0
    """Positions attended to, summed over those tokens."""
    metrics: dict[str, Any]


class Learner:
    """AdamW on the policy loss; gradients of micro-batches add up to those of the whole batch.

    Beside the policy it holds a frozen copy of it only where the recipe needs one: `reference`, the policy the run
    started from, for a KL penalty; `start`, the weights of the start of the round, for truncated importance weights.
    """

    def __init__(self, policy: Policy, recipe: ResolvedRecipe) -> None:
        self.policy, self.recipe = policy, recipe
        self.version = 0
        self.bad_steps = 0
        self.statistics = RunningStatistics()
        self.loss_scale = LossScale(value=INITIAL_SCALE if recipe.parameters == "fp16" else 1.0)
        self.router_loss = 0.0 if recipe.model.type == "llama" else recipe.model.router_loss
        self.reference = frozen_copy(policy) if recipe.kl.coefficient > 0 else None
        self.start = frozen_copy(policy) if recipe.loss.type != "cispo" and recipe.loss.max_weight else None
        settings = recipe.optimiser
        self.adam = torch.optim.AdamW(
            policy.parameters(),
            lr=settings.learning_rate,
            betas=(settings.beta1, settings.beta2),
            eps=settings.eps,
            weight_decay=settings.weight_decay,
            fused=True,
        )

    def step(self, groups: list[Group], compute_gpu_hours: float | None = None) -> Update:
        """Train on `groups`; without survivors, or when something is not finite, the weights stay as they are.

        `compute_gpu_hours` is the run's compute so far, for schedules with a horizon in compute. Raises Diverged after
        MAX_BAD_STEPS steps in a row that were not finite.
        """
        recipe = self.recipe
        compute = None if compute_gpu_hours is None else compute_gpu_hours / recipe.compute_unit_gpu_hours
        rate = learning_rate(recipe.optimiser, step=self.version, compute=compute)
        survivors = [group for group in groups if recipe.zero_variance == "keep" or not group.zero_variance]
        metrics: dict[str, Any] = {
            "loss": 0.0,
            "grad_norm": 0.0,
            "learning_rate": rate,
            "survivors": len(survivors),
            "skipped": True,
        }
        self._start_round()
        batch = make_batch(survivors, mask_truncated=recipe.truncated == "mask") if survivors else None
        epochs = copies = tokens = context = 0
        if batch is not None and batch.mask_BT.any():
            batch = self.score(batch)
            done, epochs = self._optimise(batch, self.advantages(survivors, batch), rate)
            metrics |= done
            copies = len(self._frozen_policies())
            tokens, context = batch.work()
        self.version += 1
        return Update(
            trained_tokens=epochs * tokens,
            context_tokens=epochs * context,
            scored_tokens=copies * tokens,
            scored_context_tokens=copies * context,
            metrics=metrics,
        )

    def _start_round(self) -> None:
        """Take the weights of now as pi_start where a round begins: with every batch the generators were frozen for."""
        off_policy = self.recipe.off_policy
        batches = off_policy.k if off_policy.type == "ppo_off_policy" else 1
        if self.start is not None and self.version % batches == 0:
            self.start.load_state_dict(self.policy.state_dict())

    def score(self, batch: Batch) -> Batch:
        """With the log-probabilities under the frozen policies there are."""
        return replace(
            batch,
            reference_BT=None if self.reference is None else self.logprobs(self.reference, batch),
            start_BT=None if self.start is None else self.logprobs(self.start, batch),
        )

    @torch.no_grad()
    def logprobs(self, policy: Policy, batch: Batch) -> Tensor:
        """Of the batch's tokens under `policy`, [B, T], in the micro-batches of training."""
        result_BT = torch.zeros_like(batch.behaviour_BT)
        for rows in self.micro_batches(batch):
            part = batch.part(rows)
            result_BT[rows, : part.tokens_BT.shape[1]] = self.scores(policy, part).logprobs_BT
        return result_BT

    def micro_batches(self, batch: Batch) -> list[Tensor]:
        """Row indices of each pass."""
        optimiser = self.recipe.optimiser
        split = packed_micro_batches if optimiser.packing else padded_micro_batches
        return split(batch.length_B, optimiser.micro_batch_tokens)

    def scores(self, policy: Policy, part: Batch) -> Scores:
        """What `policy` says of one pass."""
        recipe = self.recipe
        return policy.score(
            part.tokens_BT,
            recipe.generation.temperature,
            length_B=part.length_B,
            packed=recipe.optimiser.packing,
            entropy_gradient=recipe.entropy_bonus > 0,
        )

    def advantages(self, survivors: list[Group], batch: Batch) -> Tensor:
        """Of each rollout [B], a KL penalty in the reward taken off first; running statistics then include them."""
        # Float64: equal fractional rewards must stay exactly centred, or prompt-level division makes noise of them.
        rewards_PG = torch.tensor([group.rewards for group in survivors], dtype=torch.float64)
        kl = self.recipe.kl
        if kl.where == "reward":
            assert batch.reference_BT is not None
            kl_BT = token_kl(kl.estimator, batch.behaviour_BT, batch.reference_BT, batch.mask_BT)
            rewards_PG = rewards_PG - kl.coefficient * kl_BT.double().sum(dim=1).view_as(rewards_PG)
        advantage_PG, self.statistics = advantages(rewards_PG, self.recipe.advantage, self.statistics)
        return advantage_PG.flatten().float()

    def _optimise(self, batch: Batch, advantage_B: Tensor, rate: float) -> tuple[dict[str, Any], int]:
        """Epochs on one batch, up to the first that is not finite; the metrics of the last, and how many there were."""
        metrics: dict[str, Any] = {"skipped": False}
        epoch = 0
        while epoch < self.recipe.epochs and not metrics["skipped"]:
            metrics = self._optimise_once(batch, advantage_B, rate)
            epoch += 1
        return metrics, epoch

    def _optimise_once(self, batch: Batch, advantage_B: Tensor, rate: float) -> dict[str, Any]:
        for group in self.adam.param_groups:
            group["lr"] = rate
        self.adam.zero_grad(set_to_none=True)
        metrics = self.accumulate(batch, advantage_B)
        scale = self.loss_scale
        scale.unscale(self.policy.parameters())
        most = self.recipe.optimiser.max_grad_norm
        norm = torch.nn.utils.clip_grad_norm_(self.policy.parameters(), math.inf if most is None else most)
        finite = bool(np.isfinite(metrics["loss"])) and bool(norm.isfinite())
        if self.recipe.parameters == "fp16":
            metrics["loss_scale"] = scale.value
            overflow = bool(np.isfinite(metrics["loss"])) and not finite and scale.value > 1
            self.loss_scale = scale.after(overflow=not finite)
            if overflow:
                return metrics | {"grad_norm": None, "skipped": True}
        if finite:
            self.adam.step()
            self.bad_steps = 0
            return metrics | {"grad_norm": float(norm), "skipped": False}
        self.bad_steps += 1
        if self.bad_steps >= MAX_BAD_STEPS:
            raise Diverged(f"loss {metrics['loss']}, gradient norm {float(norm)}: {self.bad_steps} bad steps in a row")
        seen = {name: value if np.isfinite(value) else None for name, value in metrics.items()}
        return seen | {"loss": None, "grad_norm": None, "skipped": True}

    def accumulate(self, batch: Batch, advantage_B: Tensor) -> dict[str, Any]:
        """Add the batch's gradient to the parameters', micro-batch by micro-batch; returns the loss and token means."""
        weight_BT = AGGREGATIONS[self.recipe.aggregation](batch.mask_BT, batch.group_B)
        sums: dict[str, float] = {}
        for rows in self.micro_batches(batch):
            part = batch.part(rows)
            scores = self.scores(self.policy, part)
            loss, of_tokens = self._objective(part, advantage_B[rows], scores)
            total = (loss * weight_BT[rows, : loss.shape[1]]).sum()
            if scores.balance_B is not None:
                mean = scores.balance_B.sum() / len(batch.length_B)
                sums["balance"] = sums.get("balance", 0.0) + float(mean.detach())
                total = total + self.router_loss * mean
            self.loss_scale.scaled(total).backward()
            sums["loss"] = sums.get("loss", 0.0) + float(total.detach())
            for name, value_BT in of_tokens.items():
                sums[name] = sums.get(name, 0.0) + float(value_BT.detach()[part.mask_BT].sum())
        num_tokens = max(1, int(batch.mask_BT.sum()))
        of_batch = ("loss", "balance")
        return {name: value if name in of_batch else value / num_tokens for name, value in sums.items()}

    def _objective(self, batch: Batch, advantage_B: Tensor, scores: Scores) -> tuple[Tensor, dict[str, Tensor]]:
        """Per-token loss with its KL penalty and entropy bonus, and what is logged the token means of, all [B, T].

        loss = policy loss + kl.coefficient KL - entropy_bonus H
        """
        recipe, kl = self.recipe, self.recipe.kl
        logprobs, entropy = scores.logprobs_BT, scores.entropy_BT
        mask, behaviour = batch.mask_BT, batch.behaviour_BT
        loss, clipped = token_loss(recipe.loss, logprobs, behaviour, advantage_B, mask, batch.start_BT)
        seen = {"ratio_clipped": clipped, "entropy": entropy, "mismatch": (logprobs.detach() - behaviour).abs()}
        if batch.reference_BT is not None:
            policy = logprobs if kl.where == "loss" else behaviour
            seen["kl"] = token_kl(kl.estimator, policy, batch.reference_BT, mask)
            if kl.where == "loss":
                loss = loss + kl.coefficient * seen["kl"]
        if recipe.entropy_bonus > 0:
            loss = loss - recipe.entropy_bonus * torch.where(mask, entropy, torch.zeros_like(entropy))
        return loss, seen

    def state_dict(self) -> dict[str, Any]:
        """Weights, those of the frozen copies too, optimiser, counters and running statistics."""
        return {
            "policy": self.policy.state_dict(),
            "adam": self.adam.state_dict(),
            "version": self.version,
            "bad_steps": self.bad_steps,
            "loss_scale": asdict(self.loss_scale),
            "statistics": asdict(self.statistics),
            **{name: policy.state_dict() for name, policy in self._frozen_policies().items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on exactly where `state_dict` was taken."""
        self.policy.load_state_dict(state["policy"])
        self.adam.load_state_dict(state["adam"])
        self.version, self.bad_steps = state["version"], state["bad_steps"]
        self.statistics = RunningStatistics(**state["statistics"])
        self.loss_scale = LossScale(**state["loss_scale"])
        for name, policy in self._frozen_policies().items():
            policy.load_state_dict(state[name])

    def _frozen_policies(self) -> dict[str, Policy]:
        """Those there are, by name."""
        both = {"reference": self.reference, "start": self.start}
        return {name: policy for name, policy in both.items() if policy is not None}


def frozen_copy(policy: Policy) -> Policy:
    """A copy that takes no gradient."""
    return copy.deepcopy(policy).requires_grad_(False)
