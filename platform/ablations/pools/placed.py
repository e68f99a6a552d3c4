"""Places the processes of a run on the nodes of its future job, and rejects nodes and GPUs that would stay idle."""

from collections import Counter

from ablations.errors import FileError, FileProblem
from ablations.study.resources import Asked, Resources
from ablations.text import counted
from scalerl.cluster.placement import place_run
from scalerl.recipe import ResolvedRecipe
from scalerl.recipe.command import AnyRecipe, CommandRecipe


def threads_of_node(recipe: AnyRecipe, asked: Resources) -> int:
    """CPU threads that a run uses on its busiest node; the threads of the whole run if it cannot be placed on the
    nodes."""
    if isinstance(recipe, CommandRecipe) or asked.nodes == 1 or recipe.cluster.type != "wall":
        return recipe.total_threads
    threads = recipe.cluster.generator_threads
    each = {"trainer": recipe.threads, "generator": threads, "evaluator": threads}
    busy: Counter[int] = Counter()
    try:
        for unit in place_run(recipe, [asked.num_gpus] * asked.nodes):
            busy[unit.node] += each.get(unit.role, 0)
    except ValueError:
        return recipe.total_threads
    return max(busy.values())


def refuse_idle_devices(asked: Asked, recipe: AnyRecipe) -> None:
    """Raise FileError if GPUs or nodes would be reserved and charged but not used by a run of this recipe."""
    problems, resources = [], asked.resources
    if isinstance(recipe, CommandRecipe):  # only the program knows how many GPUs it uses
        if resources.nodes > 1:
            raise asked.place("nodes").error(f"found {resources.nodes}", "a command runs on one node; write 1")
        return
    most_gpus = recipe.most_gpus
    if resources.num_gpus * resources.nodes > most_gpus:
        right = (
            f"a run uses {counted(most_gpus, 'GPU')} (device, learner.ranks, generator.tensor_parallel; on the wall "
            f"clock, one per generator); write {most_gpus}"
        )
        if most_gpus == 0:
            right = "runs train on the CPU (device: cpu) and would leave GPUs idle; write 0"
        found = f"found {resources.gpus}" + (f" on each of {resources.nodes} nodes" if resources.nodes > 1 else "")
        problems.append(FileProblem(place=asked.place("gpus"), found=found, right=right))
    if resources.nodes > 1 and (right := _why_one_node(recipe, resources)):
        problems.append(FileProblem(place=asked.place("nodes"), found=f"found {resources.nodes}", right=right))
    if problems:
        raise FileError(*problems)


def _why_one_node(recipe: ResolvedRecipe, resources: Resources) -> str:
    """The reason why a run cannot use several nodes; empty if it can."""
    if recipe.cluster.type != "wall":
        return "one process simulates all devices of a virtual cluster and would leave the other nodes idle; write 1"
    try:
        place_run(recipe, [resources.num_gpus] * resources.nodes)
    except ValueError as error:
        return str(error)
    return ""
