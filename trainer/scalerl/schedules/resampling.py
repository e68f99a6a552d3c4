"""DAPO's dynamic sampling (arXiv 2503.14476, section 3.2): batches full of groups that have something to teach."""

from scalerl.cluster.cluster import Cluster

MAX_BATCHES = 10
"""Batches of groups thrown away for one that is trained on; what comes after fills the batch as it is. Without an end
a policy that is always right, or always wrong, would generate for ever."""


def discard(cluster: Cluster, most: int) -> int:
    """Throw away up to `most` finished groups whose rollouts all got one reward, oldest first; returns how many.

    Nothing happens unless the recipe resamples.
    """
    if cluster.recipe.zero_variance != "resample":
        return 0
    flat = [number for number, group in cluster.ready if group.zero_variance][:most]
    cluster.ready = [entry for entry in cluster.ready if entry[0] not in set(flat)]
    return len(flat)
