"""What each rank of `test_engines_together` executes: `together_program.py RANK WORLD FOLDER KINDS`.

Every learner takes one step on the rollouts of every generator, from the weights that generated them, and the first
rank leaves what it found and the weights after the step in the folder.
"""

import json
import os
import pickle
import sys
from pathlib import Path

import torch
from torch import distributed as dist
from torch.distributed import FileStore  # pyright: ignore[reportPrivateImportUsage]  torch does not list it
from trainer.generator_cases import POLICIES
from trainer.tiny import tiny_recipe

from scalerl.learner.make import rank_learner
from scalerl.learner.ranks import join
from scalerl.learner.torch_learner import TorchLearner
from scalerl.model.policy import frozen_copy
from scalerl.recipe import DeepSpeedSettings, FsdpSettings, ResolvedRecipe
from scalerl.tokens.symbols import EOS_ID

RANK, WORLD, FOLDER = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
ENGINES = {
    "zero2": DeepSpeedSettings(zero=2, ranks=WORLD),
    "zero3": DeepSpeedSettings(zero=3, ranks=WORLD),
    "fsdp": FsdpSettings(ranks=WORLD),
}
RECIPE = tiny_recipe(
    model={"hidden": 64, "layers": 2, "heads": 2, "mlp": 64}, optimiser={"learning_rate": 1e-2, "warmup_steps": 0}
)


def learner_of(kind):
    if kind == "torch":
        return TorchLearner(frozen_copy(POLICIES[0]).requires_grad_(True), RECIPE)
    folder = FOLDER / f"model{WORLD}"
    if RANK == 0 and not folder.exists():
        POLICIES[0].save(folder, eos_token_id=EOS_ID)
    dist.barrier()
    settings = RECIPE.model_dump() | {"cluster": {"type": "wall"}, "learner": ENGINES[kind].model_dump()}
    return rank_learner(ResolvedRecipe.model_validate(settings), folder, ranks)


if __name__ == "__main__":
    torch.set_num_threads(1)
    ranks = join(FileStore(str(FOLDER / f"store{WORLD}"), WORLD), rank=RANK, world=WORLD)
    groups = pickle.loads((FOLDER / "groups.pickle").read_bytes())
    found = {}
    for kind in sys.argv[4].split(","):
        for generator, rollouts in groups.items():
            learner = learner_of(kind)
            found[f"{kind} {generator}"] = learner.step(rollouts).metrics["mismatch"]
            layers = learner.trained.exported_layers()
            weights = {name: tensor.clone() for layer in layers for name, tensor in layer.items()}
            if RANK == 0:
                torch.save(weights, FOLDER / f"{kind} {WORLD}.pt")
    if RANK == 0:
        (FOLDER / f"found{WORLD}.json").write_text(json.dumps(found))
    dist.barrier()
    os._exit(0)  # taking torch down takes a busy machine seconds
