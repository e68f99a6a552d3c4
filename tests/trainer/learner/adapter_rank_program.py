"""What each rank of `test_adapter_engines` executes: `adapter_rank_program.py RANK WORLD STORE MODEL`.

The first prints what it found as JSON. Every engine trains an adapter on the model in the folder MODEL, beside the
engine of one process.
"""

import copy
import json
import os
import sys
from pathlib import Path

import torch
from torch import distributed as dist
from torch.distributed import FileStore  # pyright: ignore[reportPrivateImportUsage]  torch does not list it
from trainer.learner_cases import random_groups
from trainer.tiny_adapter import adapted_recipe

from scalerl.learner.make import rank_learner
from scalerl.learner.ranks import join
from scalerl.learner.torch_learner import TorchLearner
from scalerl.model.build import new_policy
from scalerl.recipe import DeepSpeedSettings, FsdpSettings, ResolvedRecipe

RANK, WORLD, STORE, MODEL = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]), Path(sys.argv[4])
ENGINES = {
    "zero2": DeepSpeedSettings(zero=2, ranks=WORLD),
    "zero3": DeepSpeedSettings(zero=3, ranks=WORLD),
    "fsdp": FsdpSettings(ranks=WORLD),
}
RECIPE = adapted_recipe(
    MODEL,
    optimiser={"learning_rate": 1e-2, "warmup_steps": 0, "micro_batch_tokens": 40},
    kl={"coefficient": 0.1},
    loss={"type": "grpo"},
    correction={"type": "truncate"},
    off_policy={"type": "ppo_off_policy", "k": 2},
    epochs=2,
)
"""With a reference and a copy of the start of each round."""


def learner_of(kind):
    """The learner of one process, or this rank's."""
    if kind == "torch":
        policy = new_policy(RECIPE)
        policy.load_weights(MODEL)
        policy.import_weights(policy.initial_adapter(torch.Generator().manual_seed(7)))
        return TorchLearner(policy, RECIPE)
    settings = RECIPE.model_dump() | {"cluster": {"type": "wall"}, "learner": ENGINES[kind].model_dump()}
    return rank_learner(ResolvedRecipe.model_validate(settings), MODEL, ranks, seed=7)


def published(learner):
    return {name: tensor.clone() for layer in learner.trained.exported_layers() for name, tensor in layer.items()}


def weight_gap(ours, theirs):
    found, expected = published(ours), theirs.weights()
    assert found.keys() == expected.keys()
    return max(float((tensor - expected[name]).abs().max()) for name, tensor in found.items())


def kept(learner):
    """Its state as a checkpoint gives it back, and the bytes of the ranks' files."""
    parts = learner.write_kept(STORE.parent)
    paths = [STORE.parent / part["file"] for part in parts]
    return learner.state_dict() | {"kept": list(map(str, paths))}, sum(part["bytes"] for part in parts)


def gap(ours, theirs):
    numbers = [name for name, value in theirs.items() if isinstance(value, float)]
    return max(abs(ours[name] - theirs[name]) / max(1.0, abs(theirs[name])) for name in numbers)


def compared(kind):
    """Four steps beside those of one process, then two more of each resumed from what the other saved."""
    ours, theirs = learner_of(kind), learner_of("torch")
    groups = random_groups(theirs.policy)
    first = weight_gap(ours, theirs)
    rows = [(ours.step(groups).metrics, theirs.step(groups).metrics) for _ in range(4)]
    saved, size = kept(ours)
    taken, given, again = learner_of(kind), learner_of("torch"), learner_of(kind)
    taken.load_state_dict(copy.deepcopy(theirs.state_dict()))
    given.load_state_dict(saved)
    again.load_state_dict(saved)
    apart, resumed, same = weight_gap(ours, theirs), 0.0, True
    for _ in range(2):
        expected, mine = theirs.step(groups).metrics, ours.step(groups).metrics
        resumed = max(resumed, *(gap(one.step(groups).metrics, expected) for one in (taken, given)))
        same = same and again.step(groups).metrics == mine
    return {
        "first": first,
        "along": max(gap(*row) for row in rows),
        "moved": float(theirs.policy.exported_weights().popitem()[1].abs().max()),
        "weights": apart,
        "resumed": resumed,
        "same": same,
        "bytes": size,
        "adapter": 4 * theirs.size.trained_parameters,
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    ranks = join(FileStore(str(STORE), WORLD), rank=RANK, world=WORLD)
    found = {kind: compared(kind) for kind in ENGINES}
    if RANK == 0:
        print("FOUND " + json.dumps(found), flush=True)
    dist.barrier()
    os._exit(0)  # taking torch down takes a busy machine seconds
