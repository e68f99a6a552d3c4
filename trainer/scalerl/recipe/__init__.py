"""The typed recipe and scale: every choice of a run, with the paper's values as defaults. A map of the room:

    axes       a *recipe*: the algorithm's choices (ScaleRL table of section 2 and 3.2)
    scale      a *scale*: model, tasks, sizes, lengths, optimiser, cluster, evaluation and compute unit
    resolved   both in one namespace: what a run trains, what is stored beside it, what its identity is the hash of

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
from scalerl.recipe.resolved import ResolvedRecipe
from scalerl.recipe.scale import (
    BatchSize,
    Cluster,
    Constant,
    Cosine,
    Device,
    Evaluation,
    Generation,
    KSmallest,
    Linear,
    Model,
    Optimiser,
    Scale,
    WarmStart,
)

__all__ = [
    "BatchSize",
    "Cispo",
    "Cluster",
    "Constant",
    "Cosine",
    "Dapo",
    "Device",
    "Evaluation",
    "Generation",
    "Grpo",
    "Gspo",
    "Interruption",
    "KSmallest",
    "Kl",
    "LengthPenalty",
    "Linear",
    "Model",
    "NoCritic",
    "NoLengthControl",
    "NoPositiveResampling",
    "Optimiser",
    "Ordered",
    "Pipeline",
    "PpoOffPolicy",
    "Recipe",
    "ResolvedRecipe",
    "Scale",
    "Uniform",
    "ValueNetwork",
    "WarmStart",
]
