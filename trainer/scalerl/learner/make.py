"""The engines for a recipe, and the learner of one rank."""

from functools import partial
from pathlib import Path

import torch

from scalerl.learner.engine import EngineMaker
from scalerl.learner.ranks import Ranks
from scalerl.learner.torch_engine import TorchEngine
from scalerl.learner.torch_learner import TorchLearner
from scalerl.model.build import new_policy
from scalerl.model.device import deterministic_on_cpu, device_of
from scalerl.recipe import LearnerSettings, ResolvedRecipe
from scalerl.weights.hugging_face import FileWeights


def engine_maker(settings: LearnerSettings, ranks: Ranks, device: torch.device) -> EngineMaker:
    """Maker of a run's engines; sharding libraries are imported only if they are used."""
    match settings.type:
        case "torch":
            return TorchEngine
        case "deepspeed":
            from scalerl.learner.deepspeed_engine import DeepSpeedEngine, imported_deepspeed

            library = imported_deepspeed(device)
            return partial(DeepSpeedEngine, library, settings=settings, ranks=ranks, device=device)
        case "fsdp":
            from torch.distributed.device_mesh import init_device_mesh

            from scalerl.learner.fsdp_engine import FsdpEngine

            return partial(FsdpEngine, ranks=ranks, mesh=init_device_mesh(device.type, (ranks.world,)))


def rank_learner(recipe: ResolvedRecipe, start: Path, ranks: Ranks, *, seed: int = 0) -> TorchLearner:
    """The learner of one rank, which reads its share of the weights in the folder `start`; collective.

    An adapter is drawn from the run's seed.
    """
    device = device_of(recipe)
    deterministic_on_cpu(device)  # as in a run's own process
    engines = engine_maker(recipe.learner, ranks, device)
    # The coordinator checked the folder when it loaded it.
    policy = new_policy(recipe, outline=True)
    drawn = policy.initial_adapter(torch.Generator().manual_seed(seed))
    learner = TorchLearner(policy, recipe, engines=engines, weights=FileWeights(start))
    if drawn:
        learner.trained.take(drawn)
    return learner
