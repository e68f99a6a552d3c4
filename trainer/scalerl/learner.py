"""One optimiser step: groups in, new weights and what happened out."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from scalerl.advantages import advantages
from scalerl.aggregation import AGGREGATIONS
from scalerl.batch import Batch, Group, make_batch
from scalerl.losses import token_loss
from scalerl.model import Policy
from scalerl.recipe import ResolvedRecipe

MAX_BAD_STEPS = 5
"""Steps in a row whose loss or gradient is not finite before the run stops."""


class Diverged(RuntimeError):
    """The loss or its gradient was not finite for several steps in a row."""


@dataclass(frozen=True, kw_only=True)
class Update:
    """What one optimiser step did; `metrics` are the learner's columns of a train row."""

    trained_tokens: int
    """Prompt and answer tokens that went forward and backward."""
    context_tokens: int
    """Positions attended to, summed over those tokens."""
    metrics: dict[str, Any]


class Learner:
    """AdamW on the policy loss; gradients of micro-batches add up to those of the whole batch."""

    def __init__(self, policy: Policy, recipe: ResolvedRecipe) -> None:
        self.policy, self.recipe = policy, recipe
        self.version = 0
        self.bad_steps = 0
        settings = recipe.optimiser
        self.adam = torch.optim.AdamW(
            policy.parameters(),
            lr=settings.learning_rate,
            betas=(settings.beta1, settings.beta2),
            eps=settings.eps,
            weight_decay=settings.weight_decay,
            fused=True,
        )

    @property
    def learning_rate(self) -> float:
        """Of the next step: linear warm-up, then constant."""
        settings = self.recipe.optimiser
        return settings.learning_rate * min(1.0, (self.version + 1) / max(1, settings.warmup_steps))

    def step(self, groups: list[Group]) -> Update:
        """Train on `groups`; without survivors, or when something is not finite, the weights stay as they are.

        Raises Diverged after MAX_BAD_STEPS steps in a row that were not finite.
        """
        # Float64: equal fractional rewards must stay exactly centred, or prompt-level division makes noise of them.
        rewards_PG = torch.tensor([group.rewards for group in groups], dtype=torch.float64)
        drop = self.recipe.zero_variance == "drop"
        advantage_PG, survives_P = advantages(rewards_PG, self.recipe.advantage, drop_zero_variance=drop)
        survivors = [group for group, survives in zip(groups, survives_P.tolist(), strict=True) if survives]
        metrics: dict[str, Any] = {
            "loss": 0.0,
            "grad_norm": 0.0,
            "learning_rate": self.learning_rate,
            "survivors": len(survivors),
            "skipped": True,
        }
        trained = context = 0
        if survivors:
            batch = make_batch(survivors)
            lengths = batch.length_B
            trained, context = int(lengths.sum()), int((lengths * (lengths + 1) // 2).sum())
            metrics |= self._optimise(batch, advantage_PG[survives_P].flatten().float())
        self.version += 1
        return Update(trained_tokens=trained, context_tokens=context, metrics=metrics)

    def _optimise(self, batch: Batch, advantage_B: Tensor) -> dict[str, Any]:
        for group in self.adam.param_groups:
            group["lr"] = self.learning_rate
        self.adam.zero_grad(set_to_none=True)
        metrics = self.accumulate(batch, advantage_B)
        norm = torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.recipe.optimiser.max_grad_norm)
        finite = bool(np.isfinite(metrics["loss"])) and bool(norm.isfinite())
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
        sums = torch.zeros(4, dtype=torch.float64)
        for rows in micro_batches(batch.length_B, self.recipe.optimiser.micro_batch_tokens):
            width = int(batch.length_B[rows].max())
            tokens, mask, behaviour = (x[rows, :width] for x in (batch.tokens_BT, batch.mask_BT, batch.behaviour_BT))
            logprobs, entropy = self.policy.token_logprobs(tokens, self.recipe.generation.temperature)
            loss, clipped = token_loss(self.recipe.loss, logprobs, behaviour, advantage_B[rows], mask)
            total = (loss * weight_BT[rows, :width]).sum()
            total.backward()
            with torch.no_grad():
                gap = (logprobs - behaviour).abs()
                parts = (total, clipped[mask].sum(), entropy[mask].sum(), gap[mask].sum())
                sums += torch.stack([part.double() for part in parts])
        loss, clipped, entropy, mismatch = sums.tolist()
        num_tokens = max(1, int(batch.mask_BT.sum()))
        return {
            "loss": loss,
            "ratio_clipped": clipped / num_tokens,
            "entropy": entropy / num_tokens,
            "mismatch": mismatch / num_tokens,
        }

    def state_dict(self) -> dict[str, Any]:
        """Weights, optimiser and counters."""
        return {
            "policy": self.policy.state_dict(),
            "adam": self.adam.state_dict(),
            "version": self.version,
            "bad_steps": self.bad_steps,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on exactly where `state_dict` was taken."""
        self.policy.load_state_dict(state["policy"])
        self.adam.load_state_dict(state["adam"])
        self.version, self.bad_steps = state["version"], state["bad_steps"]


def micro_batches(length_B: Tensor, max_tokens: int) -> list[Tensor]:
    """Row indices, longest rows first, so that rows x longest row stays within `max_tokens` (one row at least)."""
    order = torch.argsort(length_B, descending=True, stable=True)
    batches, start = [], 0
    while start < len(order):
        size = max(1, max_tokens // int(length_B[order[start]]))
        batches.append(order[start : start + size])
        start += size
    return batches
