"""PipelineRL-k (Piche et al. 2025; ScaleRL §3.1).

Generators run as long as they may run ahead. Finished groups are trained on as soon as a batch is full, starting with
those begun under the oldest weights. A rollout begun under version u must be trained on at version u + k at the latest.
Nothing is discarded for its age, so

* the trainer waits while groups that would become too old are still being written, and
* a new group is admitted only while all groups in the system can still be trained on in time.
"""

from scalerl.cluster.cluster import Cluster, TrainedStep
from scalerl.schedules.resampling import MAX_BATCHES, discard


def pipeline(cluster: Cluster) -> TrainedStep:
    """Advance the clock until the next optimiser step is done; its weights are then in transit.

    A trainer that becomes free during a decode step starts at once, on groups finished before that step. After a stop,
    the next call continues from the cluster's state: the groups of an abandoned step are still ready.
    """
    k, clock = cluster.recipe.off_policy.k, cluster.clock
    while True:
        cluster.catch_up()
        discard(cluster, MAX_BATCHES * cluster.recipe.batch.prompts)
        admit(cluster, k)
        chosen, start = choose_batch(cluster, k), max(clock.now, clock.trainer_free)
        if start > clock.now or chosen is None:
            cluster.advance()
        if chosen is not None and start <= clock.now:
            step = cluster.train([cluster.ready[i][1] for i in chosen], start)
            cluster.ready = [entry for i, entry in enumerate(cluster.ready) if i not in set(chosen)]
            cluster.push_weights()
            return step


def admit(cluster: Cluster, k: int) -> None:
    """Fill the generators' slots with new groups as far as staleness allows."""
    lag = cluster.learner.version - cluster.generator_version
    most = (k + 1 - lag) * cluster.recipe.batch.prompts
    while cluster.has_room and cluster.groups_in_system < most:
        cluster.admit()


def choose_batch(cluster: Cluster, k: int) -> list[int] | None:
    """Indices in `ready` of the next batch: groups begun under the oldest weights; ties go to those finished first.

    None while no batch is full, or while training on it would leave more old groups than can be trained on before their
    deadlines: of the remaining groups, at most j batches may be due within j more steps.
    """
    prompts = cluster.recipe.batch.prompts
    if len(cluster.ready) < prompts:
        return None
    order = sorted(range(len(cluster.ready)), key=lambda i: (cluster.ready[i][1].start_version, i))
    begun = [cluster.ready[i][1].start_version for i in order[prompts:]]
    begun += [assembly.start_version for assembly in cluster.assembling.values()]
    steps_left = sorted(version + k - cluster.learner.version for version in begun)
    feasible = all(count <= left * prompts for count, left in enumerate(steps_left, start=1))
    return sorted(order[:prompts]) if feasible else None
