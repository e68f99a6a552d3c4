"""The commands that train: sweep, train."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ablations.cli.budget import ask_about_jump, budget_of, jump_text, read_budget
from ablations.cli.check import of_program, refuse_early
from ablations.cli.design import refuse_unfittable, show_design
from ablations.cli.dry_run import made_text, show_cost, show_plan
from ablations.cli.ladder import ladder
from ablations.cli.named_sweeps import scales_of
from ablations.cli.options import (
    BudgetOption,
    ExecutorOption,
    HomeOption,
    JobsOption,
    JsonOption,
    ScaleOption,
    SetOption,
    TrackingOption,
    YesOption,
    files_begun,
)
from ablations.cli.output import command_given, console, pages_command, print_json, warn
from ablations.cli.training import TrainingOptions, trained
from ablations.cli.unfinished import unfinished_code
from ablations.errors import AblationsError
from ablations.home.home import find_home
from ablations.home.labels import named_runs
from ablations.home.start_command import folder_given
from ablations.home.started_sweep import StartedSweep
from ablations.home.state import State
from ablations.pools.code_version import code_version
from ablations.report.documents.checks import lines_of
from ablations.running.make_plan import check_horizon, make_plan, sweep_name
from ablations.running.shortening import newly_left_out, sized, what_is_lost
from ablations.search.record import SearchRecord, read_search
from ablations.search.tables import note, trials_table
from ablations.study.expand import expand
from ablations.study.resolve import load_resolved
from ablations.study.side_effects import side_effects
from ablations.terminal.own_command import own_command
from ablations.terminal.progress_bar import progress_bar
from ablations.terminal.screen import Screen


def sweep(
    file: Annotated[Path, typer.Argument(help="Sweep file, for example sweeps/loo.yaml.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the runs and stop.")] = False,
    scale: ScaleOption = None,
    set_: SetOption = None,
    budget: BudgetOption = None,
    executor: ExecutorOption = "local",
    jobs: JobsOption = None,
    yes: YesOption = False,
    hold: Annotated[
        bool, typer.Option("--hold", help="Slurm: submit held jobs, to start with `scontrol release`.")
    ] = False,
    after: Annotated[str | None, typer.Option(help="Slurm: job that must end first.")] = None,
    prune: Annotated[
        bool, typer.Option("--prune", help="Slurm: cancel jobs of runs that are no longer in the file.")
    ] = False,
    shorten: Annotated[
        bool, typer.Option("--shorten", help="Allow a smaller budget or fewer runs than the study has already trained.")
    ] = False,
    tracking_uri: TrackingOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Train the missing runs of a sweep, then fit and compare its variants; at each of its scales in turn."""
    options = TrainingOptions(
        home=find_home(home),
        budget=None if budget is None else read_budget(budget),
        executor=executor,
        jobs=jobs,
        yes=yes,
        hold=hold,
        after=after,
        prune=prune,
        dry_run=dry_run,
        tracking_uri=tracking_uri,
        as_json=as_json,
    )
    scales = scales_of(file, scale)
    several = len(scales) > 1
    if several and as_json:
        compare = f"platform ladder {shlex.quote(str(file))} --json{options.home.end_of_command}"
        raise AblationsError(f"{file}: --json prints one document; add --scale, or run `{compare}`")
    codes = []
    for one in scales:
        if several:
            console().say(f"scale {one}:")
        codes.append(sweep_once(file, one, set_ or (), options, shorten=shorten))
    if several and executor == "slurm" and not dry_run:
        named = f"{shlex.quote(str(file))}{options.home.end_of_command}"
        console().say(f"ladder     {own_command()} ladder {named}, once the jobs have ended")
    if several and not any((*codes, dry_run, executor == "slurm")):
        try:
            ladder([str(file)], home=home)
        except AblationsError as error:  # the runs are trained all the same
            warn(f"no ladder: {error}")
    if code := max(codes):
        raise typer.Exit(code)


def sweep_once(file: Path, scale: str | None, sets: Sequence[str], options: TrainingOptions, *, shorten: bool) -> int:
    """Train and compare the study at one scale, None for the file's own; returns the exit code."""
    place, asked, dry_run, as_json = options.home, options.budget, options.dry_run, options.as_json
    study = expand(file, scale=scale, sets=sets)
    command = command_given(place, scale=scale)
    compute = None if asked is None else budget_of(study, asked)
    name, folder = sweep_name(study, scale), folder_given(place)
    plan = make_plan(study, name, budget=compute, command=command, folder=folder, is_shown_only=dry_run)
    lost = "" if shorten else what_is_lost(plan, place)
    plan = sized(plan, place, shorten=shorten or dry_run)
    started = StartedSweep(home=place, plan=plan)
    out = console(stderr=as_json)
    refuse_unfittable(study, compute, out)
    if asked is not None and not dry_run:
        ask_about_jump(asked, plan, own=study.sweep.budget.compute)
    if study.made:
        out.say(made_text(study))
    if new := newly_left_out(plan, place):
        out.say(
            f"since settings, variants, seeds or code have changed, {name} leaves out trained runs: {named_runs(new)}"
        )
    if dry_run:
        if lost:
            warn(f"{lost}; pass --shorten to continue anyway")
        if lacking := of_program(study.reference.recipe, trains_here=options.executor == "local"):
            warn("\n  ".join(lines_of(lacking, 1)))
        for effect in side_effects(study):
            warn("\n  ".join(lines_of(effect, len(study.variants))))
        show_plan(study, started, as_json)
        if not as_json:
            show_design(study, started)
            if asked is not None and (jump := jump_text(asked, plan, own=study.sweep.budget.compute)):
                text = f"warning: {jump}; for GPU-hours, write for example 160h"
                out.say(text, style="yellow")
        if options.executor == "slurm" and not as_json:
            show_cost(study, started, options.jobs)
        return 0
    with trained(study, started, file=file, options=options, out=out) as is_over:
        if not is_over:
            return 0
        started = started.reread()  # a search has added its trials
        conclude(started, out, as_json)
    return unfinished_code(started, also_failed=(State.STALE,))


def conclude(sweep: StartedSweep, out: Screen, as_json: bool) -> None:
    from ablations.findings.advice import with_next_steps
    from ablations.findings.results import read_results
    from ablations.report.documents.blocks import Text
    from ablations.report.documents.comparison import brief_comparison
    from ablations.report.documents.comparison_words import answers, unkept_results_note
    from ablations.report.formats import write_in_format
    from ablations.report.writers.terminal import print_document

    with progress_bar("fitting curves") as done:
        results = read_results(sweep, done=done)
    search = read_search(sweep)
    warn(unkept_results_note(results))
    if as_json:
        print_json(with_next_steps(results) | ({"search": search.to_json()} if search else {}))
    elif search is None:
        print_document([*brief_comparison(results), *(Text(text=text) for text in ("", *answers(results), ""))], out)
    else:
        print_search(search, sweep, out)
    with Console(stderr=True).status("drawing and writing"):
        page = write_in_format(results, "html", now=datetime.now(UTC))
    places = f"report     {page}\ndashboard  {pages_command(sweep.home)}"
    out.print(places, soft_wrap=True, highlight=False, markup=False)


def print_search(search: SearchRecord, sweep: StartedSweep, out: Screen) -> None:
    """Print the trials, best first, and compare the best of them with the reference."""
    from ablations.findings.results import read_results
    from ablations.report.documents.comparison import brief_comparison
    from ablations.report.writers.terminal import print_document

    plan = sweep.plan
    names = {plan.reference, *(trial.name for trial in search.best)}
    shown = replace(plan, variants=tuple(variant for variant in plan.variants if variant.name in names))
    print_document([trials_table(search), *brief_comparison(read_results(replace(sweep, plan=shown)))], out)
    out.say(note(search, plan.reference))


def train(
    recipe: Annotated[str, typer.Argument(help="Recipe, by name or path.")],
    scale: Annotated[str, typer.Option(help="Scale, by name or path.", autocompletion=files_begun("scale"))] = "laptop",
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    budget: Annotated[str, typer.Option(help="Compute: 1 in the scale's unit, or 160h in GPU-hours.")] = "1",
    set_: SetOption = None,
    home: HomeOption = None,
) -> None:
    """Train one run in this process."""
    asked = read_budget(budget)
    resolved, place = load_resolved(recipe, scale, set_ or ()), find_home(home)
    compute = asked.in_scale_units(unit_gpu_hours=resolved.compute_unit_gpu_hours, own=1.0)
    check_horizon(f"recipe {recipe}", resolved, compute)
    place.require_writable()
    whole = ["platform", "check", recipe, "--scale", scale, *(f"--set={text}" for text in set_ or ())]
    refuse_early({recipe: resolved}, console(stderr=True), whole=shlex.join(whole))
    run_id = resolved.identity(seed)
    folder = place.run(run_id)
    folder.create(resolved, seed)
    print(f"run {run_id} in {folder.path}", flush=True)
    from scalerl.run.train import train as train_folder

    train_folder(
        folder.path,
        budget_gpu_hours=compute * resolved.compute_unit_gpu_hours,
        warm_starts=place.warm_starts,
        code_version=code_version(),
    )
    status = folder.read_status()
    if status.message:
        print(f"run {run_id} is {status.state}: {status.message}")
