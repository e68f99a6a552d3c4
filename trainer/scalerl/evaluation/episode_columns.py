"""Columns of the run log about episodes; rows about tasks of one prompt and one answer have none of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from scalerl.rollout import EPISODE_ENDS, Rollout


def episode_columns(rollouts: Sequence[Rollout]) -> dict[str, float]:
    """Mean turns, rewards and tokens of the environment of those rollouts that are episodes; empty without any."""
    played = [(one, one.episode) for one in rollouts if one.episode is not None]
    if not played:
        return {}
    turns = [turn for one, _ in played for sample in one.samples if sample.episode for turn in sample.episode.turns]
    took = sum(turn.environment_s for turn in turns)
    return {
        **({"environment_s": took / len(played)} if took else {}),
        "turns": len(turns) / len(played),
        "earned": sum(episode.earned for _, episode in played) / len(played),
        "environment_tokens": sum(
            sum(len(sample.tokens) for sample in one.samples) - one.num_written for one, _ in played
        )
        / len(played),
    }


def end_shares(counts: Mapping[str, int]) -> dict[str, dict[str, float]]:
    """Column `ends`, the share of episodes that ended for each reason; no column without an episode."""
    total = sum(counts.values())
    return {"ends": {end: counts.get(end, 0) / total for end in EPISODE_ENDS}} if total else {}


def mean_episode_columns(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The columns of several tasks together, weighted by the `share` of each task of episodes."""
    played = [part for part in parts if "turns" in part]
    if not played:
        return {}
    total = sum(part["share"] for part in played)

    def mean(values: Sequence[float]) -> float:
        return sum(part["share"] * value for part, value in zip(played, values, strict=True)) / total

    return {
        **{name: mean([part[name] for part in played]) for name in ("turns", "earned", "environment_tokens")},
        "ends": {end: mean([part["ends"][end] for part in played]) for end in EPISODE_ENDS},
    }
