"""The command that finds problems before training: check. Its quick part begins every sweep."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer

from ablations.cli.findings import show_counts, shown_parts
from ablations.cli.named_sweeps import scales_of
from ablations.cli.options import JsonOption, SetOption
from ablations.cli.output import console
from ablations.errors import AblationsError
from ablations.files.source import read_yaml
from ablations.report.documents.checks import lines_of
from ablations.study.expand import Study, expand
from ablations.study.fittable import too_few_readings
from ablations.study.resolve import load_resolved
from ablations.study.side_effects import side_effects
from ablations.study.wandb_sweep import is_wandb_sweep
from ablations.terminal.progress_bar import SILENT_S
from ablations.terminal.screen import Screen
from scalerl.checks.finding import Finding
from scalerl.recipe import ResolvedRecipe
from scalerl.recipe.command import AnyRecipe, CommandRecipe, own_recipes

DEFAULT_SCALE = "laptop"
SANDBOX = "sandbox"
"""Part of the findings that concerns this machine, not the data or the model."""


def check(
    recipe: Annotated[str, typer.Argument(help="Recipe, by name or path; or a sweep file, for all its variants.")],
    scale: Annotated[
        str | None, typer.Option(help=f"Scale, by name or path. Default: {DEFAULT_SCALE}, or the sweep file's.")
    ] = None,
    set_: SetOption = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Run only the checks that need no model, like `platform sweep`.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check data, answers, tokenizer, lengths, sandbox, memory and one step before training. Exit code 1 if a run would
    be rejected."""
    from scalerl.checks.examine import examine_recipes

    studies: dict[str | None, Study] = {}
    programs: list[Finding] = []
    if is_sweep(recipe):
        studies = {one: expand(Path(recipe), scale=one, sets=set_ or ()) for one in scales_of(Path(recipe), scale)}
        recipes = recipes_of(studies)
        programs = [one for study in studies.values() if (one := of_program(study.reference.recipe))]
        programs += [one for study in studies.values() for one in side_effects(study)]
    else:
        recipes = {Path(recipe).stem: load_resolved(recipe, scale or DEFAULT_SCALE, set_ or ())}
    out = console(stderr=as_json)
    with saying_after(SILENT_S, out) as say:
        checks = examine_recipes(recipes, quick=quick, say=say), *map(problems_of_budget, studies.values())
        found = shown_parts(out, chain(programs, *checks), as_json, len(recipes))
    show_counts(out, found, as_json)


def recipes_of(studies: Mapping[str | None, Study]) -> dict[str, ResolvedRecipe]:
    """Recipes by name: every variant of a study at each of its scales, except those of a program."""
    variants = {
        variant.name if len(studies) == 1 else f"{variant.name}@{scale}": variant.recipe
        for scale, study in studies.items()
        for variant in study.variants
    }
    return own_recipes(variants)


def problems_of_budget(study: Study) -> Iterator[Finding]:
    """Runs with too few evaluations to fit, or a learning rate that reaches 0 too early."""
    names = tuple(variant.name for variant in study.variants)
    if problem := too_few_readings(study):
        found, right = f"{problem.place}: {problem.found}", problem.right
        yield Finding(part="evaluation", check="readings", level="error", found=found, remedy=right, variants=names)
    for variant in study.variants:
        try:
            variant.recipe.check_budget(study.sweep.budget.compute)
        except ValueError as error:
            found, _, right = str(error).partition("; ")
            yield Finding(
                part="evaluation",
                check="learning rate",
                level="error",
                found=found,
                remedy=right,
                variants=(variant.name,),
            )


def of_program(recipe: AnyRecipe, *, trains_here: bool = True) -> Finding | None:
    """The packages that the program of a study lacks; None for the platform's own trainer."""
    from ablations.study.needed_packages import examine_packages

    return examine_packages(recipe, trains_here=trains_here) if isinstance(recipe, CommandRecipe) else None


def is_sweep(file: str) -> bool:
    """True if a path names a sweep file, recognised by its key `reference`, or one of W&B."""
    path = Path(file)
    if not (file.endswith((".yaml", ".yml")) and path.is_file()):
        return False
    data = read_yaml(path).data
    return "reference" in data or is_wandb_sweep(data)


def refuse_early(
    recipes: Mapping[str, AnyRecipe],
    out: Screen,
    *,
    whole: str,
    trains_here: bool = True,
    of_study: Sequence[Finding] = (),
) -> None:
    """Run the quick checks at the start of a sweep or run: prints warnings, raises AblationsError for rejected recipes.
    `whole` is the command that runs all checks.

    Runs that train on another machine may find a sandbox there, so a missing sandbox here is only a warning.
    """
    from scalerl.checks.examine import examine_recipes

    with saying_after(SILENT_S, out) as say:
        found = [one for one in examine_recipes(own_recipes(recipes), quick=True, say=say) if one.level != "ok"]
    # All variants run one program.
    found += [one for recipe in list(recipes.values())[:1] if (one := of_program(recipe, trains_here=trains_here))]
    found += of_study
    refusing = [one for one in found if one.level == "error" and (trains_here or one.part != SANDBOX)]
    warned = [one for one in found if one not in refusing]
    refused = [line for one in refusing for line in lines_of(one, len(recipes))]
    for one in warned:
        text = "\n  ".join(lines_of(one, len(recipes), most_faults=0))
        out.say(f"warning: {text}", style="yellow")
    if warned:
        out.say(f"To list every affected row, run `{whole}`.")
    if refused:
        raise AblationsError("nothing was started: " + "\n  ".join(refused))


@contextmanager
def saying_after(silent_s: float, out: Screen) -> Iterator[Callable[[str], None]]:
    """Print the current activity if the block takes longer than `silent_s` seconds."""
    began, lock = time.monotonic(), threading.Lock()
    doing: list[str] = []

    def tell() -> None:
        with lock:
            for text in doing:
                out.say(f"checking: {text}")
            doing.clear()

    def say(text: str) -> None:
        doing[:] = [text] if text else []
        if time.monotonic() - began >= silent_s:
            tell()

    timer = threading.Timer(silent_s, tell)
    timer.daemon = True
    timer.start()
    try:
        yield say
    finally:
        timer.cancel()
