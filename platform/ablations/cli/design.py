"""The command that shows what differences a study could detect before it is run: design."""

import math
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Annotated, Literal

import typer

from ablations.cli.budget import budget_of, read_budget
from ablations.cli.named_sweeps import find_sweep, scales_of
from ablations.cli.options import (
    BudgetOption,
    HomeOption,
    JsonOption,
    ReferenceOption,
    ScaleOption,
    SetOption,
    refuse_idle,
    started_sweeps,
)
from ablations.cli.output import console, print_json, warn
from ablations.errors import AblationsError, FileError
from ablations.findings.design_options import Blueprint
from ablations.fit.table_file import is_curve_file
from ablations.home.home import find_home
from ablations.home.start_command import design_command, design_words, start_folder
from ablations.home.started_sweep import StartedSweep, plans_of
from ablations.study.expand import Study, expand
from ablations.study.fittable import too_few_readings
from ablations.terminal.progress_bar import progress_bar
from ablations.terminal.screen import Screen

QuestionName = Literal["level", "ceiling", "compute"]


def design(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="Sweep file, for example sweeps/loo.yaml, or the name of a sweep. Default: the last sweep started.",
            autocompletion=started_sweeps,
        ),
    ] = None,
    detect: Annotated[
        float | None,
        typer.Option(
            help="Find the cheapest design to detect this difference in pass rate, or for compute this ratio (1.2)."
        ),
    ] = None,
    question: Annotated[QuestionName, typer.Option(help="Quantity that --detect refers to.")] = "level",
    noise: Annotated[
        float | None,
        typer.Option(help="Run-to-run standard deviation in pass rate. Default: estimated from earlier runs."),
    ] = None,
    scale: ScaleOption = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, help="Only designs with this number of seeds. Default: two or more, and the file's number."
        ),
    ] = None,
    reference: ReferenceOption = None,
    set_: SetOption = None,
    budget: BudgetOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the smallest differences that a study could detect with 80 % power, by design, before it is run."""
    from ablations.findings.study_design import foresee
    from ablations.report.documents.comparison_words import unkept_note
    from ablations.report.documents.design import design_document
    from ablations.report.writers.terminal import print_document

    if (named := sweep_to_design(home, file)) is not None and named.plan.imported:
        given = {"--detect": detect, "--noise": noise, "--seeds": seeds, "--scale": scale, "--budget": budget}
        refuse_idle("imported runs", given | {"--set": set_ and set_[0]})
        show_curve_designs(named, reference, as_json=as_json)
        return
    refuse_idle("a sweep file", {"--reference": reference})
    if named is not None:
        file, asked = command_of(named)
        scale, set_, budget = scale or asked.scale, set_ or asked.set, budget or asked.budget
    assert file is not None
    if noise is not None and not (math.isfinite(noise) and 0 < noise < 1):
        raise AblationsError(f"--noise: found {noise:g}; must be between 0 and 1")
    asked_budget = None if budget is None else read_budget(budget)
    scales = scales_of(file, scale)
    if as_json and len(scales) > 1:
        raise AblationsError(f"{file}: --json prints one document; add --scale")
    wanted = None if detect is None else check_wanted(question, detect)
    for number, one in enumerate(scales):
        if number:
            console().say("")
        study = expand(file, scale=one, sets=set_ or ())
        compute = study.sweep.budget.compute if asked_budget is None else budget_of(study, asked_budget)
        with progress_bar("simulating designs") as done:
            blueprint = Blueprint(study=study, home=find_home(home), budget=compute, num_seeds=seeds)
            prospect = foresee(blueprint, noise=noise, done=done)
        warn(unkept_note(prospect.blueprint.home, [prospect.known.unkept]))
        if as_json:
            found = None if wanted is None else prospect.cheapest(question, wanted)
            cheapest = found and found.to_json(prospect.blueprint.unit)
            print_json(prospect.to_json() | {"question": question, "detect": detect, "cheapest": cheapest})
            return
        print_document(design_document(prospect, question, wanted), console())


def sweep_to_design(home: Path | None, file: Path | None) -> StartedSweep | None:
    """The started sweep or the table of curves of this name, or the last sweep for None; None for a sweep file."""
    if file is None or is_curve_file(file.name) or str(file) in find_home(home).sweep_names():
        return find_sweep(home, file and str(file))
    return None


def command_of(sweep: StartedSweep) -> tuple[Path, Namespace]:
    """The file from which a sweep was started, and the options `scale`, `set` and `budget` of its command;
    AblationsError if the file is not here."""
    parser = ArgumentParser(exit_on_error=False)
    parser.add_argument("file", type=Path)
    for option in ("--scale", "--budget", "--home"):
        parser.add_argument(option)
    parser.add_argument("--set", action="append")
    asked = parser.parse_args(design_words(sweep)[2:])
    if not (file := start_folder(sweep) / asked.file).exists():
        raise AblationsError(
            f"the file of sweep '{sweep.name}', {asked.file}, is not in {Path.cwd()}; run the command there, or name a "
            "sweep file"
        )
    return file, asked


def show_curve_designs(sweep: StartedSweep, reference: str | None, *, as_json: bool) -> None:
    from ablations.findings.curve_design import foresee_curves
    from ablations.findings.results import read_results
    from ablations.findings.several_sweeps import with_baseline
    from ablations.report.documents.design import curve_design_document
    from ablations.report.writers.terminal import print_document

    results = read_results(sweep if reference is None else with_baseline(sweep, reference))
    designs = foresee_curves(results)
    if as_json:
        print_json({"sweep": results.title, "designs": [one.to_json() for one in designs]})
        return
    print_document(curve_design_document(results, designs), console())


def check_wanted(question: QuestionName, detect: float) -> float:
    """The difference on the scale of the designs, as ln for compute; raises AblationsError if it is out of range."""
    if question == "compute":
        if not 1 < detect < math.inf:
            raise AblationsError(f"--detect: found {detect:g}; for compute, write a ratio above 1, for example 1.2")
        return math.log(detect)
    if not 0 < detect < 1:
        raise AblationsError(f"--detect: found {detect:g}; a difference in pass rate must be between 0 and 1")
    return detect


def show_design(study: Study, sweep: StartedSweep) -> None:
    """Print the command that shows what the sweep could detect, because its simulation is too slow for a dry run."""
    command = design_command(sweep)
    said = f"To see what the sweep could detect, run `{command}`."
    if not any(plans_of(sweep.home, study.scale)):
        of_what = f"scale {study.scale}" if study.scale else "this program"
        said = f"No earlier run of {of_what} is in this home folder. {said}"
    console().say(said)


def refuse_unfittable(study: Study, budget: float | None, out: Screen) -> None:
    """Raise FileError if runs of the file have too few evaluations for a fit.

    A shorter `--budget` only gets a warning, because the same command can extend its runs later.
    """
    problem = too_few_readings(study, budget)
    if problem is None:
        return
    if budget is None:
        raise FileError(problem)
    out.say(f"warning: {problem}", style="yellow")
