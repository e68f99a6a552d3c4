"""Credit by turn: each turn of an episode is compared with the same turn of the group's other episodes.

    G_t = r_t + gamma r_(t+1) + gamma^2 r_(t+2) + ...          rewards from turn t on, discounted
    A_(i,t) = G_(i,t) - mean_j G_(j,t)                         over the episodes j that reached turn t

then divided as the recipe's `advantage` says (turn-level credit of multi-turn GRPO, arXiv 2505.11821). A turn that only
one episode reached has no advantage.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from scalerl.objective.advantages import Rewards
from scalerl.rollout import Group, Rollout


@dataclass(frozen=True, kw_only=True)
class Credited:
    """The tokens that get one advantage: those of a turn, or a whole rollout."""

    row: int
    """Row of the rewards: a group, or one turn of a group."""
    column: int
    """Index of the rollout in its group."""
    rollout: int
    """Index of the rollout in the batch."""
    start: int
    """First token in the batch's row, prompt included."""
    stop: int


def returns_to_go(rewards: Sequence[float], discount: float) -> list[float]:
    """G_t of each turn: returns_to_go([0, 1], 0.5) is [0.5, 1]."""
    found, later = [], 0.0
    for reward in reversed(rewards):
        later = reward + discount * later
        found.append(later)
    return found[::-1]


def turn_rewards(rollout: Rollout, reward: float) -> list[float]:
    """Rewards of the turns of an episode whose rollout got this reward in all.

    What the rollout got beside its environment's rewards, such as a length penalty, belongs to the last turn.
    """
    assert rollout.episode is not None
    rewards = [turn.reward for turn in rollout.episode.turns]
    rewards[-1] += reward - rollout.episode.earned
    return rewards


def credited_rewards(groups: Sequence[Group], rewards: Sequence[Sequence[float]]) -> tuple[Rewards, list[Credited]]:
    """Rewards [P, G] whose rows are compared, and the tokens that get each one's advantage.

    A row is a group, or a turn number of a group whose episodes are credited by turn. `rewards` are those of the
    groups' rollouts.
    """
    rows: list[list[float]] = []
    missing: list[tuple[int, int]] = []
    credited: list[Credited] = []
    first = 0
    for group, of_group in zip(groups, rewards, strict=True):
        if not group.is_credited_by_turn:
            for column, rollout in enumerate(group.rollouts):
                end = len(rollout.prompt.tokens) + len(rollout.tokens)
                credited.append(Credited(row=len(rows), column=column, rollout=first + column, start=0, stop=end))
            rows.append(list(of_group))
        else:
            base, most = len(rows), 0
            for column, (rollout, reward) in enumerate(zip(group.rollouts, of_group, strict=True)):
                assert rollout.episode is not None
                shift = len(rollout.prompt.tokens)
                returns = returns_to_go(turn_rewards(rollout, reward), rollout.episode.discount)
                most = max(most, len(returns))
                rows += [[0.0] * len(group.rollouts) for _ in range(base + most - len(rows))]
                for number, turn in enumerate(rollout.episode.turns):
                    rows[base + number][column] = returns[number]
                    start, stop = shift + turn.start, shift + turn.stop
                    row = base + number
                    credited.append(Credited(row=row, column=column, rollout=first + column, start=start, stop=stop))
            reached = {(one.row, one.column) for one in credited if one.row >= base}
            missing += [
                (row, column)
                for row in range(base, len(rows))
                for column in range(len(group.rollouts))
                if (row, column) not in reached
            ]
        first += len(group.rollouts)
    given = Rewards.of(rows)
    for row, column in missing:
        given.mask_PG[row, column] = False
    return given, credited


def spread(advantage_PG: Tensor, credited: Sequence[Credited], mask_BT: Tensor) -> Tensor:
    """Advantages of the credited tokens, [B, T], 0 elsewhere; on the host."""
    advantage_BT = mask_BT.new_zeros(mask_BT.shape, dtype=advantage_PG.dtype)
    for one in credited:
        advantage_BT[one.rollout, one.start : one.stop] = advantage_PG[one.row, one.column]
    return advantage_BT
