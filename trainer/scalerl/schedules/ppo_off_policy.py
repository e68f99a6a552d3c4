"""PPO-off-policy-k (ScaleRL §2): generate k batches with one frozen policy, then take k optimiser steps on them."""

from scalerl.cluster.cluster import Cluster, TrainedStep
from scalerl.schedules.resampling import MAX_BATCHES, discard


def ppo_off_policy(cluster: Cluster) -> TrainedStep:
    """Advance the clock until the next optimiser step is done; generate first if no batch is left."""
    if not cluster.pending:
        generate(cluster)
    start = max(cluster.clock.now, cluster.clock.trainer_free)
    return cluster.train(cluster.pending.pop(0), start)


def generate(cluster: Cluster) -> None:
    """Wait for the trainer, push its weights, and generate k batches; groups stay in the order of their draws."""
    if cluster.learner.version > 0:
        cluster.synchronise()
    k, prompts = cluster.recipe.off_policy.k, cluster.recipe.batch.prompts
    to_discard = MAX_BATCHES * k * prompts
    while len(cluster.ready) < k * prompts:
        for _ in range(k * prompts - len(cluster.ready)):
            cluster.admit()
        while cluster.is_generating:
            cluster.advance()
        to_discard -= discard(cluster, to_discard)
    groups = [group for _, group in sorted(cluster.ready, key=lambda entry: entry[0])]
    cluster.ready = []
    cluster.pending = [groups[i * prompts : (i + 1) * prompts] for i in range(k)]
