"""DAPO's dynamic sampling (arXiv 2503.14476, section 3.2): batches full of groups with a learning signal."""

from scalerl.cluster.cluster import Cluster

MAX_BATCHES = 10
"""Maximum number of discarded batches of groups per trained batch; later groups fill the batch as they are. Without a
limit a policy that is always right, or always wrong, would generate for ever."""


def discard(cluster: Cluster, most: int) -> None:
    """Discard finished groups whose rollouts all got the same reward, oldest first, up to `most` before each step.

    Does nothing unless the recipe resamples.
    """
    if cluster.recipe.zero_variance != "resample":
        return
    flat = [number for number, group in cluster.ready if group.zero_variance][: most - cluster.discarded]
    cluster.ready = [entry for entry in cluster.ready if entry[0] not in set(flat)]
    cluster.discarded += len(flat)
