"""The typed recipe and scale: every choice of a run, with the paper's values as defaults. A map of the room:

    axes          a *recipe*: the algorithm's choices (ScaleRL table of section 2 and 3.2)
    models        the policy's model: from scratch or from a folder
    scale         a *scale*: model, tasks, sizes, lengths, optimiser, cluster, evaluation and compute unit
    learner       the scale's learner: in one process, or sharded over several by DeepSpeed or FSDP2
    cluster       the scale's cluster: modelled on a virtual clock, or processes on the wall clock
    generator     what decodes: the built-in generator, or vLLM
    tasks         its tasks: synthetic, in files, or only measured
    resolved      both in one namespace, as stored beside a run; their hash is its identity
    file_hash     one hash of what a file or folder holds
    template      texts of prompts in which {name} stands for a part of the problem or a column of its row
    reference     every setting as a page: docs/recipes.md
    meaning       one setting of a recipe: what it means, its unit, bounds and source

    >>> ResolvedRecipe.model_validate({**recipe, **scale}).identity(seed=0)
    '3f0c9a1b2d4e'

Nothing here imports torch: the command line loads this room.
"""

from scalerl.recipe.axes import (
    Cispo,
    Dapo,
    Grpo,
    Gspo,
    Interruption,
    Kl,
    LengthPenalty,
    NoCritic,
    NoLengthControl,
    NoPositiveResampling,
    Ordered,
    Pipeline,
    PpoOffPolicy,
    Recipe,
    Uniform,
    ValueNetwork,
)
from scalerl.recipe.cluster import Accelerator, ChargedAttention, FreeAttention, Virtual, Wall
from scalerl.recipe.generator import BuiltInGenerator, Vllm
from scalerl.recipe.learner import DeepSpeedSettings, FsdpSettings, LearnerSettings, TorchSettings
from scalerl.recipe.models import LlamaModel, Model, MoeModel, PretrainedModel
from scalerl.recipe.resolved import ResolvedRecipe
from scalerl.recipe.scale import (
    BatchSize,
    Evaluation,
    Generation,
    Optimiser,
    Scale,
    WarmStart,
)
from scalerl.recipe.tasks import (
    ALL,
    AnyTask,
    Code,
    Downstream,
    FileSettings,
    KSmallest,
    Math,
    Modular,
    MultipleChoice,
    Qa,
)

__all__ = [
    "ALL",
    "Accelerator",
    "AnyTask",
    "BatchSize",
    "BuiltInGenerator",
    "ChargedAttention",
    "Cispo",
    "Code",
    "Dapo",
    "DeepSpeedSettings",
    "Downstream",
    "Evaluation",
    "FileSettings",
    "FreeAttention",
    "FsdpSettings",
    "Generation",
    "Grpo",
    "Gspo",
    "Interruption",
    "KSmallest",
    "Kl",
    "LearnerSettings",
    "LengthPenalty",
    "LlamaModel",
    "Math",
    "Model",
    "Modular",
    "MoeModel",
    "MultipleChoice",
    "NoCritic",
    "NoLengthControl",
    "NoPositiveResampling",
    "Optimiser",
    "Ordered",
    "Pipeline",
    "PpoOffPolicy",
    "PretrainedModel",
    "Qa",
    "Recipe",
    "ResolvedRecipe",
    "Scale",
    "TorchSettings",
    "Uniform",
    "ValueNetwork",
    "Virtual",
    "Vllm",
    "Wall",
    "WarmStart",
]
