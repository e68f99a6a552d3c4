"""The value network of PPO with its own optimiser (arXiv 1707.06347): values in, advantages and its own update out.

It is a copy of the policy that the run started from, with a scalar head instead of the logits, which starts at 0. It is
trained on the same batches for as many epochs as the policy, with the policy's optimiser settings except the learning
rate. Its loss has no coefficient: it shares no weights with the policy, and a constant factor does not change AdamW's
steps.
"""

import copy
import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from scalerl.learner.batch import Batch
from scalerl.model.packing import Packing
from scalerl.model.policy import Policy, Precision
from scalerl.objective.gae import explained_variance, gae, standardised, value_loss
from scalerl.recipe import ResolvedRecipe, ValueNetwork

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


class ValueModel(nn.Module):
    """A policy's body with a head of one row, which starts at 0; all of it in one precision."""

    def __init__(self, policy: Policy, dtype: torch.dtype) -> None:
        super().__init__()
        self.body = copy.deepcopy(policy).requires_grad_(True)
        self.body.precision = Precision(weights=dtype, products=dtype, head=dtype)
        self.head = nn.Parameter(torch.zeros(1, policy.head_weights()[0].shape[1], device=policy.device))
        self.to(dtype)

    def values(self, part: Batch, packing: Packing | None) -> Tensor:
        """V of the state before each token, [B, T] in float32, 0 at position 0."""
        before = self.body.before(part.tokens_BT, packing)
        return before.laid_out(F.linear(before.hidden.to(self.head.dtype), self.head).float().squeeze(-1))


class ValueLearner:
    """AdamW on the value loss of a value network.

    Advantages and the value clip use the values at the start of the round, as in PPO; if a round has several batches, a
    frozen copy keeps those weights.
    """

    def __init__(self, policy: Policy, recipe: ResolvedRecipe, settings: ValueNetwork) -> None:
        self.settings, self.optimiser, self.normalisation = settings, recipe.optimiser, recipe.advantage
        self.network = ValueModel(policy, DTYPES[settings.parameters])
        self.start = copy.deepcopy(self.network).requires_grad_(False) if recipe.batches_of_a_round > 1 else None
        own, general = settings.learning_rate, recipe.optimiser.learning_rate
        self.rate_ratio = 1.0 if own is None else own / general
        self.adam = torch.optim.AdamW(
            self.network.parameters(),
            lr=general * self.rate_ratio,
            betas=(recipe.optimiser.beta1, recipe.optimiser.beta2),
            eps=recipe.optimiser.eps,
            weight_decay=recipe.optimiser.weight_decay,
            fused=True,
        )

    def start_round(self) -> None:
        """Freeze the present weights: they give the values of all batches of this round."""
        if self.start is not None:
            self.start.load_state_dict(self.network.state_dict())

    @torch.no_grad()
    def values(self, batch: Batch) -> Tensor:
        """Values of the batch's tokens at the start of the round, [B, T]."""
        values_BT = torch.zeros_like(batch.behaviour_BT)
        for rows in batch.micro_batches(self.optimiser):
            part = batch.part(rows)
            values_BT[rows, : part.tokens_BT.shape[1]] = (self.start or self.network).values(
                part, part.packing(self.optimiser.packing)
            )
        return values_BT

    def assign_credit(self, batch: Batch, rewards_BT: Tensor) -> tuple[Batch, Tensor]:
        """The batch with the returns that its values should have been, and the advantages [B, T] of its tokens."""
        assert batch.values_BT is not None
        values_BT, mask_BT = batch.values_BT.double(), batch.mask_BT
        advantage_BT = gae(rewards_BT.double(), values_BT, mask_BT, self.settings.gamma, self.settings.gae_lambda)
        returns_BT = torch.where(mask_BT, advantage_BT + values_BT, 0.0)
        if self.normalisation == "batch":
            advantage_BT = standardised(advantage_BT, mask_BT)
        return replace(batch, returns_BT=returns_BT.float()), advantage_BT.float()

    def accumulate(self, batch: Batch) -> dict[str, float | None]:
        """The gradient of the mean value loss over own tokens, in place of the last one; returns its columns."""
        assert batch.values_BT is not None
        assert batch.returns_BT is not None
        self.adam.zero_grad(set_to_none=True)
        num_tokens, total, clipped = int(batch.mask_BT.sum()), 0.0, 0
        for rows in batch.micro_batches(self.optimiser):
            part = batch.part(rows)
            assert part.values_BT is not None
            assert part.returns_BT is not None
            values_BT = self.network.values(part, part.packing(self.optimiser.packing))
            loss_BT, clipped_BT = value_loss(
                values_BT, part.values_BT, part.returns_BT, part.mask_BT, self.settings.value_clip
            )
            loss = loss_BT.sum() / num_tokens
            loss.backward()
            total += float(loss.detach())
            clipped += int(clipped_BT.sum())
        explained = explained_variance(batch.values_BT, batch.returns_BT, batch.mask_BT)
        return {"value_loss": total, "value_clipped": clipped / num_tokens, "explained_variance": explained}

    def clip_gradient(self) -> float:
        """Scale the gradient down to `max_grad_norm`; returns the norm it had."""
        most = self.optimiser.max_grad_norm
        return float(nn.utils.clip_grad_norm_(self.network.parameters(), math.inf if most is None else most))

    def step(self, rate: float) -> None:
        """One AdamW step; `rate` is the policy's learning rate of this step."""
        for group in self.adam.param_groups:
            group["lr"] = rate * self.rate_ratio
        self.adam.step()

    def state_dict(self) -> dict[str, Any]:
        """Weights, those of the start of the round too, and optimiser."""
        start = None if self.start is None else self.start.state_dict()
        return {"network": self.network.state_dict(), "start": start, "adam": self.adam.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue exactly where `state_dict` was taken."""
        self.network.load_state_dict(state["network"])
        if self.start is not None:
            self.start.load_state_dict(state["start"])
        self.adam.load_state_dict(state["adam"])
