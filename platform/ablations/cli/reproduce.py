"""The command that reproduces a figure of the paper: reproduce. Designs a study, trains it, writes its card."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ablations.cli.budget import ask_about_jump, budget_of, read_budget
from ablations.cli.design import refuse_unfittable
from ablations.cli.dry_run import made_text
from ablations.cli.exit_codes import FAILED
from ablations.cli.ladder import ladder_beside, print_ladder, results_of
from ablations.cli.named_sweeps import scales_of
from ablations.cli.options import (
    BudgetOption,
    ExecutorOption,
    HomeOption,
    JobsOption,
    JsonOption,
    ScaleOption,
    TrackingOption,
    YesOption,
    files_begun,
)
from ablations.cli.output import command_given, console, print_json
from ablations.cli.training import TrainingOptions, trained
from ablations.cli.unfinished import unfinished_code
from ablations.errors import AblationsError, Place
from ablations.files.lookup import files_of, find_file
from ablations.findings.design_options import Blueprint
from ablations.home.home import Home, find_home
from ablations.home.start_command import folder_given
from ablations.home.started_sweep import StartedSweep, read_sweep
from ablations.running.make_plan import make_plan, sweep_name
from ablations.running.shortening import sized
from ablations.study.expand import Study, expand, with_seeds
from ablations.terminal.own_command import own_command
from ablations.terminal.screen import Screen
from ablations.text import at_scale, compute_text, counted
from scalerl.errors import ScaleRLError
from scalerl.recipe.command import AnyRecipe, CommandRecipe
from scalerl.run.run_folder import write_atomically

if TYPE_CHECKING:
    from ablations.findings.claim_card import Card
    from ablations.findings.results import Results
    from ablations.findings.scale_ladder import ScaleLadder


def reproduce(
    study: Annotated[
        str | None,
        typer.Argument(help="Study, for example fig4a; --list shows all.", autocompletion=files_begun("study")),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the studies, with their claims and cost.")] = False,
    all_: Annotated[bool, typer.Option("--all", help="Run every study, one after another.")] = False,
    scale: ScaleOption = None,
    as_written: Annotated[
        bool, typer.Option("--as-written", help="Use the seeds and budget of the file instead of designing them.")
    ] = False,
    budget: BudgetOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the design and the claims, then stop.")] = False,
    executor: ExecutorOption = "local",
    jobs: JobsOption = None,
    yes: YesOption = False,
    tracking_uri: TrackingOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Reproduce a figure of the ScaleRL paper: design its study, train what is missing, judge the paper's claims.

    A study with `scales:` is reproduced at each of them; its cards say which differences carry.
    """
    from ablations.cli.studies import by_number, show_studies

    if [list_, all_, study is not None].count(True) != 1:
        raise AblationsError("reproduce: pass one study, --list, or --all")
    place = find_home(home)
    if list_:
        show_studies(place, as_json)
        return
    options = TrainingOptions(
        home=place,
        budget=None if budget is None else read_budget(budget),
        executor=executor,
        jobs=jobs,
        yes=yes,
        dry_run=dry_run,
        tracking_uri=tracking_uri,
        as_json=as_json,
    )
    names = sorted(files_of("study"), key=by_number) if study is None else [study]
    codes: list[int] = []
    found: list[dict[str, Any]] = []
    for name in names:
        try:
            code, data = reproduce_study(name, scale, options, as_written=as_written)
        except (AblationsError, ScaleRLError) as error:
            if not all_:
                raise
            console(stderr=True).say(f"{name}: {error}")
            code, data = FAILED, [{"study": name, "error": str(error)}]
        codes.append(code)
        found += data
    if as_json and found:
        print_json(found if all_ or len(found) > 1 else found[0])
    if code := max(codes, default=0):
        raise typer.Exit(code)


def reproduce_study(
    name: str, scale: str | None, options: TrainingOptions, *, as_written: bool
) -> tuple[int, list[dict[str, Any]]]:
    """Design, train and judge one study at each of its scales.

    Returns the exit code, and the cards (or in a dry run the plans) as JSON.
    """
    file = find_file("study", name, named_at=Place(source=f"reproduce {name}"))
    out = console(stderr=options.as_json)
    ended = [train_one(file, one, out, options, as_written=as_written) for one in scales_of(file, scale)]
    trained = [one for one in ended if isinstance(one, StartedSweep)]
    results = results_of(trained)
    ladder = ladder_beside(*results) if results else None
    found = [one for one in ended if isinstance(one, dict)]
    for started, one in zip(trained, results, strict=True):
        differing = unlike(started)
        card = written_card(one, started.folder, differing, ladder)
        found.append(card.to_json())
        if not options.as_json:
            show_card(card, started.folder, differing, out)
    if ladder is not None and not options.as_json:
        print_ladder(ladder, out)
    return max(map(unfinished_code, trained), default=0), found


def train_one(
    file: Path, scale: str | None, out: Screen, options: TrainingOptions, *, as_written: bool
) -> StartedSweep | dict[str, Any] | None:
    """Design and train a study at one scale, None for its own.

    Returns the sweep, in a dry run its plan as JSON, None if its jobs go on.
    """
    home, asked = options.home, options.budget
    written = expand(file, scale=scale)
    if not written.sweep.claims:
        raise AblationsError(f"{file}: has no claims; add the paper's claims under `claims:`")
    sweep = sweep_name(written, scale)
    wanted = None if asked is None else budget_of(written, asked)
    study, budget = designed(written, home, sweep, as_written=as_written, wanted=wanted, out=out)
    command = command_given(home, scale=scale, study=file.stem)
    plan = make_plan(study, sweep, budget=budget, command=command, folder=folder_given(home))
    # `designed` keeps seeds and budget, so only a shipped study with fewer variants than before is smaller.
    started = StartedSweep(home=home, plan=sized(plan, home, shorten=True))
    refuse_unfittable(study, budget, out)
    if study.made:
        out.say(made_text(study))
    if asked is not None and not options.dry_run:
        ask_about_jump(asked, started.plan, own=study.sweep.budget.compute)
    if options.dry_run:
        if not options.as_json:
            show_claims(study, started, out)
        return study_for_scripts(study, started)
    with trained(study, started, file=file, options=options, out=out) as is_over:
        return started if is_over else None


def designed(
    study: Study, home: Home, sweep: str, *, as_written: bool, wanted: float | None, out: Screen
) -> tuple[Study, float | None]:
    """The study with the seeds to train, and its budget in the scale's unit.

    A study started in this home folder keeps its seeds and budget, since a design that changed with every trained run
    would never end. A `wanted` budget replaces the old one; a new study with a `wanted` budget uses the seeds of its
    file. Raises AblationsError if the budget is smaller than the one the study started with.
    """
    if sweep in home.sweep_names():
        plan = read_sweep(home, sweep).plan
        seeds = tuple(dict.fromkeys(run.seed for run in plan.runs))
        begun = plan.budget_gpu_hours / plan.compute_unit_gpu_hours
        if wanted is not None and wanted < begun * (1 - 1e-9):
            raise AblationsError(
                f"--budget {wanted:g} is below the {begun:g} units per run that {sweep} started with; pass at least "
                f"{begun:g}, or omit --budget"
            )
        return with_seeds(study, seeds), wanted or begun
    if as_written or wanted is not None:
        return study, wanted
    if any(has_horizon(variant.recipe) for variant in study.variants):
        why = "because a variant's learning rate falls with compute"
        out.say(f"{study.sweep.name}: seeds and budget of the file, {why}.")
        return study, None

    from ablations.findings.claim_design import design_for
    from ablations.findings.study_design import foresee
    from ablations.report.documents.claim_card import claim_text
    from ablations.report.documents.design import source_sentence

    prospect = foresee(Blueprint(study=study, home=home, budget=study.sweep.budget.compute))
    found = design_for(prospect, study.sweep.claims)
    choice = found.foreseen.choice
    size = f"{counted(len(choice.seeds), 'seed')} and {choice.budget:g} units of compute per run"
    out.say(f"{study.sweep.name}: {size}. {source_sentence(prospect)}")
    if found.unseen:
        unseen = "; ".join(claim_text(claim) for claim in found.unseen)
        out.say(f"No design tried would decide all claims. Probably undecided: {unseen}.")
    return with_seeds(study, choice.seeds), choice.budget


def has_horizon(recipe: AnyRecipe) -> bool:
    """True if another budget would change the runs, because the learning-rate schedule is in units of compute.

    For a program, its sweep file decides: its runs can be extended.
    """
    if isinstance(recipe, CommandRecipe):
        return False
    schedule = recipe.optimiser.schedule
    return schedule.type != "constant" and schedule.unit == "compute"


def study_for_scripts(study: Study, started: StartedSweep) -> dict[str, Any]:
    plan = started.plan
    return {
        "study": plan.sweep,
        "doc": plan.doc,
        "scale": plan.scale,
        "claims": [claim.model_dump() for claim in study.sweep.claims],
        "num_seeds": len({run.seed for run in plan.runs}),
        "num_runs": len(plan.runs),
        "budget_gpu_hours": plan.budget_gpu_hours,
        "compute_name": plan.compute_name,
    }


def show_claims(study: Study, started: StartedSweep, out: Screen) -> None:
    from ablations.report.documents.blocks import table_of_rows
    from ablations.report.documents.claim_card import claim_text
    from ablations.report.writers.terminal import print_document

    plan = started.plan
    cost = len(plan.runs) * plan.budget_gpu_hours
    size = f"{counted(len(plan.runs), 'run')}{at_scale(plan.scale)}: {compute_text(cost)} {plan.compute_name} in all."
    rows = [{"claim": claim_text(claim), "source": claim.source} for claim in study.sweep.claims]
    title = f"{plan.sweep}: {plan.doc}"
    table = table_of_rows(rows, name="claims", title=title, kinds={"claim": "prose", "source": "words"}, notes=(size,))
    print_document([table], out)


def written_card(
    results: "Results", folder: Path, differing: Sequence[str], ladder: "ScaleLadder | None" = None
) -> "Card":
    """Create the card and write it to the sweep's folder: card.json, card.md and its figure, curves.svg."""
    from ablations.findings.claim_card import CARD_FILE, card_of
    from ablations.report.documents.claim_card import card_document
    from ablations.report.writers.markdown import markdown_files

    card = card_of(results, ladder)
    write_atomically(folder / CARD_FILE, json.dumps(card.to_json(), indent=1, allow_nan=False).encode())
    for name, content in markdown_files(card_document(card, differing), "card.md", pictures="svg").items():
        write_atomically(folder / name, content)
    return card


def unlike(sweep: StartedSweep) -> list[str]:
    """The differences between a sweep and the paper's setup."""
    from ablations.report.documents.claim_card import unlike_the_paper
    from scalerl.memory.shape import shape_of

    recipe, _ = sweep.run(sweep.plan.runs[0].id).read_recipe()
    if isinstance(recipe, CommandRecipe):
        return []
    return unlike_the_paper(recipe, shape_of(recipe.model).parameters)


def show_card(card: "Card", folder: Path, differing: Sequence[str], out: Screen) -> None:
    """Print the claims, the result for each, and the differences from the paper's setup."""
    from ablations.report.documents.claim_card import card_document
    from ablations.report.writers.terminal import print_document

    print_document(card_document(card, differing, with_ladder=False), out)
    sweep = card.results.sweep
    shown = f"card  {folder / 'card.md'}\ncomparison  {own_command()} compare {sweep.name}{sweep.home.end_of_command}"
    out.print(shown, soft_wrap=True, highlight=False, markup=False)
