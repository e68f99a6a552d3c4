"""What each rank of `test_engines` executes: `rank_program.py RANK WORLD STORE KINDS CASES`.

The first prints what it found as JSON.
Every finding is held against the engine of one process, which this process builds beside the sharded one.
"""

import json
import math
import os
import sys
from pathlib import Path

import torch
from torch import distributed as dist
from torch.distributed import FileStore  # pyright: ignore[reportPrivateImportUsage]  torch does not list it
from trainer.learner_cases import policy_of, random_groups
from trainer.own_functions import GOOD, own_function, own_loss
from trainer.tiny import make_group, tiny_recipe
from trainer.tiny_adapter import adapted_recipe
from trainer.tiny_text_model import text_model

from scalerl.learner.batch import make_batch
from scalerl.learner.make import rank_learner
from scalerl.learner.ranks import join
from scalerl.learner.torch_learner import TorchLearner
from scalerl.model.build import new_policy
from scalerl.recipe import DeepSpeedSettings, ResolvedRecipe
from scalerl.recipe.learner import FsdpSettings
from scalerl.tokens.symbols import EOS_ID

RANK, WORLD, STORE = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
ENGINES = {
    "zero2": DeepSpeedSettings(zero=2, ranks=WORLD),
    "zero3": DeepSpeedSettings(zero=3, ranks=WORLD),
    "fsdp": FsdpSettings(ranks=WORLD),
    "zero2 offloaded": DeepSpeedSettings(zero=2, offload="cpu", ranks=WORLD),
    "zero3 offloaded": DeepSpeedSettings(zero=3, offload="cpu", ranks=WORLD),
}
SMALL = {"model": {"layers": 2}, "optimiser": {"warmup_steps": 0, "micro_batch_tokens": 40}}
MOE = {"type": "moe", "hidden": 16, "layers": 2, "heads": 2, "mlp": 16, "experts": 4, "experts_per_token": 2}
CASES = {
    "plain": SMALL,
    "critic": {
        **SMALL,
        "critic": {"type": "value_network"},
        "advantage": "batch",
        "zero_variance": "keep",
        "loss": {"type": "grpo"},
        "correction": {"type": "truncate"},
        "off_policy": {"type": "ppo_off_policy", "k": 2},
        "epochs": 2,
    },
    "penalty": {**SMALL, "kl": {"coefficient": 0.1}},
    "mixed": {**SMALL, "parameters": "mixed"},
    "packed": {**SMALL, "optimiser": {**SMALL["optimiser"], "packing": "sequences", "gradient_checkpointing": True}},
    "one pass": {"model": {"layers": 2}, "optimiser": {"warmup_steps": 0}},
    "experts": {**SMALL, "model": {**MOE, "router_loss": 0.01}},
    "adapter": {
        "optimiser": {**SMALL["optimiser"], "learning_rate": 1e-2},
        "kl": {"coefficient": 0.1},
        "loss": {"type": "grpo"},
        "correction": {"type": "truncate"},
        "off_policy": {"type": "ppo_off_policy", "k": 2},
        "epochs": 2,
    },
    "own": {
        **SMALL,
        "loss": own_loss(
            STORE.with_suffix(f".own-{RANK}"), GOOD.replace("given.behaviour_BT", "given.start_BT"), start=True
        ).model_dump(),
        "aggregation": own_function(STORE.with_suffix(f".own-{RANK}"), "aggregation", scale=2.0).model_dump(),
        "off_policy": {"type": "ppo_off_policy", "k": 2},
        "epochs": 2,
    },
}
"""In `adapter` only an adapter beside a model of `transformers` is trained. In `one pass` the second rank has no rows.
In `mixed` only the first gradient can be compared: a weight that differs by 1e-7 may be another number in BF16."""


def recipe_of(case):
    """The recipe of a case; the first rank makes the model that an adapter is trained on."""
    if case != "adapter":
        return tiny_recipe(**CASES[case])
    folder = STORE.parent / f"{STORE.name} qwen"
    if RANK == 0 and not folder.exists():
        text_model(folder, hidden=32)
    dist.barrier()
    return adapted_recipe(folder, **CASES[case])


def start_of(recipe):
    """The policy that the learner of one process begins with."""
    if recipe.model.type != "pretrained":
        return policy_of(recipe)
    policy = new_policy(recipe)
    policy.load_weights(Path(recipe.model.path))
    policy.import_weights(policy.initial_adapter(torch.Generator().manual_seed(7)))
    return policy


def learner_of(recipe, kind):
    """The learner of one process, or this rank's, which reads its share of a folder with the same weights."""
    if kind == "torch":
        return TorchLearner(start_of(recipe), recipe)
    folder = STORE.parent / f"{STORE.name} {recipe.identity(0)}"
    if recipe.model.type == "pretrained":
        folder = Path(recipe.model.path)
    elif RANK == 0 and not folder.exists():
        policy_of(recipe).save(folder, eos_token_id=EOS_ID)
    dist.barrier()
    settings = recipe.model_dump() | {"cluster": {"type": "wall"}, "learner": ENGINES[kind].model_dump()}
    return rank_learner(ResolvedRecipe.model_validate(settings), folder, ranks, seed=7)


def gap(ours, theirs):
    """The largest difference of a number of two rows, relative above 1."""
    assert ours.keys() == theirs.keys()
    numbers = [name for name, value in theirs.items() if isinstance(value, float)]
    return max(abs(ours[name] - theirs[name]) / max(1.0, abs(theirs[name])) for name in numbers)


def published(learner):
    """The weights that ranks publish layer by layer; all of them call this."""
    return {name: tensor.clone() for layer in learner.trained.exported_layers() for name, tensor in layer.items()}


def weight_gap(ours, theirs):
    found, expected = published(ours), theirs.weights()
    assert found.keys() == expected.keys()
    return max(float((tensor - expected[name]).abs().max()) for name, tensor in found.items())


def kept(learner):
    """Its state as a checkpoint gives it back; the files stay until the program ends."""
    parts = learner.write_kept(STORE.parent)
    return learner.state_dict() | {"kept": [f"{STORE.parent}/{part['file']}" for part in parts]}


def gradient_of(learner):
    """The whole gradient after the last pass, by parameter."""
    network = learner.engine.network
    if hasattr(learner.engine, "engine"):
        from deepspeed.utils import safe_get_full_grad

        scale = learner.engine.scale
        return {name: safe_get_full_grad(parameter) / scale for name, parameter in network.named_parameters()}
    found = {name: parameter.grad for name, parameter in network.named_parameters()}
    return {name: grad.full_tensor() if hasattr(grad, "full_tensor") else grad for name, grad in found.items()}


def gradient_gap(case, kind):
    """Of the norm of each parameter's gradient, the largest share by which it is off."""
    recipe = tiny_recipe(**CASES[case])
    groups = random_groups(policy_of(tiny_recipe()))
    found = []
    for one in (kind, "torch"):
        learner = learner_of(recipe, one)
        batch = make_batch(groups)
        learner.accumulate(batch, learner.advantages(groups, batch))
        found.append(gradient_of(learner))
    ours, theirs = found
    return max(float((ours[name] - grad).norm() / grad.norm()) for name, grad in theirs.items())


def steps(case, kind):
    """Three steps beside those of one process, then one of each resumed from what the other saved."""
    recipe = recipe_of(case)
    groups = random_groups(policy_of(tiny_recipe()))
    ours, theirs = learner_of(recipe, kind), learner_of(recipe, "torch")
    along = max(gap(ours.step(groups).metrics, theirs.step(groups).metrics) for _ in range(3))
    apart = weight_gap(ours, theirs)
    taken, given = learner_of(recipe, kind), learner_of(recipe, "torch")
    taken.load_state_dict(theirs.state_dict())
    given.load_state_dict(kept(ours))
    expected = theirs.step(groups).metrics
    resumed = max(gap(one.step(groups).metrics, expected) for one in (taken, given))
    return {"along": along, "weights": apart, "resumed": resumed}


def bad_steps(kind):
    """A NaN in one row of one rank, then a finite gradient that the learner wants skipped, then steps as if neither."""
    recipe = tiny_recipe(**CASES["plain"])
    groups = random_groups(policy_of(tiny_recipe()))
    bad = make_group("bad", [[5, 1], [7, 1]], [[-1.0, math.nan], [-1.0, -1.0]], [1.0, -1.0])
    ours, theirs = learner_of(recipe, kind), learner_of(recipe, "torch")
    for learner in (ours, theirs):
        learner.step(groups)
    before = published(ours)
    row = ours.step([*groups, bad]).metrics
    count = ours.bad_steps
    batch = make_batch(groups)
    ours.accumulate(batch, ours.advantages(groups, batch))
    ours.engine.norm(1.0)
    ours.engine.skip()
    equal = all(torch.equal(tensor, before[name]) for name, tensor in published(ours).items())
    theirs.version = 2
    after = [(ours.step(groups).metrics, theirs.step(groups).metrics) for _ in range(2)]
    everywhere = int(ranks.summed(torch.tensor(int(row["skipped"] and equal and count == 1))))
    return {
        "ranks_that_skipped": everywhere,
        "loss": row["loss"],
        "after": max(gap(mine, other) for mine, other in after),
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    ranks = join(FileStore(str(STORE), WORLD), rank=RANK, world=WORLD)
    kinds, cases = sys.argv[4].split(","), sys.argv[5].split(",")
    found = {
        kind: {
            "gradient": {case: gradient_gap(case, kind) for case in ("mixed", "one pass")},
            "steps": {case: steps(case, kind) for case in cases},
            "bad": bad_steps(kind),
        }
        for kind in kinds
    }
    if RANK == 0:
        print("FOUND " + json.dumps(found), flush=True)
    dist.barrier()
    os._exit(0)  # taking torch down takes a busy machine seconds
