"""The typed recipe and scale: every choice of a run, with the paper's values as defaults. A map of the room:

    axes          a *recipe*: the algorithm's choices (ScaleRL table of section 2 and 3.2)
    correction    what is done about the gap between trainer and generator
    models        the policy's model: from scratch or from a folder, with the layers that its files hold
    adapter       the part of it that is trained: all, or a LoRA adapter
    scale         a *scale*: model, tasks, sizes, lengths, optimiser, cluster, evaluation and compute unit
    learner       the scale's learner: one process, or several that shard it with DeepSpeed or FSDP2
    cluster       the scale's cluster: modelled on a virtual clock, or processes on the wall clock
    generator     the scale's generator: the built-in one, or vLLM
    tasks         the scale's tasks: synthetic, in files, or only measured
    task_sentences  what a pass rate is of, in a sentence
    one_task      what every task of a mix has
    own           a user's own function, by import path: a loss, a task, ...
    own_files     the files that such a function consists of
    own_function  loads and calls it
    reasoning_gym a task whose problems the library of this name makes
    episodes      a task of several turns with an environment
    resolved      recipe and scale in one namespace, as stored beside a run; their hash is its identity
    command       a recipe whose trainer is a user's own program
    file_hash     hashes of the content of a file or folder, and of the code of such a program
    template      prompt templates in which {name} stands for a part of the problem or a column of its row
    reference     all settings as a page, for the site
    meaning       meaning, unit, bounds and source of one setting

    >>> ResolvedRecipe.model_validate({**recipe, **scale}).identity(seed=0)
    '3f0c9a1b2d4e'

Nothing here imports torch: the command line loads this room.
"""

from scalerl.recipe.adapter import Lora, NoAdapter
from scalerl.recipe.axes import (
    Loss,
    NoCritic,
    NoLengthControl,
    NoPositiveResampling,
    Ordered,
    Recipe,
    Uniform,
    ValueNetwork,
)
from scalerl.recipe.cluster import Accelerator, Virtual, Wall
from scalerl.recipe.correction import Correction, RatioMask, Truncate, TrustRegion
from scalerl.recipe.generator import Vllm
from scalerl.recipe.learner import DeepSpeedSettings, LearnerSettings
from scalerl.recipe.models import LlamaModel, Model, MoeModel, PretrainedModel
from scalerl.recipe.one_task import ALL
from scalerl.recipe.own import CustomTask, Own, OwnLoss
from scalerl.recipe.reasoning_gym import ReasoningGym
from scalerl.recipe.resolved import ResolvedRecipe
from scalerl.recipe.scale import Generation, Optimiser, Scale
from scalerl.recipe.tasks import AnyTask, Code, FileSettings, KSmallest, Math, Modular, MultipleChoice, Qa
