"""PPO's value network with its own optimiser (arXiv 1707.06347): values, advantages and the network's updates.

The value network is a copy of the policy that the run started from, with a scalar head, initially 0, instead of the
logits. It is trained on the same batches for as many epochs as the policy, with the policy's optimiser settings except
the learning rate (`scalerl.recipe.axes.ValueNetwork`).
"""

import copy
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from scalerl.learner.batch import Batch
from scalerl.learner.batch_loss import on_the_host, passes
from scalerl.learner.engine import EngineMaker, moments_in_memory, take_kept
from scalerl.learner.saved_pieces import InMemory, KeptPiece, PieceFiles, TensorSource
from scalerl.model.outline import PolicyParts
from scalerl.model.packing import Packing
from scalerl.model.policy import Policy, Precision
from scalerl.objective.gae import explained_variance, gae, standardised, value_loss, variances
from scalerl.recipe import ResolvedRecipe, ValueNetwork
from scalerl.weights.hugging_face import Weights

DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


class ValueModel(nn.Module):
    """A policy's body with a scalar head, initially 0, all in one precision."""

    def __init__(self, policy: Policy, dtype: torch.dtype) -> None:
        super().__init__()
        self.body = copy.deepcopy(policy).requires_grad_(True)
        self.body.precision = Precision(weights=dtype, products=dtype, head=dtype)
        self.head = nn.Parameter(torch.zeros(1, policy.head_weights()[0].shape[1], device=policy.device))
        self.to(dtype)

    def forward(self, part: Batch, packing: Packing | None) -> tuple[Tensor]:
        """The network's `values` as a tuple, which engines require."""
        return (self.values(part, packing),)

    def values(self, part: Batch, packing: Packing | None) -> Tensor:
        """V of the state before each token, [B, T] in float32, 0 at position 0."""
        before = self.body.before(part.tokens_BT, packing)
        return before.laid_out(F.linear(before.hidden.to(self.head.dtype), self.head).float().squeeze(-1))


BODY = "body."
"""Prefix of a policy's own names in a `ValueModel`."""


class ValueStart:
    """Source of a value network's initial weights: the policy's body and a zero head."""

    def __init__(self, body: TensorSource) -> None:
        self.body = body

    def __contains__(self, name: object) -> bool:
        return name == "head" or name in self.body

    def read(self, name: str, start: int, stop: int) -> Tensor:
        return torch.zeros(stop - start) if name == "head" else self.body.read(name, start, stop)


class ValueLearner:
    """AdamW on the value loss of a value network.

    Advantages and the value clip use the values at the start of the round, as in PPO; if a round has several batches, a
    frozen copy keeps the weights of its start.
    """

    def __init__(
        self,
        policy: Policy,
        recipe: ResolvedRecipe,
        settings: ValueNetwork,
        engines: EngineMaker,
        weights: Weights | None = None,
    ) -> None:
        """`weights`, under the names in a file, are required if `policy` is an outline."""
        self.settings, self.recipe, self.normalisation = settings, recipe, recipe.advantage
        own, general = settings.learning_rate, recipe.optimiser.learning_rate
        self.rate_ratio = 1.0 if own is None else own / general
        network = ValueModel(policy, DTYPES[settings.parameters])
        start = copy.deepcopy(network).requires_grad_(False) if recipe.batches_of_a_round > 1 else None
        optimiser = recipe.optimiser.model_copy(update={"learning_rate": general * self.rate_ratio})
        source = None if weights is None else ValueStart(PolicyParts(policy, weights, BODY))
        self.engine = engines(network, optimiser, source)
        self.start = None if start is None else self.engine.frozen(start, source)

    @property
    def network(self) -> ValueModel:
        """The value network's modules, wherever its weights are."""
        network = self.engine.network
        assert isinstance(network, ValueModel)
        return network

    def start_round(self) -> None:
        """Freeze the current weights, which give the values of all batches of this round."""
        if self.start is not None:
            self.start.copy_from(self.engine)

    @torch.no_grad()
    def values(self, batch: Batch) -> Tensor:
        """Values of the batch's tokens at the start of the round, [B, T]."""
        values_BT = torch.zeros_like(batch.behaviour_BT)
        network = self.start or self.engine
        for rows, counts, _ in passes(batch, self.recipe, self.engine.ranks):
            part = batch.part(rows)
            (part_BT,) = network(part, part.packing(self.recipe.packing))
            if counts:
                values_BT[rows.to(values_BT.device, non_blocking=True), : part.tokens_BT.shape[1]] = part_BT
        return self.engine.ranks.summed(values_BT)

    def assign_credit(self, batch: Batch, rewards_BT: Tensor) -> tuple[Batch, Tensor]:
        """The batch with the returns (value targets), and the advantages [B, T] of its tokens."""
        assert batch.values_BT is not None
        values_BT, mask_BT = batch.values_BT.double(), batch.mask_BT
        advantage_BT = gae(rewards_BT.double(), values_BT, mask_BT, self.settings.gamma, self.settings.gae_lambda)
        returns_BT = torch.where(mask_BT, advantage_BT + values_BT, 0.0)
        if self.normalisation == "batch":
            advantage_BT = standardised(advantage_BT, mask_BT, batch.own(advantage_BT))
        return replace(batch, returns_BT=returns_BT.float()), advantage_BT.float()

    def accumulate(self, batch: Batch) -> dict[str, float | None]:
        """Compute the gradient of the mean value loss over own tokens, replacing the last one; returns its columns."""
        assert batch.values_BT is not None
        assert batch.returns_BT is not None
        self.engine.zero_grad()
        num_tokens, ranks = batch.num_own, self.engine.ranks
        sums: defaultdict[str, float | Tensor] = defaultdict(float)
        for rows, counts, last in passes(batch, self.recipe, ranks):
            part = batch.part(rows)
            assert part.values_BT is not None
            assert part.returns_BT is not None
            (values_BT,) = self.engine(part, part.packing(self.recipe.packing))
            found = value_loss(values_BT, part.values_BT, part.returns_BT, part.mask_BT, clip=self.settings.value_clip)
            loss = found.loss_BT.sum() / num_tokens
            self.engine.backward(loss if counts else loss * 0.0, last=last)
            sums["value_loss"] += loss.detach().double() * counts
            sums["value_clipped"] += found.clipped_BT.sum().double() * counts
        residual, spread = variances(batch.own(batch.values_BT), batch.own(batch.returns_BT))
        # Both are sums over the whole batch on every rank.
        sums["residual"], sums["spread"] = residual / ranks.world, spread / ranks.world
        read = on_the_host(sums, ranks)
        return {
            "value_loss": read["value_loss"],
            "value_clipped": read["value_clipped"] / num_tokens,
            "explained_variance": explained_variance(read["residual"], read["spread"]),
        }

    def step(self, rate: float) -> None:
        """Take one AdamW step; `rate` is the policy's learning rate of this step."""
        self.engine.step(rate * self.rate_ratio)

    def state_dict(self) -> dict[str, Any]:
        """Weights, including those of the start of the round, and optimiser; only step counts if `kept` has the
        rest."""
        moments = self.engine.moments()
        if moments is None:
            return {"steps": self.engine.steps()}
        start = None if self.start is None else self.start.network.state_dict()
        return {"network": self.network.state_dict(), "start": start, "adam": moments}

    def kept(self) -> dict[str, Iterator[KeptPiece]]:
        """This rank's part of each network."""
        networks = {"critic": self.engine, "critic_start": self.start}
        return {name: network.kept() for name, network in networks.items() if network is not None}

    def load_state_dict(self, state: dict[str, Any], files: PieceFiles | None = None) -> None:
        """Continue exactly from a `state_dict`, with the files that ranks wrote for it, if any."""
        if files is not None:
            take_kept(self.engine, "critic", files, state["steps"])
            if self.start is not None:
                self.start.fill(files.of("critic_start", "weights"))
            return
        self.engine.fill(InMemory(state["network"]))
        if self.start is not None:
            self.start.fill(InMemory(state["start"]))
        self.engine.take_moments(*moments_in_memory(state["adam"], self.engine.network))
