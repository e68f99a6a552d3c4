"""Reads `checkpoint.pt`, the form that a run's state had up to commit 5b233c1: one pickle with our classes in it.

The classes have moved since; `MOVED` says where to. Only what such a file holds is ever unpickled. Weights had the
policy's own names, where today they have Hugging Face's. One stream of random numbers served all requests, where today
each request has a seed.
"""

import importlib
import pickle
import zipfile
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from scalerl.generator.random_numbers import draw_seeds
from scalerl.generator.request import Request
from scalerl.model.build import new_policy
from scalerl.recipe import ResolvedRecipe
from scalerl.run.checkpoint import damaged

MOVED = {
    ("scalerl.batch", "Prompt"): "scalerl.rollout",
    ("scalerl.batch", "Rollout"): "scalerl.rollout",
    ("scalerl.batch", "Group"): "scalerl.rollout",
    ("scalerl.generator", "Request"): "scalerl.generator.request",
    ("scalerl.cluster", "Assembly"): "scalerl.cluster.cluster",
}
"""Our classes in an old file, and the modules that define them today."""
OF_LIBRARIES = {"_codecs", "collections", "numpy", "numpy._core.multiarray", "torch", "torch._utils"}
SEED_PLACE = 6
"""Of the seeds among the arrays of a generator's rows."""


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Our classes where they stand today, and what NumPy and PyTorch need."""
        if (module, name) in MOVED:
            return getattr(importlib.import_module(MOVED[module, name]), name)
        if module in OF_LIBRARIES:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"unexpected class {module}.{name}")


def _load(file: Any, **_: Any) -> Any:
    """What PyTorch calls for a file that is not an archive of its own."""
    return _Unpickler(file).load()


def read_old_checkpoint(path: Path, recipe: ResolvedRecipe) -> dict[str, Any]:
    """What the run of this recipe saved, in the form of today; CannotResume if the file is damaged."""
    unpickling = SimpleNamespace(__name__=__name__, Unpickler=_Unpickler, load=_load)
    try:
        if zipfile.is_zipfile(path):  # PyTorch does not compare the checksums of what it reads
            with zipfile.ZipFile(path) as archive:
                if (member := archive.testzip()) is not None:
                    raise zipfile.BadZipFile(f"bad CRC-32 of {member}")
        state = torch.load(path, pickle_module=unpickling, weights_only=False)
    except (pickle.UnpicklingError, RuntimeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise damaged([f"{path} is not a checkpoint ({error})"], path) from error
    cluster = state["cluster"]
    for generator in [cluster["generator"]] if "generator" in cluster else cluster["generators"]:
        generator["weights"] = renamed(generator["weights"], recipe)
        give_seeds(generator)
    learner = cluster["learner"]
    learner |= {name: renamed(learner[name], recipe) for name in ("policy", "reference", "start") if name in learner}
    if "pushes" in cluster:
        cluster["pushes"] = [(arrival, version, renamed(own, recipe)) for arrival, version, own in cluster["pushes"]]
    return state


def give_seeds(generator: dict[str, Any]) -> None:
    """Seeds for the requests of a generator's state, drawn from the random numbers that it would have gone on with."""
    rng = np.random.default_rng(generator.pop("rng").numpy().view(np.uint32))
    for name in ("requests", "waiting"):
        seeds = draw_seeds(rng, len(generator[name]))
        generator[name] = [
            Request(**vars(request), seed=seed) for request, seed in zip(generator[name], seeds, strict=True)
        ]
    generator["rows"].insert(SEED_PLACE, np.array([one.seed for one in generator["requests"]], dtype=np.uint64))


def renamed(own: dict[str, Tensor], recipe: ResolvedRecipe) -> dict[str, Tensor]:
    """Weights under the policy's own names as copies under Hugging Face's; those that have these stay as they are."""
    policy = new_policy(recipe)
    if own.keys() == policy.exported_weights().keys():
        return own
    policy.load_state_dict(own)
    return {name: tensor.clone() for name, tensor in policy.exported_weights().items()}
