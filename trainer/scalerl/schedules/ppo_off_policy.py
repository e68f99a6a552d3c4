"""PPO-off-policy-k (ScaleRL §2): generate k batches with one frozen policy, then take k optimiser steps on them."""

from scalerl.cluster.cluster import Cluster, TrainedStep
from scalerl.schedules.resampling import MAX_BATCHES, discard


def ppo_off_policy(cluster: Cluster) -> TrainedStep:
    """Advance the clock until the next optimiser step is done; generate first if no batch is left."""
    if not cluster.pending:
        generate(cluster)
    start = max(cluster.clock.now, cluster.clock.trainer_free)
    step = cluster.train(cluster.pending[0], start)
    del cluster.pending[0]
    return step


def generate(cluster: Cluster) -> None:
    """Wait for the trainer, push its weights, and generate k batches; groups stay in the order of their draws.

    A call after a stop continues with the groups in progress.
    """
    if cluster.learner.version > 0 and not cluster.groups_in_system:
        cluster.synchronise()
    k, prompts = cluster.recipe.off_policy.k, cluster.recipe.batch.prompts
    while len(cluster.ready) < k * prompts:
        if not cluster.is_generating:
            for _ in range(k * prompts - len(cluster.ready)):
                cluster.admit()
        while cluster.is_generating:
            cluster.advance()
        discard(cluster, MAX_BATCHES * k * prompts)
    groups = [group for _, group in sorted(cluster.ready, key=lambda entry: entry[0])]
    cluster.ready = []
    cluster.pending = [groups[i * prompts : (i + 1) * prompts] for i in range(k)]
