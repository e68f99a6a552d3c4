"""The loss of a batch, and the columns that are logged of it.

    loss = sum over tokens of weight x (policy loss + kl.coefficient KL - entropy_bonus H) + router_loss x balance

The weights come from the whole batch, so the losses of its micro-batches add up to its own, and so do their gradients.
Nothing here knows the optimiser: the caller says what goes backward, and how.
"""

from collections import defaultdict
from collections.abc import Callable

import torch
from torch import Tensor

from scalerl.learner.batch import Batch
from scalerl.model.policy import Policy, Scores
from scalerl.objective.aggregation import AGGREGATIONS
from scalerl.objective.kl import token_kl
from scalerl.objective.losses import effective_share, log_ratio, token_loss
from scalerl.recipe import ResolvedRecipe

MAX_LOG_RATIO = 300.0
"""Of the ratios that are logged: the square of e^300 is still a float64, and the run log takes no infinity."""


def batch_loss(
    policy: Policy, batch: Batch, advantage_BT: Tensor, recipe: ResolvedRecipe, *, backward: Callable[[Tensor], None]
) -> dict[str, float]:
    """Hand the loss of each micro-batch to `backward`; the columns of a train row that describe the batch.

    `loss` and `balance` are of the batch; all others are means over the tokens of the rollouts that have a gradient.
    Advantages are [B, T], or [B, 1] where all tokens of a rollout share one.
    """
    kept = rows_with_gradient(advantage_BT, recipe)
    weight_BT = AGGREGATIONS[recipe.aggregation](batch.mask_BT, batch.group_B)[kept]
    batch, advantage_BT = batch.part(kept), advantage_BT[kept]
    of_batch: defaultdict[str, float] = defaultdict(float)
    of_tokens: defaultdict[str, float] = defaultdict(float)
    for rows in batch.micro_batches(recipe.optimiser):
        part = batch.part(rows)
        width = part.tokens_BT.shape[1]
        scores = scores_of(policy, part, recipe)
        loss_BT, logged = token_objective(part, advantage_BT[rows, :width], scores, recipe)
        loss = (loss_BT * weight_BT[rows, :width]).sum()
        if scores.balance_B is not None:
            balance = scores.balance_B.sum() / len(batch.length_B)
            loss = loss + router_loss(recipe) * balance
            of_batch["balance"] += float(balance.detach())
        backward(loss)
        of_batch["loss"] += float(loss.detach())
        for name, value_BT in logged.items():
            of_tokens[name] += float(value_BT.detach()[part.mask_BT].sum())
    num_tokens = max(1, int(batch.mask_BT.sum()))
    means = {name: total / num_tokens for name, total in of_tokens.items()}
    ess = effective_share(means["ratio_mean"], means.pop("ratio_square"))
    return {**of_batch, **means, "ess": ess}


def rows_with_gradient(advantage_BT: Tensor, recipe: ResolvedRecipe) -> Tensor:
    """Row indices that the loss depends on.

    A rollout without an advantage, as all of a prompt without variance that is kept, weighs in the averages and moves
    nothing, unless a KL penalty, an entropy bonus or a router loss applies to every rollout.
    """
    penalised = recipe.kl.coefficient > 0 and recipe.kl.where == "loss"
    is_of_all = penalised or recipe.entropy_bonus > 0 or router_loss(recipe) > 0
    rows = (advantage_BT != 0).any(dim=1).nonzero().flatten()
    # Without any row there would be no gradient at all, and AdamW would pass the step over.
    return torch.arange(len(advantage_BT), device=advantage_BT.device) if is_of_all or not len(rows) else rows


def router_loss(recipe: ResolvedRecipe) -> float:
    """Weight of the load-balancing loss; 0 in a model without experts."""
    return 0.0 if recipe.model.type == "llama" else recipe.model.router_loss


def scores_of(policy: Policy, part: Batch, recipe: ResolvedRecipe) -> Scores:
    """What `policy` says of the tokens of one pass."""
    return policy.score(
        part.tokens_BT,
        recipe.generation.temperature,
        length_B=part.length_B,
        packing=part.packing(recipe.optimiser.packing),
        entropy_gradient=recipe.entropy_bonus > 0,
    )


def token_objective(
    part: Batch, advantage_BT: Tensor, scores: Scores, recipe: ResolvedRecipe
) -> tuple[Tensor, dict[str, Tensor]]:
    """Per-token loss with its KL penalty and entropy bonus, and the values whose token means are logged, all [B, T].

    loss = policy loss + kl.coefficient KL - entropy_bonus H
    """
    kl = recipe.kl
    logprobs, entropy = scores.logprobs_BT, scores.entropy_BT
    mask, behaviour = part.mask_BT, part.behaviour_BT
    loss, clipped = token_loss(recipe.loss, logprobs, behaviour, advantage_BT, mask, part.start_BT)
    ratio = log_ratio(logprobs.detach(), behaviour, mask).double().clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
    logged = {
        "ratio_clipped": clipped,
        "entropy": entropy,
        "mismatch": (logprobs.detach() - behaviour).abs(),
        "ratio_mean": ratio,
        "ratio_square": ratio.square(),
    }
    if part.reference_BT is not None:
        logged["kl"] = token_kl(kl.estimator, logprobs if kl.where == "loss" else behaviour, part.reference_BT, mask)
        if kl.where == "loss":
            loss = loss + kl.coefficient * logged["kl"]
    if recipe.entropy_bonus > 0:
        loss = loss - recipe.entropy_bonus * torch.where(mask, entropy, torch.zeros_like(entropy))
    return loss, logged
