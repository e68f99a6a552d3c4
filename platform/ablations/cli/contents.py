"""The commands for the contents of a home folder: list, show, diff, delete."""

import re
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
import yaml

from ablations.cli.named_sweeps import find_sweep, known_variant
from ablations.cli.options import (
    HomeOption,
    JsonOption,
    SetOption,
    compared_begun,
    refuse_idle,
    started_sweeps,
    variants_of_sweep,
)
from ablations.cli.output import ask, console, print_json, print_rows, say_pages, tell
from ablations.errors import AblationsError, FileError
from ablations.files.lookup import FileKind, files_of
from ablations.home.home import Home, find_home
from ablations.home.source import source_of
from ablations.home.started_sweep import StartedSweep, read_sweep
from ablations.report.writers.terminal import print_document
from ablations.running.delete import remove_sweep, what_goes
from ablations.status.sweeps import sweep_lines, sweeps_table
from ablations.terminal.short_names import legend
from ablations.text import counted, settings_json
from scalerl.credentials import values_without_secrets
from scalerl.errors import CannotResume

if TYPE_CHECKING:
    from scalerl.frozen import Frozen
    from scalerl.recipe.command import AnyRecipe

RUN_ID = re.compile(r"[0-9a-f]{12}")


def list(
    recipes: Annotated[bool, typer.Option("--recipes", help="List the recipes that a sweep can name.")] = False,
    scales: Annotated[bool, typer.Option("--scales", help="List the scales that a sweep can name.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the sweeps of the home folder with their progress and cost; or the recipes, or the scales."""
    if recipes and scales:
        raise AblationsError("--recipes conflicts with --scales; pass one of them")
    if recipes or scales:
        list_files("recipe" if recipes else "scale", as_json)
        return

    place = find_home(home)
    lines = [*sweep_lines(place)]
    if as_json:
        print_json([asdict(line) for line in lines])
    elif lines:
        out = console()
        print_document([sweeps_table(lines, now=time.time())], out)
        for line in lines:
            if line.problem:
                out.say(line.problem, style="red")
        say_pages(place, out)
    else:
        tell(f"No sweep has been started in {place.path}; to start one, run `platform sweep FILE`.")


def show(
    sweep: Annotated[
        str | None,
        typer.Argument(
            help="Sweep name or file, run id, recipe or scale. Default: the last sweep started.",
            autocompletion=started_sweeps,
        ),
    ] = None,
    variant: Annotated[
        str | None, typer.Option(help="Print the whole recipe of this variant.", autocompletion=variants_of_sweep)
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a sweep's question and the changes of its variants; or, as YAML, a recipe or scale, or the recipe of a
    variant or run."""
    place = find_home(home)
    if variant is None and sweep is not None and sweep not in place.sweep_names():
        if RUN_ID.fullmatch(sweep):
            show_settings(recipe_of_run(place, sweep), as_json)
            return
        if named := file_named(sweep):
            show_file(*named, as_json)
            return
    started = find_sweep(home, sweep)
    if variant is not None:
        show_settings(variant_recipe(started, variant), as_json)
    elif as_json:
        print_json(settings_json(asdict(started.plan)))
    else:
        show_variants(started)


def file_named(name: str) -> tuple[FileKind, Path] | None:
    """The recipe or scale of this name, with its kind; None if there is neither."""
    kinds: tuple[FileKind, ...] = ("recipe", "scale")
    return next(((kind, files[name]) for kind in kinds if name in (files := files_of(kind))), None)


def show_file(kind: FileKind, path: Path, as_json: bool) -> None:
    """Print a recipe or scale as written, with its comments, then every setting with the defaults filled in."""
    from ablations.study.resolve import checked_recipe, checked_scale, read_settings

    source = read_settings(path)
    settings = checked_recipe(source) if kind == "recipe" else checked_scale(source)
    if not as_json:
        tell(f"# {kind} {path.stem}, {path}\n{path.read_text()}\n# With every default:")
    show_settings(settings, as_json)


def list_files(kind: FileKind, as_json: bool) -> None:
    """Print every recipe or scale with the first comment of its file."""
    rows = [{kind: name, "says": _first_comment(path)} for name, path in files_of(kind).items()]
    if as_json:
        print_json(rows)
    else:
        print_rows(rows, kinds={"says": "prose"})


def _first_comment(path: Path) -> str:
    """The lines of the comment that a file begins with, as one."""
    found = []
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            break
        found.append(line.lstrip("# "))
    return " ".join(found)


def show_variants(sweep: StartedSweep) -> None:
    """Print the question, the command that started the sweep, and a line for every variant."""
    plan, out = sweep.plan, console()
    scale = f"scale {plan.scale}, " if plan.scale else ""
    said = [plan.doc, f"{scale}{plan.hours_text(plan.budget_gpu_hours)} for each run", plan.command]
    out.print("\n".join(filter(None, said)), soft_wrap=True, highlight=False, markup=False)
    rows = [
        {
            "variant": one.name,
            "seeds": ", ".join(str(run.seed) for run in one.runs),
            "changes": "the reference" if one.name == plan.reference else one.changes,
        }
        for one in plan.variants
    ]
    out.print()
    print_rows(rows, kinds={"seeds": "words", "changes": "prose"}, notes=(*legend(plan.axes),))


def show_settings(model: "Frozen", as_json: bool) -> None:
    settings = values_without_secrets(model.model_dump(mode="json"))
    if as_json:
        print_json(settings_json(settings))
    else:
        tell(yaml.safe_dump(settings, sort_keys=False, default_flow_style=None, width=120), end="")


def variant_recipe(sweep: StartedSweep, name: str) -> "AnyRecipe":
    """The recipe of a variant's runs; AblationsError if the variant is unknown or none of its runs has started."""
    return recipe_of_run(sweep.home, known_variant(name, sweep.plan).runs[0].id)


def recipe_of_run(home: Home, run_id: str) -> "AnyRecipe":
    """The recipe of a run; AblationsError if the run has not started, or this version cannot read its recipe."""
    folder = home.run(run_id)
    if not folder.path.exists():
        raise AblationsError(f"no run {run_id} in {home.path}; the run has not started, or was deleted")
    if (source := source_of(folder)) is not None:
        raise AblationsError(f"run {run_id} was imported from {source.place}, so its recipe is unknown")
    try:
        return folder.read_recipe()[0]
    except CannotResume as error:
        raise AblationsError(f"run {run_id}: {error}") from error


def diff(
    left: Annotated[
        str,
        typer.Argument(
            help="Recipe by name or path, run id, or with --sweep a variant.", autocompletion=compared_begun
        ),
    ],
    right: Annotated[
        str,
        typer.Argument(help="Recipe, run or variant to compare with the first.", autocompletion=compared_begun),
    ],
    sweep: Annotated[str | None, typer.Option(help="Sweep of the variants.", autocompletion=started_sweeps)] = None,
    scale: Annotated[str, typer.Option(help="Scale to resolve recipes with, by name or path.")] = "laptop",
    set_: SetOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show every setting in which two recipes, runs or variants differ."""
    # Both load the recipes, which completion does not need.
    from ablations.study.recipe_differences import recipe_differences
    from ablations.study.resolve import load_resolved

    if sweep is not None:
        refuse_idle("variants of a sweep", {"--set": set_ and set_[0]})

    def named(name: str) -> "AnyRecipe":
        if sweep is not None:
            return variant_recipe(find_sweep(home, sweep), name)
        if RUN_ID.fullmatch(name) and not Path(name).exists():
            return recipe_of_run(find_home(home), name)

        try:
            return load_resolved(name, scale, set_ or ())
        except FileError as error:
            if holder := sweep_with(find_home(home), name):
                raise AblationsError(f"{error}; for the variant of that name, add --sweep {holder}") from error
            raise

    found = recipe_differences(named(left), named(right))
    if as_json:
        print_json([settings_json(asdict(one)) for one in found])
        return
    if not found:
        tell(f"{left} and {right} have the same settings.")
        return
    rows = [{"setting": one.path, left: one.left, right: one.right} for one in found]
    print_rows(rows, kinds={left: "words", right: "words"})


def sweep_with(home: Home, variant: str) -> str | None:
    """The last started sweep with a variant of this name, if any; unreadable ones are skipped."""
    for name in home.sweep_names():
        with suppress(AblationsError):
            if variant in [one.name for one in read_sweep(home, name).plan.variants]:
                return name
    return None


def delete(
    sweep: Annotated[str, typer.Argument(help="Sweep name.", autocompletion=started_sweeps)],
    yes: Annotated[bool, typer.Option("--yes", help="Delete without asking.")] = False,
    home: HomeOption = None,
) -> None:
    """Delete a sweep and the runs that no other sweep uses. Data in MLflow is kept."""
    going = what_goes(find_sweep(home, sweep))
    stays = f"; keeping {counted(going.shared, 'run')} shared with other sweeps" if going.shared else ""
    size = f"{going.num_bytes / 1e6:,.1f} MB"
    said = f"sweep '{going.sweep.name}' with {counted(len(going.runs), 'run')}, {size}{stays}"
    if not yes:
        ask(f"Delete {said}?", without_terminal=f"nothing deleted; to delete {said}, pass --yes")
    remove_sweep(going)
    tell(f"Deleted {said}.")
