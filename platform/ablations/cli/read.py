"""The commands that evaluate a sweep: fit, compare, report."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console

from ablations.cli.exit_codes import FAILED
from ablations.cli.ladder import ladder_beside, last_started
from ablations.cli.named_sweeps import find_sweep, is_curve_file
from ablations.cli.options import AloneOption, HomeOption, JsonOption, TaskOption, further_sweeps, refuse_idle
from ablations.cli.output import console, print_json, tell, warn
from ablations.errors import AblationsError
from ablations.findings.order import OrderBy, in_order
from ablations.fit.options import Auto, FitLoss, FitSettings, R0Mode
from ablations.terminal.progress_bar import progress_bar
from ablations.terminal.short_names import meant
from scalerl.run.run_folder import write_atomically

if TYPE_CHECKING:
    from ablations.findings.results import Results


def fit(
    source: Annotated[
        str,
        typer.Argument(
            help="CSV file with columns curve,compute,score, or a sweep. A CSV file may also have seed, and samples "
            "(all generations behind a score) or prompts and samples_per_prompt."
        ),
    ],
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
    from ablations.readings.fitted_run import fit_file, fit_sweep
    from ablations.report.words.comparison import unkept_note

    first = check_cutoff(fit_from)
    check_end(fit_to, first)
    settings = given(fit_from=first, fit_to=fit_to, r0=r0, loss=loss, ceiling=ceiling, task=task)
    if is_curve_file(source):
        refuse_idle("a CSV file", {"--task": task})
        fits = fit_file(Path(source), FitSettings(**settings))
    else:
        started = find_sweep(home, source)
        with progress_bar("fitting curves") as done:
            fits = fit_sweep(started, done=done, **settings)
        warn(unkept_note(started.home, (run.unkept for run in fits)))
    if as_json:
        print_json([one.explained() if explain else one.to_json() for one in fits])
    else:
        from ablations.report.tables import fit_table, fit_words

        console().print(fit_table(fits))
        for one in fits if explain else ():
            console().print(fit_words(one))
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
            help="Sweep names or files, one CSV file of curves, folders of runs logged by ablations.start, or logs of "
            "another trainer with --log, or --score and --compute. Several are compared with the reference of the "
            "first. Default: the sweep started last.",
            autocompletion=further_sweeps,
        ),
    ] = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="Compare like arXiv 2510.13786, with its grid and its margin of 0.02.")
    ] = False,
    task: TaskOption = None,
    reference: Annotated[
        str | None, typer.Option(help="Variant with which to compare the others. Default: the sweep's reference.")
    ] = None,
    fit_from: Annotated[
        str | None, typer.Option("--from", help='For curves of another trainer: a compute or "auto", as in `fit`.')
    ] = None,
    loss: Annotated[
        FitLoss | None, typer.Option(help="Loss for curves of another trainer; huber down-weights outliers.")
    ] = None,
    ceiling: Annotated[
        float | None, typer.Option(help="For curves of another trainer: highest pass rate that the task allows.")
    ] = None,
    mlflow: Annotated[str | None, typer.Option(help="MLflow server or store with the --experiment to compare.")] = None,
    experiment: Annotated[str | None, typer.Option(help="Name of the MLflow experiment.")] = None,
    log: Annotated[
        str | None,
        typer.Option(
            help="Trainer that wrote the logs: verl, prime-rl, slime, skyrl, nemo-rl, openrlhf, trl or areal. Then "
            "SWEEP is one file or folder per run."
        ),
    ] = None,
    gpus: Annotated[
        float | None, typer.Option(help="With --log: GPUs per run, so that compute is in GPU-hours.")
    ] = None,
    score: Annotated[
        str | None, typer.Option(help="Held-out pass rate in logs or MLflow: a column or an expression.")
    ] = None,
    compute: Annotated[
        str | None,
        typer.Option(
            help='Compute in logs or MLflow: a column, or an expression such as "cumsum(perf/time_per_step) * 64 / '
            '3600".'
        ),
    ] = None,
    step: Annotated[
        str | None, typer.Option(help="Step in logs: a column or an expression. Default: the file's own.")
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option(
            help="Regular expression for the names of runs in logs, with groups (?P<variant>...) and (?P<seed>...). "
            "Default: dapo-s1 is variant dapo, seed 1."
        ),
    ] = None,
    variant: Annotated[
        str | None,
        typer.Option(
            help="Configuration key (in MLflow a param or tag, in a table with several runs a column) that holds the "
            "variant. Default in MLflow: variant."
        ),
    ] = None,
    seed: Annotated[
        str | None,
        typer.Option(
            help="Configuration key (in MLflow a param or tag, in a table with several runs a column) that holds the "
            "seed. Default: runs are numbered in their order."
        ),
    ] = None,
    samples: Annotated[
        str | None, typer.Option(help="All generations behind a score in logs or MLflow: an expression or a number.")
    ] = None,
    curves: Annotated[
        Path | None, typer.Option(help="Also write the curves to this CSV file, which fit, forecast and design read.")
    ] = None,
    alone: AloneOption = False,
    sort: Annotated[
        OrderBy | None,
        typer.Option(help="Sort by this quantity, best first, or by name. Default: the order of the sweep file."),
    ] = None,
    sheet: Annotated[
        str | None, typer.Option("--csv", help="Write one row per variant to this CSV file; - prints the rows.")
    ] = None,
    latex: Annotated[bool, typer.Option("--latex", help="Print the table for LaTeX (needs booktabs).")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Add what each variant changes, all warnings, and the method.")
    ] = False,
    hours: Annotated[bool, typer.Option("--hours", help="Add where the device hours of each variant went.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare variants with a reference: of sweeps, a CSV file, logged runs, logs of another trainer, or MLflow."""
    from ablations.cli.other_trainers import Elsewhere
    from ablations.cli.shown_comparison import show_comparison, write_sheet
    from ablations.logs.meaning import LogMeaning

    settings = given(fit_from=check_cutoff(fit_from), loss=loss, ceiling=ceiling)
    of_meaning = given(gpus=gpus, score=score, compute=compute, step=step, samples=samples)
    of_naming = given(pattern=pattern, variant=variant, seed=seed)
    of_logs = {f"--{name}": value for name, value in (given(log=log) | of_meaning | of_naming).items()}
    meaning = LogMeaning(trainer=log, **of_meaning)
    of_home = {"--task": task, "--alone": alone}
    of_table = {"--explain": explain, "--hours": hours}
    if paper:
        refuse_idle("--paper", {"--sort": sort, "--csv": sheet, "--latex": latex} | of_table)
    if as_json:
        refuse_idle("--json", {"--csv": sheet, "--latex": latex} | of_table)
    if sheet is not None:
        refuse_idle("--csv", {"--latex": latex} | of_table)
    if latex:
        refuse_idle("--latex", of_table)
    names = sweeps or []
    files = [name for name in names if is_curve_file(name)]
    elsewhere = Elsewhere(home=home, reference=reference, settings=FitSettings(**settings))
    if mlflow is not None:
        refuse_idle("an MLflow experiment", {"SWEEP": names[0] if names else None, "--pattern": pattern} | of_home)
        results = elsewhere.experiment(mlflow, experiment, meaning, of_naming)
    elif any(value is not None for value in (log, score, compute)):
        refuse_idle("logs", {"--experiment": experiment} | of_home)
        results = elsewhere.logs(names, meaning, of_naming)
    elif files:
        if len(names) > 1:
            raise AblationsError(
                f"a CSV file cannot be combined with other sources; pass only {files[0]}, or only sweeps. Logs need "
                "--log, or --score and --compute"
            )
        refuse_idle("a CSV file", of_home | {"--experiment": experiment} | of_logs)
        results = elsewhere.file(Path(files[0]))
    elif names and all(_has_own_runs(name) for name in names):
        refuse_idle("folders of runs", of_home | {"--experiment": experiment} | of_logs)
        results = elsewhere.folders(names)
    else:
        options = {"--from": fit_from, "--loss": loss, "--ceiling": ceiling, "--experiment": experiment}
        refuse_idle("a sweep", options | of_logs)
        results = results_of_sweeps(home, names, task, alone=alone, baseline=reference)
    if curves is not None:
        from ablations.report.csv_files import csv_files

        write_atomically(curves, csv_files(results)["curves.csv"])
    if sort is not None:
        results = in_order(results, sort)
    if paper:
        from ablations.findings.paper_comparison import paper_comparison
        from ablations.report.tables import paper_table

        with progress_bar("fitting on the paper's grid") as done:
            comparison = paper_comparison(results, done=done)
        if as_json:
            names = {"sweep": results.plan.sweep, "together_with": list(results.beside)}
            print_json(names | comparison.to_json())
        else:
            name = results.plan.compute_name
            console().print(paper_table(comparison, sweep=results.title, compute_name=name))
    elif as_json:
        print_json(results.to_json())
    elif sheet is not None:
        write_sheet(results, sheet)
    elif latex:
        from ablations.report.latex import latex_table

        tell(latex_table(results), end="")
    else:
        show_comparison(results, explain=explain, hours=hours)
    if results.comparison is None and not paper:
        why = "; ".join(results.reasons[:3]) or "no run has an evaluation"
        raise AblationsError(f"nothing is compared: {results.plan.reference} has no fit ({why})")


def results_of_sweeps(
    home: Path | None, names: Sequence[str], task: str | None, *, alone: bool = False, baseline: str | None = None
) -> "Results":
    """Results of one sweep, by default the last one, or of several sweeps compared with the reference of the first."""
    from ablations.findings.results import read_results
    from ablations.findings.several_sweeps import check_together, together, with_baseline
    from ablations.readings.task_curves import with_task
    from ablations.report.words.comparison import unkept_results_note

    first, *others = started = [find_sweep(home, name) for name in names] or [find_sweep(home, None)]
    check_together(started)
    sweep = together(first, others) if others else first
    if baseline is not None:
        sweep = with_baseline(sweep, meant(baseline, [variant.name for variant in sweep.plan.variants]))
    with progress_bar("fitting curves") as done:
        results = read_results(with_task(sweep, task), alone=alone, done=done)
    warn(unkept_results_note(results))
    return results


def _has_own_runs(name: str) -> bool:
    from ablations.findings.other_trainers import own_runs_in

    return Path(name).is_dir() and bool(own_runs_in(Path(name)))


def report(
    sweeps: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SWEEP",
            help="Sweep names or files. Several sweeps are compared with the reference of the first. Default: the "
            "sweep started last.",
            autocompletion=further_sweeps,
        ),
    ] = None,
    form: Annotated[
        Literal["html", "md", "csv", "latex"],
        typer.Option("--format", help="One HTML file, Markdown with figures, CSV of curves and fits, or LaTeX."),
    ] = "html",
    to: Annotated[
        Path | None, typer.Option(help="Folder for the report. Default: the sweep's folder in the home folder.")
    ] = None,
    task: TaskOption = None,
    alone: AloneOption = False,
    home: HomeOption = None,
) -> None:
    """Write a report of one sweep or several: an HTML file that opens anywhere, or files for papers and programs.

    If a study was started at several scales, each report includes the differences over all of them. A file with
    `scales` is reported at the last started scale.
    """
    from ablations.report.formats import write_in_format

    names = [last_started(home, name) for name in sweeps or []]
    results = results_of_sweeps(home, names, task, alone=alone)
    folder = to or results.report_folder
    ladder = None if len(names) > 1 or task else ladder_beside(results)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with Console(stderr=True).status("drawing and writing"):
            written = write_in_format(results, form, now=datetime.now(UTC), folder=folder, ladder=ladder)
    except OSError as error:
        raise AblationsError(
            f"{folder} is not writable ({error.strerror or error}); choose another folder with --to FOLDER"
        ) from error
    tell(str(written))
