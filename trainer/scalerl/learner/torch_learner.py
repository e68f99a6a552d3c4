"""One optimiser step: groups in, new weights and what happened out."""

import copy
import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from scalerl.learner.batch import Batch, make_batch
from scalerl.learner.critic import ValueLearner
from scalerl.learner.learning_rate import learning_rate
from scalerl.learner.loss_scale import INITIAL_SCALE, LossScale
from scalerl.model.packing import packed_micro_batches, padded_micro_batches, shared_micro_batches
from scalerl.model.policy import Policy, Scores
from scalerl.objective.advantages import advantages, padded
from scalerl.objective.aggregation import AGGREGATIONS
from scalerl.objective.gae import at_last_own_token
from scalerl.objective.kl import token_kl
from scalerl.objective.losses import effective_share, log_ratio, token_loss
from scalerl.objective.running_statistics import RunningStatistics
from scalerl.recipe import ResolvedRecipe
from scalerl.rollout import Group

MAX_LOG_RATIO = 300.0
"""Of the ratios that are logged: the square of e^300 is still a float64, and the run log takes no infinity."""
MAX_BAD_STEPS = 5
"""Steps in a row whose loss or gradient is not finite before the run stops."""


class Diverged(RuntimeError):
    """The loss or its gradient was not finite for several steps in a row."""


@dataclass(frozen=True, kw_only=True)
class Update:
    """What one optimiser step did; `metrics` are the learner's columns of a train row."""

    trained_tokens: int
    """Prompt and answer tokens that went forward and backward, counted once for each epoch and network."""
    context_tokens: int
    """Positions attended to, summed over those tokens."""
    scored_tokens: int = 0
    """Tokens that went forward only: through the reference policy, the weights of the start of the round, a critic."""
    scored_context_tokens: int = 0
    """Positions attended to, summed over those tokens."""
    metrics: dict[str, Any]


class Learner:
    """AdamW on the policy loss; gradients of micro-batches add up to those of the whole batch.

    Beside the policy it holds a frozen copy of it only where the recipe needs one: `reference`, the policy the run
    started from, for a KL penalty; `start`, the weights of the start of the round, for truncated importance weights.
    A `critic` is trained beside it, and steps when it does.
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
        self.critic = None if recipe.critic.type == "none" else ValueLearner(policy, recipe, recipe.critic)
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
        networks = 1 if self.critic is None else 2
        if batch is not None and batch.mask_BT.any():
            batch, advantage_BT = self.judge(survivors, self.score(batch))
            done, epochs = self._optimise(batch, advantage_BT, rate)
            metrics |= done
            copies = len(self._frozen_policies()) + networks - 1
            tokens, context = batch.work()
        self.version += 1
        return Update(
            trained_tokens=networks * epochs * tokens,
            context_tokens=networks * epochs * context,
            scored_tokens=copies * tokens,
            scored_context_tokens=copies * context,
            metrics=metrics,
        )

    def _start_round(self) -> None:
        """Take the weights of now as pi_start where a round begins: with every batch the generators were frozen for."""
        if self.version % self.recipe.batches_of_a_round:
            return
        if self.start is not None:
            self.start.load_state_dict(self.policy.state_dict())
        if self.critic is not None:
            self.critic.start_round()

    def score(self, batch: Batch) -> Batch:
        """With the log-probabilities under the frozen policies there are, and a critic's values."""
        return replace(
            batch,
            reference_BT=None if self.reference is None else self.logprobs(self.reference, batch),
            start_BT=None if self.start is None else self.logprobs(self.start, batch),
            values_BT=None if self.critic is None else self.critic.values(batch, self.micro_batches(batch)),
        )

    @torch.no_grad()
    def logprobs(self, policy: Policy, batch: Batch) -> Tensor:
        """Of the batch's tokens under `policy`, [B, T], in the micro-batches of training."""
        result_BT = torch.zeros_like(batch.behaviour_BT)
        for rows in self.micro_batches(batch):
            part = batch.part(rows)
            result_BT[rows, : part.tokens_BT.shape[1]] = self.scores(policy, part).logprobs_BT
        return result_BT

    def judge(self, survivors: list[Group], batch: Batch) -> tuple[Batch, Tensor]:
        """The batch, with a critic's returns where there is one, and the advantages: [B, T] then, else [B, 1]."""
        if self.critic is None:
            return batch, self.advantages(survivors, batch)
        rewards_B = torch.tensor([reward for group in survivors for reward in group.rewards], dtype=torch.float64)
        rewards_BT = at_last_own_token(rewards_B, batch.mask_BT)
        if self.recipe.kl.where == "reward":
            rewards_BT = rewards_BT - self._penalty(batch)
        return self.critic.judge(batch, rewards_BT)

    def _penalty(self, batch: Batch) -> Tensor:
        """What a KL penalty in the reward takes off at each token, [B, T] in float64."""
        kl = self.recipe.kl
        assert batch.reference_BT is not None
        kl_BT = token_kl(kl.estimator, batch.behaviour_BT, batch.reference_BT, batch.mask_BT)
        return kl.coefficient * kl_BT.double()

    def micro_batches(self, batch: Batch) -> list[Tensor]:
        """Row indices of each pass."""
        optimiser = self.recipe.optimiser
        if optimiser.packing == "prompts":
            return shared_micro_batches(batch.length_B, batch.prompt_B, batch.group_B, optimiser.micro_batch_tokens)
        split = packed_micro_batches if optimiser.packing == "sequences" else padded_micro_batches
        return split(batch.length_B, optimiser.micro_batch_tokens)

    def scores(self, policy: Policy, part: Batch) -> Scores:
        """What `policy` says of one pass."""
        recipe = self.recipe
        return policy.score(
            part.tokens_BT,
            recipe.generation.temperature,
            length_B=part.length_B,
            packing=part.packing(recipe.optimiser.packing),
            entropy_gradient=recipe.entropy_bonus > 0,
        )

    def advantages(self, survivors: list[Group], batch: Batch) -> Tensor:
        """Of each rollout [B, 1], a KL penalty in the reward taken off first; running statistics then include them."""
        rewards_PG, mask_PG = padded([group.rewards for group in survivors])
        if self.recipe.kl.where == "reward":
            rewards_PG[mask_PG] -= self._penalty(batch).sum(dim=1)
        advantage_PG, statistics = advantages(rewards_PG, self.recipe.advantage, self.statistics, mask_PG)
        # One NaN would stay in running statistics for ever; this step is skipped for it, the next one need not be.
        if advantage_PG.isfinite().all():
            self.statistics = statistics
        return advantage_PG[mask_PG].unsqueeze(1).float()

    def _optimise(self, batch: Batch, advantage_BT: Tensor, rate: float) -> tuple[dict[str, Any], int]:
        """Epochs on one batch, up to the first that is not finite; the metrics of the last, and how many there were."""
        metrics: dict[str, Any] = {"skipped": False}
        epoch = 0
        while epoch < self.recipe.epochs and not metrics["skipped"]:
            metrics = self._optimise_once(batch, advantage_BT, rate)
            epoch += 1
        return metrics, epoch

    def _optimise_once(self, batch: Batch, advantage_BT: Tensor, rate: float) -> dict[str, Any]:
        for group in self.adam.param_groups:
            group["lr"] = rate
        self.adam.zero_grad(set_to_none=True)
        metrics = self.accumulate(batch, advantage_BT)
        scale = self.loss_scale
        scale.unscale(self.policy.parameters())
        most = self.recipe.optimiser.max_grad_norm
        norm = torch.nn.utils.clip_grad_norm_(self.policy.parameters(), math.inf if most is None else most)
        decisive = {"loss": metrics["loss"], "grad_norm": float(norm)}
        if self.critic is not None:
            metrics |= self.critic.accumulate(batch, self.micro_batches(batch))
            decisive |= {"value_loss": metrics["value_loss"], "value_grad_norm": self.critic.clip_gradient()}
        if self.recipe.parameters == "fp16":
            metrics["loss_scale"] = scale.value
            overflow = math.isfinite(metrics["loss"]) and not bool(norm.isfinite()) and scale.value > 1
            self.loss_scale = scale.after(overflow=not bool(norm.isfinite()))
            if overflow:
                return metrics | decisive | {"grad_norm": None, "skipped": True}
        if all(map(math.isfinite, decisive.values())):
            self.adam.step()
            if self.critic is not None:
                self.critic.step(rate)
            self.bad_steps = 0
            return metrics | decisive | {"skipped": False}
        self.bad_steps += 1
        if self.bad_steps >= MAX_BAD_STEPS:
            found = ", ".join(f"{name} {value}" for name, value in decisive.items())
            raise Diverged(f"{found}: {self.bad_steps} bad steps in a row")
        seen = {name: value if value is not None and np.isfinite(value) else None for name, value in metrics.items()}
        return seen | dict.fromkeys(decisive) | {"skipped": True}

    def accumulate(self, batch: Batch, advantage_BT: Tensor) -> dict[str, Any]:
        """Add the batch's gradient to the parameters', micro-batch by micro-batch; returns the loss and means over the
        tokens of the rollouts that have a gradient.
        """
        with_gradient = self.rows_with_gradient(advantage_BT)
        weight_BT = AGGREGATIONS[self.recipe.aggregation](batch.mask_BT, batch.group_B)[with_gradient]
        batch, advantage_BT = batch.part(with_gradient), advantage_BT[with_gradient]
        sums: dict[str, float] = {}
        for rows in self.micro_batches(batch):
            part = batch.part(rows)
            scores = self.scores(self.policy, part)
            loss, of_tokens = self._objective(part, advantage_BT[rows, : part.mask_BT.shape[1]], scores)
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
        metrics = {name: value if name in of_batch else value / num_tokens for name, value in sums.items()}
        return metrics | {"ess": effective_share(metrics["ratio_mean"], metrics.pop("ratio_square"))}

    def rows_with_gradient(self, advantage_BT: Tensor) -> Tensor:
        """Row indices that the loss depends on.

        A rollout without an advantage, as all of a prompt without variance that is kept, weighs in the averages and
        moves nothing, unless a KL penalty, an entropy bonus or a router's loss is of every rollout.
        """
        kl = self.recipe.kl
        is_of_all = (kl.coefficient > 0 and kl.where == "loss") or self.recipe.entropy_bonus > 0 or self.router_loss > 0
        rows = (advantage_BT != 0).any(dim=1).nonzero().flatten()
        # Without any row there would be no gradient at all, and AdamW would pass the step over.
        return torch.arange(len(advantage_BT)) if is_of_all or not len(rows) else rows

    def _objective(self, batch: Batch, advantage_BT: Tensor, scores: Scores) -> tuple[Tensor, dict[str, Tensor]]:
        """Per-token loss with its KL penalty and entropy bonus, and what is logged the token means of, all [B, T].

        loss = policy loss + kl.coefficient KL - entropy_bonus H
        """
        recipe, kl = self.recipe, self.recipe.kl
        logprobs, entropy = scores.logprobs_BT, scores.entropy_BT
        mask, behaviour = batch.mask_BT, batch.behaviour_BT
        loss, clipped = token_loss(recipe.loss, logprobs, behaviour, advantage_BT, mask, batch.start_BT)
        seen = {"ratio_clipped": clipped, "entropy": entropy, "mismatch": (logprobs.detach() - behaviour).abs()}
        log_rho = log_ratio(logprobs.detach(), behaviour, mask).double()
        seen["ratio_mean"] = log_rho.clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
        seen["ratio_square"] = seen["ratio_mean"].square()
        if batch.reference_BT is not None:
            policy = logprobs if kl.where == "loss" else behaviour
            seen["kl"] = token_kl(kl.estimator, policy, batch.reference_BT, mask)
            if kl.where == "loss":
                loss = loss + kl.coefficient * seen["kl"]
        if recipe.entropy_bonus > 0:
            loss = loss - recipe.entropy_bonus * torch.where(mask, entropy, torch.zeros_like(entropy))
        return loss, seen

    def state_dict(self) -> dict[str, Any]:
        """Weights, those of the frozen copies too, optimiser, critic, counters and running statistics."""
        return {
            "policy": self.policy.state_dict(),
            "adam": self.adam.state_dict(),
            "version": self.version,
            "bad_steps": self.bad_steps,
            "loss_scale": asdict(self.loss_scale),
            "statistics": asdict(self.statistics),
            "critic": None if self.critic is None else self.critic.state_dict(),
            **{name: policy.state_dict() for name, policy in self._frozen_policies().items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on exactly where `state_dict` was taken."""
        self.policy.load_state_dict(state["policy"])
        self.adam.load_state_dict(state["adam"])
        self.version, self.bad_steps = state["version"], state["bad_steps"]
        self.statistics = RunningStatistics(**state["statistics"])
        if self.critic is not None:
            self.critic.load_state_dict(state["critic"])
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
