"""The commands that evaluate a sweep: fit, compare, paper, report."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console

from ablations.cli.exit_codes import FAILED
from ablations.cli.ladder import ladder_beside, last_started
from ablations.cli.named_sweeps import find_sweep
from ablations.cli.options import (
    AloneOption,
    ComputeOption,
    GpusOption,
    HomeOption,
    JsonOption,
    LogOption,
    MlflowOption,
    ReferenceOption,
    ScoreOption,
    StepOption,
    SweepsArgument,
    TaskOption,
    further_sweeps,
    refuse_idle,
    started_sweeps,
)
from ablations.cli.output import console, print_json, say_pages, tell, warn
from ablations.errors import AblationsError
from ablations.fit.options import Auto, FitLoss, R0Mode
from ablations.home.home import find_home
from ablations.home.started_sweep import StartedSweep
from ablations.terminal.progress_bar import progress_bar
from ablations.terminal.short_names import meant
from scalerl.run.run_folder import write_atomically

if TYPE_CHECKING:
    from ablations.findings.results import Results
    from ablations.imports.orders import Foreign


def fit(
    source: Annotated[
        str | None,
        typer.Argument(
            help="A sweep, or a CSV file with columns curve, compute and score, or with a column for each run beside "
            "step or compute. Optional columns: seed, and samples (number of generations behind a score) or prompts "
            "and samples_per_prompt. Default: the last sweep started.",
            autocompletion=started_sweeps,
        ),
    ] = None,
    fit_from: Annotated[
        str | None,
        typer.Option(
            "--from", help='Ignore evaluations up to this compute; "auto" starts where the scaling law begins to hold.'
        ),
    ] = None,
    fit_to: Annotated[float | None, typer.Option("--to", help="Ignore evaluations beyond this compute.")] = None,
    r0: Annotated[
        R0Mode | None, typer.Option(help="Relation of R_0 to the evaluation before RL: fixed, anchored or free.")
    ] = None,
    loss: Annotated[FitLoss | None, typer.Option(help="Loss of the fit; huber down-weights outliers.")] = None,
    ceiling: Annotated[
        float | None, typer.Option(help="Highest pass rate that the task allows, if known; A cannot exceed it.")
    ] = None,
    task: TaskOption = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Explain the reasons for and against trusting each fit.")
    ] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fit the sigmoid compute-performance curve (ScaleRL eq. 1). Exit code 1 if no curve can be fitted."""
    from ablations.readings.fitted_run import fit_sweep
    from ablations.report.documents.comparison_words import unkept_note
    from ablations.report.documents.fit import fit_document
    from ablations.report.writers.terminal import print_document

    first = check_cutoff(fit_from)
    check_end(fit_to, first)
    settings = given(fit_from=first, fit_to=fit_to, r0=r0, loss=loss, ceiling=ceiling, task=task)
    started = find_sweep(home, source)
    with progress_bar("fitting curves") as done:
        fits = fit_sweep(started, done=done, **settings)
    warn(unkept_note(started.home, (run.unkept for run in fits)))
    if as_json:
        print_json([one.explained() if explain else one.to_json() for one in fits])
    else:
        print_document(fit_document(fits, explained=explain), console())
    if not any(one.fit for one in fits):
        raise typer.Exit(FAILED)


def given(**options: Any) -> dict[str, Any]:
    """The options that the user has given."""
    return {name: value for name, value in options.items() if value is not None}


def check_cutoff(text: str | None) -> float | Auto | None:
    """Parse --from as a compute, "auto" or None; raises AblationsError for anything else."""
    if text is None or text == "auto":
        return text
    try:
        compute = float(text)
    except ValueError:
        compute = -1.0
    if not 0 <= compute < math.inf:
        raise AblationsError(f'--from: found {text!r}; must be an amount of compute, 0 or more, or "auto"')
    return compute


def check_end(fit_to: float | None, fit_from: float | Auto | None) -> None:
    """Raise AblationsError if --to leaves no compute beyond `fit_from`."""
    if fit_to is None:
        return
    if not fit_to > 0:
        raise AblationsError(f"--to: found {fit_to:g}; must be a compute above 0")
    if isinstance(fit_from, float) and fit_from >= fit_to:
        raise AblationsError(f"--from: found {fit_from:g}; must lie below --to, which is {fit_to:g}")


def compare(
    sweeps: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SWEEP",
            help="Sweep names or files; or runs that `platform import` reads: logs with --log, or with --score and "
            "--compute, one CSV file of curves, folders of ablations.start, an experiment with --mlflow. Several are "
            "compared with the reference of the first. Default: the last sweep started.",
            autocompletion=further_sweeps,
        ),
    ] = None,
    task: TaskOption = None,
    reference: ReferenceOption = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Add what each variant changes, where its hours went, all warnings, and the method."
        ),
    ] = False,
    log: LogOption = None,
    gpus: GpusOption = None,
    score: ScoreOption = None,
    compute: ComputeOption = None,
    step: StepOption = None,
    mlflow: MlflowOption = None,
    curves: Annotated[Path | None, typer.Option(help="Also write the curves to this CSV file.")] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare variants with a reference, in sweeps or, without an import, in runs that you already have."""
    from ablations.findings.advice import with_next_steps
    from ablations.report.documents.comparison import brief_comparison
    from ablations.report.writers.terminal import print_document

    if as_json:
        refuse_idle("--json", {"--explain": explain})
    names = sweeps or []
    options = given(trainer=log, gpus=gpus, score=score, compute=compute, step=step)
    foreign = foreign_runs(names, options, {}, mlflow=mlflow)
    if foreign.kind:
        refuse_idle(foreign.kind, {"--task": task})
        results = results_of_foreign(home, foreign, reference)
    else:
        refuse_idle("a sweep", {f"--{name}": value for name, value in options.items()})
        results = results_of_sweeps(home, names, task, baseline=reference)
    if curves is not None:
        from ablations.report.writers.csv_files import csv_files

        write_atomically(curves, csv_files(results)["curves.csv"])
    if as_json:
        print_json(with_next_steps(results))
    else:
        out = console()
        print_document(brief_comparison(results, explain=explain), out)
        if not results.sweep.home.is_passing:
            say_pages(results.sweep.home, out)
    if results.comparison is None:
        why = "; ".join(results.reasons[:3]) or "no run has an evaluation"
        raise AblationsError(f"nothing is compared: {results.plan.reference} has no fit ({why})")


def paper(
    sweeps: SweepsArgument = None,
    task: TaskOption = None,
    reference: ReferenceOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the variants of sweeps like arXiv 2510.13786, with its grid and its margin of 0.02."""
    from ablations.findings.paper_comparison import paper_comparison
    from ablations.report.documents.paper_comparison import paper_document
    from ablations.report.writers.terminal import print_document

    results = results_of_sweeps(home, sweeps or [], task, baseline=reference)
    with progress_bar("fitting on the paper's grid") as done:
        comparison = paper_comparison(results, done=done)
    if as_json:
        print_json({"sweep": results.plan.sweep, "together_with": list(results.beside)} | comparison.to_json())
    else:
        compute_name = results.plan.compute_name
        print_document(paper_document(comparison, sweep=results.title, compute_name=compute_name), console())


def foreign_runs(
    names: Sequence[str], columns: Mapping[str, Any], naming: Mapping[str, str], *, mlflow: str | None
) -> "Foreign":
    """The runs of other trainers that a command line names; `columns` are fields of `LogMeaning`, `naming` fields of
    `Naming`.

    Its kind is empty if the names are sweeps or missing.
    """
    from ablations.imports.orders import Foreign
    from ablations.logs.meaning import LogMeaning

    found = Foreign(names=tuple(names), meaning=LogMeaning(**columns), naming=naming, mlflow=mlflow)
    if found.kind in ("a CSV file", "folders of runs"):
        refuse_idle(found.kind, {f"--{name}": value for name, value in {**columns, **naming}.items()})
    if mlflow is not None:
        refuse_idle(found.kind, {"--pattern": naming.get("pattern"), "--log": columns.get("trainer")})
    return found


def results_of_foreign(home: Path | None, foreign: "Foreign", reference: str | None) -> "Results":
    """Results of other trainers' runs, imported into a scratch home."""
    with progress_bar("reading logs") as done:
        opened = foreign.opened_one(find_home(home), reference=reference, done=done)
    return fitted_results(opened)


def results_of_sweeps(
    home: Path | None, names: Sequence[str], task: str | None, *, alone: bool = False, baseline: str | None = None
) -> "Results":
    """Results of one sweep, by default the last one, or of several sweeps compared with the reference of the first."""
    from ablations.findings.several_sweeps import check_together, together, with_baseline
    from ablations.readings.task_curves import with_task

    first, *others = started = [find_sweep(home, name) for name in names] or [find_sweep(home, None)]
    check_together(started)
    sweep = together(first, others) if others else first
    if baseline is not None:
        sweep = with_baseline(sweep, meant(baseline, [variant.name for variant in sweep.plan.variants]))
    return fitted_results(with_task(sweep, task), alone=alone)


def fitted_results(sweep: StartedSweep, *, alone: bool = False) -> "Results":
    """Results of one sweep, with a warning if its fits cannot be kept."""
    from ablations.findings.results import read_results
    from ablations.report.documents.comparison_words import unkept_results_note

    with progress_bar("fitting curves") as done:
        results = read_results(sweep, alone=alone, done=done)
    warn(unkept_results_note(results))
    return results


def report(
    sweeps: SweepsArgument = None,
    form: Annotated[
        Literal["html", "md", "csv", "latex"],
        typer.Option("--format", help="One HTML file, Markdown with figures, CSV of curves and fits, or LaTeX."),
    ] = "html",
    to: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the report, or for one page a file, as in mine.html. Default: the sweep's folder in the "
            "home folder."
        ),
    ] = None,
    task: TaskOption = None,
    alone: AloneOption = False,
    home: HomeOption = None,
) -> None:
    """Write a report on one or several sweeps: an HTML file that opens anywhere, or files for papers and programs.

    If a study was started at several scales, each report includes the differences over all of them. A file with
    `scales` is reported at the last started scale.
    """
    from ablations.report.formats import report_page, write_in_format

    if to is not None and is_page(to) and form != "html":
        raise AblationsError(f"--to {to} names a page, and --format {form} writes several files; name a folder")
    names = [last_started(home, name) for name in sweeps or []]
    results = results_of_sweeps(home, names, task, alone=alone)
    place = to or results.report_folder
    ladder = None if len(names) > 1 or task else ladder_beside(results)
    now = datetime.now(UTC)
    try:
        with Console(stderr=True).status("drawing and writing"):
            if is_page(place):
                page = report_page(results, now=now, ladder=ladder)
                place.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(place, page.encode())
                written = place
            else:
                place.mkdir(parents=True, exist_ok=True)
                written = write_in_format(results, form, now=now, folder=place, ladder=ladder)
    except OSError as error:
        raise AblationsError(
            f"{place} is not writable ({error.strerror or error}); choose another folder with --to FOLDER"
        ) from error
    tell(str(written))


def is_page(place: Path) -> bool:
    """True if a report is to be one file at this place."""
    return place.suffix == ".html" and not place.is_dir()
