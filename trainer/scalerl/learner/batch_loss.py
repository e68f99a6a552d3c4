"""The loss of a batch, and its logged columns.

    loss = sum over tokens of weight x (policy loss + kl.coefficient KL - entropy_bonus H) + router_loss x balance

The weights come from the whole batch, so losses and gradients of micro-batches add up to those of the batch, whichever
rank computes them. The optimiser is unknown here: the caller runs the backward pass. Columns are summed on the device,
and the host reads them once, after the last pass.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from scalerl.learner.batch import Batch
from scalerl.learner.engine import Scoring
from scalerl.learner.ranks import ALONE, Ranks, shares
from scalerl.model.policy import Scores
from scalerl.objective.aggregation import AggregationInputs, token_weights
from scalerl.objective.correction import log_ratio
from scalerl.objective.kl import token_kl
from scalerl.objective.losses import LossInputs, token_loss
from scalerl.objective.mismatch import MAX_LOG_RATIO, by_label, effective_share, of_sequences, of_tokens
from scalerl.recipe import OwnLoss, ResolvedRecipe

Backward = Callable[[Tensor, bool], None]
"""Called with the loss of a pass, and with True for this rank's last pass."""


def batch_loss(
    policy: Scoring,
    batch: Batch,
    advantage_BT: Tensor,
    recipe: ResolvedRecipe,
    *,
    backward: Backward,
    ranks: Ranks = ALONE,
    version: int = 0,
) -> dict[str, float]:
    """Pass the loss of each of this rank's passes to `backward`; returns the batch's columns of a train row.

    `loss` and `balance` are of the whole batch; all other columns are means over the tokens of rollouts with a
    gradient. Advantages are [B, T], or [B, 1] if all tokens of a rollout share one. Advantages on the host determine
    the rows with a gradient without waiting for the device. `version` is that of the trained weights.
    """
    kept, device = rows_with_gradient(advantage_BT, recipe), batch.tokens_BT.device
    tokens = AggregationInputs(mask_BT=batch.host_mask_BT, group_B=batch.group_B, token_limit=recipe.most_written)
    weight_BT = token_weights(recipe.aggregation, tokens)[kept].to(device, non_blocking=True)
    advantage_BT = advantage_BT[kept.to(advantage_BT.device)].to(device, non_blocking=True)
    batch = batch.part(kept)
    of_batch: defaultdict[str, float | Tensor] = defaultdict(float)
    of_own: defaultdict[str, float | Tensor] = defaultdict(float)
    log_r_BT = torch.zeros_like(batch.behaviour_BT)
    for rows, counts, last in passes(batch, recipe, ranks):
        part, there = batch.part(rows), rows.to(device, non_blocking=True)
        width = part.tokens_BT.shape[1]
        scores = scores_of(policy, part, recipe)
        loss_BT, logged, part_log_r_BT = token_objective(part, advantage_BT[there, :width], scores, recipe)
        loss = (loss_BT * weight_BT[there, :width]).sum()
        if scores.balance_B is not None:
            balance = scores.balance_B.sum() / len(batch.length_B)
            loss = loss + recipe.router_loss * balance
            of_batch["balance"] += balance.detach().double() * counts
        backward(loss if counts else loss * 0.0, last)
        of_batch["loss"] += loss.detach().double() * counts
        for name, value_BT in logged.items():
            of_own[name] += part.own(value_BT.detach()).sum().double() * counts
        if counts:
            log_r_BT[there, :width] = part_log_r_BT.float()
    num_tokens = max(1, batch.num_own)
    gaps = mismatch_columns(ranks.summed(log_r_BT), batch, version)
    read = on_the_host({**of_batch, **of_own}, ranks, gaps)
    means = {name: read[name] / num_tokens for name in of_own}
    ess = effective_share(means["ratio_mean"], means.pop("ratio_square"))
    return {
        **{name: read[name] for name in of_batch},
        **means,
        "ess": ess,
        **{name: read[name] for name in gaps},
    }


def mismatch_columns(log_r_BT: Tensor, batch: Batch, version: int) -> dict[str, Tensor]:
    """Mismatch between the trainer, at this version, and the generator: over all own tokens, and the mean |log r| by
    lag and, in a mix, by task. `log_r_BT` is 0 off the mask."""
    log_r_M = batch.own(log_r_BT).double()
    if not len(log_r_M):
        return {}
    measured = {**of_tokens(log_r_M), **of_sequences(log_r_BT)}
    if batch.version_BT is not None:
        lags, lag_M = (version - batch.version_BT)[batch.host_mask_BT].unique(return_inverse=True)
        gap_L = by_label(log_r_M.abs(), lag_M.to(log_r_M.device, non_blocking=True), len(lags))
        measured |= {f"mismatch_lag_{lag}": gap for lag, gap in zip(lags.tolist(), gap_L.unbind(), strict=True)}
        group_M = batch.group_B.unsqueeze(1).expand_as(batch.host_mask_BT)[batch.host_mask_BT]
        names = sorted({batch.tasks[group] for group in group_M.unique().tolist()})
        if len(names) > 1:
            label_P = torch.tensor([names.index(task) if task in names else 0 for task in batch.tasks], device="cpu")
            gap_K = by_label(log_r_M.abs(), label_P[group_M].to(log_r_M.device, non_blocking=True), len(names))
            measured |= {f"mismatch_task_{name}": gap for name, gap in zip(names, gap_K.unbind(), strict=True)}
    return measured


def on_the_host(
    columns: Mapping[str, Any], ranks: Ranks, of_all_ranks: Mapping[str, Tensor] | None = None
) -> dict[str, float]:
    """Device scalars by name, read in a single transfer, for which the host waits: `columns` summed over ranks, and
    `of_all_ranks` as they are."""
    summed, alike = ranks.summed(torch.stack(list(columns.values()))), of_all_ranks or {}
    values = torch.cat([summed, torch.stack(list(alike.values()))]) if alike else summed
    return dict(zip([*columns, *alike], values.cpu().tolist(), strict=True))


def passes(batch: Batch, recipe: ResolvedRecipe, ranks: Ranks) -> Iterator[tuple[Tensor, bool, bool]]:
    """Row indices of each pass of this rank (on the host), whether it counts, and whether it is the last."""
    parts = batch.micro_batches(recipe.packing, recipe.optimiser.micro_batch_tokens)
    own = shares([int(batch.length_B[rows].sum()) for rows in parts], ranks.world)[ranks.rank]
    for place, (index, counts) in enumerate(own, start=1):
        yield parts[index], counts, place == len(own)


def rows_with_gradient(advantage_BT: Tensor, recipe: ResolvedRecipe) -> Tensor:
    """Row indices (on the host) that the loss depends on.

    A rollout without an advantage (its whole group has equal rewards) counts in averages but has no gradient, unless a
    KL penalty, entropy bonus, router loss or user's own loss applies to every rollout.
    """
    penalised = recipe.kl.coefficient > 0 and recipe.kl.where == "loss"
    is_free = isinstance(recipe.loss, OwnLoss)  # no factor of it need be the advantage
    is_of_all = penalised or is_free or recipe.entropy_bonus > 0 or recipe.router_loss > 0
    everyone = torch.arange(len(advantage_BT), device="cpu")
    if is_of_all:
        return everyone
    rows = (advantage_BT != 0).any(dim=1).cpu().nonzero().flatten()
    # With no rows there would be no gradient at all, and AdamW would skip the step.
    return rows if len(rows) else everyone


def scores_of(policy: Scoring, part: Batch, recipe: ResolvedRecipe) -> Scores:
    """Scores of the tokens of one pass under `policy`."""
    return policy.score(
        part.tokens_BT,
        recipe.generation.temperature,
        length_B=part.length_B,
        packing=part.packing(recipe.packing),
        entropy_gradient=recipe.entropy_bonus > 0,
    )


def token_objective(
    part: Batch, advantage_BT: Tensor, scores: Scores, recipe: ResolvedRecipe
) -> tuple[Tensor, dict[str, Tensor], Tensor]:
    """Per-token loss with KL penalty and entropy bonus, the values whose token means are logged, and log r, all [B, T].

    loss = policy loss + kl.coefficient KL - entropy_bonus H
    """
    kl = recipe.kl
    logprobs, entropy = scores.logprobs_BT, scores.entropy_BT
    mask, behaviour = part.mask_BT, part.behaviour_BT
    given = LossInputs(
        logprobs_BT=logprobs,
        behaviour_BT=behaviour,
        advantage_BT=advantage_BT.expand_as(mask),
        mask_BT=mask,
        start_BT=part.start_BT,
    )
    found, factors = token_loss(recipe.loss, recipe.correction, given)
    loss = found.loss_BT
    log_r_BT = log_ratio(logprobs.detach(), behaviour, mask)
    ratio = log_r_BT.double().clamp(-MAX_LOG_RATIO, MAX_LOG_RATIO).exp()
    logged = {
        "ratio_clipped": found.clipped_BT,
        "entropy": entropy,
        "mismatch": (logprobs.detach() - behaviour).abs(),
        "ratio_mean": ratio,
        "ratio_square": ratio.square(),
    }
    if factors is not None:
        logged |= {"corrected_below": factors.below_BT, "corrected_above": factors.above_BT}
    if part.reference_BT is not None:
        logged["kl"] = token_kl(kl.estimator, logprobs if kl.where == "loss" else behaviour, part.reference_BT, mask)
        if kl.where == "loss":
            loss = loss + kl.coefficient * logged["kl"]
    if recipe.entropy_bonus > 0:
        loss = loss - recipe.entropy_bonus * torch.where(mask, entropy, torch.zeros_like(entropy))
    return loss, logged, log_r_BT
