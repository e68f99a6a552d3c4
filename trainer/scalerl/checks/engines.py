"""Checks that the libraries a recipe needs are installed, and that vLLM can serve the model here."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from scalerl.checks.finding import Finding, judged
from scalerl.checks.subject import Subject
from scalerl.memory.shape import shape_of
from scalerl.recipe import ResolvedRecipe, Vllm
from scalerl.recipe.generator import refuse_on_cpu, refuse_split

INSTALL = (
    "on a machine without a GPU `make engines` installs it, elsewhere `pip install --constraint constraints.txt {}`"
)
DRIVER = Path("/dev/nvidiactl")
"""Path that exists if NVIDIA's driver is loaded."""


def check_engines(subject: Subject) -> Iterator[Finding]:
    """Yields one line per library that the recipe names. Imports none of them, since that takes many seconds."""
    recipe = subject.recipe
    if recipe.adapter.type == "lora":
        yield installed("peft", "adapter: {type: lora}")
    if recipe.learner.type == "deepspeed":
        yield installed("DeepSpeed", "learner: {type: deepspeed}")
    if isinstance(recipe.generator, Vllm):
        found = installed("vLLM", "generator: {type: vllm}")
        yield found if found.level == "error" else served(recipe, recipe.generator)


def served(recipe: ResolvedRecipe, settings: Vllm) -> Finding:
    """Check that vLLM can serve the model here."""
    shape, problem, remedy = shape_of(recipe.model), "", ""
    try:
        refuse_split(settings, heads=shape.heads, kv_heads=shape.kv_heads, mlp=shape.mlp)
        if recipe.device == "cpu" or (recipe.device is None and not DRIVER.exists()):
            remedy = "if the runs train on GPUs that this machine does not have, set `device: cuda`"
            refuse_on_cpu(settings, shape.head_size)
    except ValueError as error:
        problem = str(error)
    return judged("engines", "vLLM", problem, "installed", remedy)


def installed(name: str, setting: str) -> Finding:
    """Check that this engine is in the environment."""
    package = name.lower()
    problem = "" if find_spec(package) else f"the recipe has `{setting}`, but {name} is not installed"
    return judged("engines", name, problem, "installed", INSTALL.format(f"'.[{package}]'"))
