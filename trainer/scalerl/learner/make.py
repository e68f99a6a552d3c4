"""The engines that a recipe asks for."""

import torch

from scalerl.learner.engine import EngineMaker
from scalerl.learner.ranks import Ranks
from scalerl.learner.torch_engine import TorchEngineMaker
from scalerl.recipe import LearnerSettings


def engine_maker(settings: LearnerSettings, ranks: Ranks, device: torch.device) -> EngineMaker:
    """Makes the engines of a run; what shards networks is imported only for those that do."""
    match settings.type:
        case "torch":
            return TorchEngineMaker()
        case "deepspeed":
            from scalerl.learner.deepspeed_engine import DeepSpeedEngineMaker

            return DeepSpeedEngineMaker(settings, ranks, device)
        case "fsdp":
            from scalerl.learner.fsdp_engine import FsdpEngineMaker

            return FsdpEngineMaker(ranks, device)
