"""The run log's row of one optimiser step."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from scalerl.cluster.cluster import Cluster, TrainedStep
from scalerl.evaluation.episode_columns import end_shares, episode_columns
from scalerl.rollout import Group
from scalerl.run.run_log import Progress


def progress_of(cluster: Cluster) -> Progress:
    """Current progress of the run."""
    return Progress(
        step=cluster.learner.version,
        compute_gpu_hours=cluster.compute_gpu_hours,
        flops=cluster.clock.flops,
        tokens=cluster.clock.tokens,
    )


def train_row(cluster: Cluster, step: TrainedStep, wall_s: float, off_clock_s: Mapping[str, float]) -> dict[str, Any]:
    """The row of the step just taken; verdicts are counted since the previous such row.

    Idle shares, device-seconds, `tokens_per_s`, `mfu` and `off_clock_s` cover all of the run so far.
    """
    generator_idle, trainer_idle = cluster.idle_shares()
    return {
        "kind": "train",
        **asdict(progress_of(cluster)),
        **step.update.metrics,
        **rollout_columns(step.groups, step.version),
        "outcomes": cluster.judge.take_counts(),
        **end_shares(cluster.judge.take_ends()),
        "retired": len(cluster.pool.retired),
        "epoch": cluster.pool.epoch,
        "generator_idle": generator_idle,
        "trainer_idle": trainer_idle,
        "device_s": cluster.device_seconds(),
        "tokens_per_s": cluster.tokens_per_s,
        "mfu": cluster.model_flops_utilisation(),
        "off_clock_s": {work: round(seconds, 3) for work, seconds in off_clock_s.items()},
        "wall_s": wall_s,
    }


def rollout_columns(groups: Sequence[Group], version: int) -> dict[str, Any]:
    """Columns about the groups trained on under weights of this version.

    `staleness` counts tokens by trainer version minus the version that made the token.
    """
    rollouts = [rollout for group in groups for rollout in group.rollouts]
    rewards = [reward for group in groups for reward in group.rewards]
    versions = np.concatenate([one.versions if one.episode is None else one.versions[one.written] for one in rollouts])
    lags, counts = np.unique(version - versions, return_counts=True)
    return {
        "reward_mean": sum(rewards) / len(rewards),
        "pass_rate": sum(group.pass_rate for group in groups) / len(groups),
        "zero_variance": sum(group.zero_variance for group in groups) / len(groups),
        "truncated": sum(rollout.truncated for rollout in rollouts) / len(rollouts),
        "interrupted": sum(True in rollout.forced for rollout in rollouts) / len(rollouts),
        "mean_tokens": len(versions) / len(rollouts),
        **episode_columns(rollouts),
        "staleness": {str(lag): count for lag, count in zip(lags.tolist(), counts.tolist(), strict=True)},
    }
