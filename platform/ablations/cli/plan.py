"""The command that plans a cluster: plan. Shows the memory of each device, and the time of a step."""

from dataclasses import asdict
from statistics import fmean
from typing import TYPE_CHECKING, Annotated

import typer

from ablations.cli.exit_codes import FAILED
from ablations.cli.options import JsonOption, SetOption, files_begun
from ablations.cli.output import console, print_json
from ablations.report.documents.blocks import Column, Table, cells
from ablations.report.writers.terminal import print_document
from ablations.study.resolve import load_resolved
from ablations.text import duration_text
from scalerl.recipe import Accelerator, KSmallest, Modular, ResolvedRecipe

if TYPE_CHECKING:
    from scalerl.cluster.step_time import StepTime
    from scalerl.memory.per_device import DevicePlan

PROMPT_TOKENS = 512
"""Assumed length of the longest prompt, since the data are not read."""
MEAN_SHARE = 0.5
"""Mean length of a response as a fraction of the maximum."""


def plan(
    recipe: Annotated[str, typer.Argument(help="Recipe, by name or path.")] = "scalerl",
    scale: Annotated[str, typer.Option(help="Scale, by name or path.", autocompletion=files_begun("scale"))] = "8b",
    set_: SetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the memory of each device in a scale's cluster and the time of a step. Needs neither weights nor data. The
    exit code is 1 if something does not fit."""
    from scalerl.cluster.step_time import step_time
    from scalerl.memory.forecast import MOST_EVALUATION_ROWS, PromptLengths
    from scalerl.memory.per_device import plans, remedy
    from scalerl.memory.shape import shape_of

    resolved = load_resolved(recipe, scale, set_ or (), with_files=False)
    shape = shape_of(resolved.model, resolved.adapter)
    accelerator = resolved.cluster.device if resolved.cluster.type == "virtual" else Accelerator()
    lengths = PromptLengths(trained=PROMPT_TOKENS, measured=PROMPT_TOKENS, most_samples=MOST_EVALUATION_ROWS)
    found = plans(resolved, shape, lengths)
    refused = {
        one.role: remedy(resolved, shape, lengths, one.role, accelerator.memory_gb)
        for one in found
        if not one.fits(accelerator.memory_gb)
    }
    response, prompt = MEAN_SHARE * resolved.generation.max_tokens, prompt_tokens(resolved)
    took = step_time(
        resolved,
        shape.size,
        trainers=resolved.trainers,
        tensor_parallel=resolved.devices_of_generator,
        prompt_tokens=prompt,
        response_tokens=response,
    )
    if as_json:
        devices = [{**asdict(one), "parts": dict(one.parts), "total": one.total} for one in found]
        step = {**asdict(took), "seconds": took.seconds, "gpu_hours": took.gpu_hours}
        print_json({"devices": devices, "step": step, "refused": refused})
    else:
        out = console()
        billions = f"{shape.parameters / 1e9:,.2f} B parameters, {shape.active_parameters / 1e9:,.2f} B of them active"
        out.print(f"{scale}: {billions}; {accelerator.name} with {accelerator.memory_gb:g} GB", highlight=False)
        print_document([device_table(found, accelerator.memory_gb)], out)
        rollouts = resolved.batch.prompts * resolved.batch.generations
        tokens = f"{response:,.0f} tokens after prompts of {prompt:,.0f}"
        out.say(f"\nA step of {rollouts:,} rollouts of {tokens}: {time_text(took)}")
        for role, settings in refused.items():
            out.print(f"[red]refused[/red]: the {role} does not fit; to make it fit, set {settings}", highlight=False)
    if refused:
        raise typer.Exit(FAILED)


def prompt_tokens(recipe: ResolvedRecipe) -> float:
    """Mean length of a prompt: known for a generated task, else half of the assumed longest one."""
    from scalerl.tasks import make_task
    from scalerl.tokens import make_tokenizer

    if recipe.model.type == "pretrained" or not all(isinstance(one, KSmallest | Modular) for one in recipe.tasks):
        return PROMPT_TOKENS / 2
    tokenizer = make_tokenizer(recipe.model, thinks=recipe.generation.thinks)
    return fmean(len(prompt.tokens) for one in recipe.tasks for prompt in make_task(one, tokenizer).validation)


def device_table(found: "tuple[DevicePlan, ...]", memory_gb: float) -> Table:
    """A row for each part and a column for each role, in GB per device."""
    from scalerl.memory.per_device import GB, USABLE

    columns = [Column(heading=f"{one.role} (x {one.devices})", kind="number") for one in found]
    names = dict.fromkeys(name for one in found for name in one.parts)
    rows = [cells(name, *(gb_text(one.parts.get(name)) for one in found)) for name in names]
    rows.append(cells("total", *(gb_text(one.total) for one in found)))
    rows.append(cells("limit", *(gb_text(int(USABLE * memory_gb * GB)) for _ in found)))
    if any(one.host_bytes for one in found):
        rows.append(cells("in host memory", *(gb_text(one.host_bytes) for one in found)))
    return Table(name="memory", columns=(Column(heading="GB on one device"), *columns), rows=tuple(rows))


def gb_text(number: int | None) -> str:
    """Gigabytes as text, `12.3`; empty for a part that the role lacks."""
    from scalerl.memory.per_device import GB

    return "" if number is None else f"{number / GB:.1f}"


def time_text(took: "StepTime") -> str:
    """Time of generation and training, and time and cost of a step."""
    at_once = "in parallel" if took.at_once else "one after another"
    generating, training, step = (
        duration_text(seconds, digits=2) for seconds in (took.generating_s, took.training_s, took.seconds)
    )
    return (
        f"{generating} to generate, {training} to train, {at_once}: {step} per step, "
        f"{took.gpu_hours:.3g} modelled GPU-hours on {took.devices} devices"
    )
