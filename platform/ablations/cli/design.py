"""The command that shows what differences a study could detect before it is run: design."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ablations.cli.budget import budget_of, read_budget
from ablations.cli.named_sweeps import is_curve_file, scales_of
from ablations.cli.options import (
    BudgetOption,
    HomeOption,
    JsonOption,
    ReferenceOption,
    ScaleOption,
    SetOption,
    refuse_idle,
)
from ablations.cli.output import console, print_json, warn
from ablations.errors import AblationsError, FileError
from ablations.findings.design_options import Blueprint, design_command
from ablations.fit.options import FitSettings
from ablations.home.home import find_home
from ablations.home.started_sweep import StartedSweep, plans_of
from ablations.study.expand import Study, expand
from ablations.study.fittable import too_few_readings
from ablations.terminal.listing import Column, Listing
from ablations.terminal.progress_bar import progress_bar
from ablations.terminal.screen import Screen
from ablations.text import at_scale, compute_text

if TYPE_CHECKING:
    from ablations.findings.cheapest_design import Prospect

QuestionName = Literal["level", "ceiling", "compute"]


def design(
    file: Annotated[Path, typer.Argument(help="Sweep file, for example sweeps/loo.yaml, or a CSV file of curves.")],
    detect: Annotated[
        float | None,
        typer.Option(help="Find the cheapest design for this difference: in pass rate, or for compute a ratio (1.2)."),
    ] = None,
    question: Annotated[QuestionName, typer.Option(help="Quantity to which --detect refers.")] = "level",
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
    from ablations.report.words.comparison import unkept_note
    from ablations.report.words.design import answer, notes, own_sentence, pair_sentences

    if is_curve_file(file.name):
        given = {"--detect": detect, "--noise": noise, "--seeds": seeds, "--scale": scale, "--budget": budget}
        refuse_idle("a CSV file", given | {"--set": set_ and set_[0]})
        show_curve_designs(file, reference, as_json=as_json)
        return
    refuse_idle("a sweep file", {"--reference": reference})
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
        out = console()
        out.print(design_table(prospect))
        said = [] if wanted is None else [answer(prospect, question, wanted)]
        for text in (*notes(prospect), own_sentence(prospect), *pair_sentences(prospect), *filter(None, said)):
            out.say(text)


def show_curve_designs(file: Path, reference: str | None, *, as_json: bool) -> None:
    from ablations.findings.curve_design import foresee_curves
    from ablations.findings.other_trainers import compare_elsewhere, study_of_file
    from ablations.report.words.design import curve_notes, seen_text

    results = compare_elsewhere(study_of_file(file), reference, FitSettings())
    designs = foresee_curves(results)
    if as_json:
        print_json({"sweep": results.title, "designs": [one.to_json() for one in designs]})
        return
    headings = ("seeds", "budget", "cost", "level", "ceiling", "compute")
    title = f"{results.title}: smallest detectable difference, by design"
    table = Listing(columns=[Column(heading=heading, kind="number") for heading in headings], title=title)
    for one in designs:
        seen = (seen_text(question, sight) for question, sight in one.sights.items())
        table.add(str(one.seeds), compute_text(one.budget), compute_text(one.cost), *seen)
    out = console()
    out.print(table)
    for text in curve_notes(results):
        out.say(text)


def check_wanted(question: QuestionName, detect: float) -> float:
    """The difference on the scale of the designs, as ln for compute; raises AblationsError if it is out of range."""
    if question == "compute":
        if not 1 < detect < math.inf:
            raise AblationsError(f"--detect: found {detect:g}; for compute, write a ratio above 1, for example 1.2")
        return math.log(detect)
    if not 0 < detect < 1:
        raise AblationsError(f"--detect: found {detect:g}; a difference in pass rate must be between 0 and 1")
    return detect


def design_table(prospect: "Prospect") -> Listing:
    """One line per design, the cheapest to train first."""
    from ablations.report.words.design import TIME, TO_TRAIN, design_row

    study = prospect.blueprint.study
    title = f"{study.sweep.name}{at_scale(study.scale)}: smallest detectable difference, by design"
    hidden = set() if prospect.known.speed else {TIME}
    hidden |= set() if any(one.costs.left != one.costs.whole for one in prospect.designs) else {TO_TRAIN}
    shown = [heading for heading in design_row(prospect, prospect.own) if heading not in hidden]
    columns = [Column(heading=heading, kind="number" if heading else "name") for heading in shown]
    table = Listing(columns=columns, title=title)
    for one in prospect.by_cost:
        cells = design_row(prospect, one)
        table.add(*(cells[heading] for heading in shown), style="bold" if one is prospect.own else "")
    return table


def show_design(study: Study, sweep: StartedSweep) -> None:
    """Print the command that shows what the sweep could detect, because its simulation is too slow for a dry run."""
    command = design_command(sweep.plan)
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
