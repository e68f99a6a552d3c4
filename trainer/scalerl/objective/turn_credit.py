"""Credit by turn: each turn of an episode is compared with the same turn of the group's other episodes.

    G_t = r_t + gamma r_(t+1) + gamma^2 r_(t+2) + ...          rewards from turn t on, discounted
    A_(i,t) = G_(i,t) - mean_j G_(j,t)                         over the episodes j that reached turn t

then divided as the recipe's `advantage` says (turn-level credit of multi-turn GRPO, arXiv 2505.11821). A turn that only
one episode reached has no advantage.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from scalerl.objective.advantages import Rewards
from scalerl.rollout import Group, returns_to_go


@dataclass(frozen=True, kw_only=True)
class Credited:
    """The tokens that get one advantage: those of a turn, or a whole rollout."""

    row: int
    """Row of the rewards: a group, or one turn of a group."""
    column: int
    """Index of the rollout in its group."""
    rollout: int
    """Index in the batch of the rollout, or of one of its conversations."""
    start: int
    """First token in the batch's row, prompt included."""
    stop: int


def credited_rewards(groups: Sequence[Group], penalty_BT: Tensor | None = None) -> tuple[Rewards, list[Credited]]:
    """Rewards [P, G] whose rows are compared, and the tokens that get each one's advantage.

    A row is a group, or a turn number of a group whose episodes are credited by turn. The penalties of tokens, on the
    host, are subtracted from the reward of their rollout or turn.
    """
    rows: list[list[float]] = []
    credited: list[Credited] = []
    is_compared: set[tuple[int, int]] = set()
    rollout_index = 0
    for group in groups:
        base = len(rows)
        for column, (rollout, reward) in enumerate(zip(group.rollouts, group.rewards, strict=True)):
            shift, spans, rewards, discount = len(rollout.prompt.tokens), [(0, len(rollout.tokens))], [reward], 1.0
            if rollout.episode is not None and rollout.episode.by_turn:
                spans = [(turn.start, turn.stop) for turn in rollout.episode.turns]
                rewards, discount = rollout.episode.rewards(reward), rollout.episode.discount
            if penalty_BT is not None:
                penalties = [float(penalty_BT[rollout_index, shift + a : shift + b].sum()) for a, b in spans]
                penalties[-1] += float(penalty_BT[rollout_index + 1 : rollout_index + len(rollout.samples)].sum())
                rewards = [one - penalty for one, penalty in zip(rewards, penalties, strict=True)]
            rows += [[0.0] * len(group.rollouts) for _ in range(base + len(spans) - len(rows))]
            returns = returns_to_go(rewards, discount)
            for row, (value, (start, stop)) in enumerate(zip(returns, spans, strict=True), start=base):
                rows[row][column] = value
                is_compared.add((row, column))
                found = Credited(row=row, column=column, rollout=rollout_index, start=shift + start, stop=shift + stop)
                credited.append(found)
            for place, other in enumerate(rollout.others, start=rollout_index + 1):
                stop = shift + len(other.tokens)
                credited.append(Credited(row=base, column=column, rollout=place, start=0, stop=stop))
            rollout_index += len(rollout.samples)
    given = Rewards.of(rows)
    is_compared_PG = torch.zeros_like(given.mask_PG)
    is_compared_PG[tuple(zip(*is_compared, strict=True))] = True
    return Rewards(rewards_PG=given.rewards_PG, mask_PG=is_compared_PG), credited


def rewards_at_tokens(groups: Sequence[Group], mask_BT: Tensor) -> Tensor:
    """Each rollout's reward at its last own token, [B, T] in float64; with credit by turn, each turn's at the last own
    token up to its end. 0 elsewhere; on the host."""
    rewards_BT = torch.zeros(mask_BT.shape, dtype=torch.float64, device="cpu")
    row = 0
    for group in groups:
        for rollout, reward in zip(group.rollouts, group.rewards, strict=True):
            for one in rollout.samples:
                own, episode, shift = mask_BT[row].nonzero().flatten().tolist(), one.episode, len(one.prompt.tokens)
                due = [(shift + len(one.tokens), reward)]
                if episode is not None and episode.by_turn:
                    stops = [shift + turn.stop for turn in episode.turns]
                    due = [*zip(stops, episode.rewards(reward), strict=True)]
                for stop, value in due:
                    if before := bisect_left(own, stop):
                        rewards_BT[row, own[before - 1]] += value
                row += 1
    return rewards_BT


def spread(advantage_PG: Tensor, credited: Sequence[Credited], mask_BT: Tensor) -> Tensor:
    """Advantages of the credited tokens, [B, T], 0 elsewhere; on the host."""
    advantage_BT = mask_BT.new_zeros(mask_BT.shape, dtype=advantage_PG.dtype)
    for one in credited:
        advantage_BT[one.rollout, one.start : one.stop] = advantage_PG[one.row, one.column]
    return advantage_BT
