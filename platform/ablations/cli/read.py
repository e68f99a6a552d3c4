"""The commands that read what came of a sweep: fit, compare, report."""

import math
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ablations.cli.options import (
    FAILED,
    HomeOption,
    JsonOption,
    SweepArgument,
    TaskOption,
    console,
    find_sweep,
    print_json,
)
from ablations.errors import AblationsError
from ablations.fit.options import Auto, FitSettings, Loss, R0Mode

if TYPE_CHECKING:
    from ablations.verdict.results import Results


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
        typer.Option("--from", help='Compute up to which readings are left out; "auto": until they follow the law.'),
    ] = None,
    fit_to: Annotated[float | None, typer.Option("--to", help="Compute beyond which readings are left out.")] = None,
    r0: Annotated[R0Mode | None, typer.Option(help="How R_0 is tied to the reading before RL.")] = None,
    loss: Annotated[Loss | None, typer.Option(help="huber: outliers count less.")] = None,
    ceiling: Annotated[
        float | None, typer.Option(help="Highest pass rate that the task allows, if it is known: A is no higher.")
    ] = None,
    task: TaskOption = None,
    explain: Annotated[bool, typer.Option("--explain", help="Say why to believe each fit, and why not.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fit the sigmoid compute-performance curve (ScaleRL eq. 1); exit code 1 when no curve can be fitted."""
    from ablations.verdict.results import fit_file, fit_sweep

    first = check_cutoff(fit_from)
    check_end(fit_to, first)
    given = {"fit_from": first, "fit_to": fit_to, "r0": r0, "loss": loss, "ceiling": ceiling, "task": task}
    settings = {name: value for name, value in given.items() if value is not None}
    if source.lower().endswith(".csv"):
        if task is not None:
            raise AblationsError(f"--task {task} has no effect on a CSV file, whose curves have names; leave it out")
        fits = fit_file(Path(source), FitSettings(**settings))
    else:
        fits = fit_sweep(find_sweep(home, source), **settings)
    if as_json:
        print_json([one.explained() if explain else one.to_json() for one in fits])
    else:
        from ablations.report.tables import fit_table, fit_words

        console().print(fit_table(fits))
        for one in fits if explain else ():
            console().print(fit_words(one))
    if not any(one.fit for one in fits):
        raise typer.Exit(FAILED)


def check_cutoff(text: str | None) -> float | Auto | None:
    """The compute after which readings count, "auto", or None; AblationsError when it is none of them."""
    if text is None or text == "auto":
        return text
    try:
        compute = float(text)
    except ValueError:
        compute = -1.0
    if not 0 <= compute < math.inf:
        raise AblationsError(f'--from: found {text!r}; must be a compute of 0 or more, or "auto"')
    return compute


def check_end(fit_to: float | None, fit_from: float | Auto | None) -> None:
    """AblationsError when no compute lies beyond `fit_from` and up to `fit_to`."""
    if fit_to is None:
        return
    if not fit_to > 0:
        raise AblationsError(f"--to: found {fit_to:g}; must be a compute above 0")
    if isinstance(fit_from, float) and fit_from >= fit_to:
        raise AblationsError(f"--from: found {fit_from:g}; must lie below --to, which is {fit_to:g}")


def compare(
    sweep: Annotated[
        str | None,
        typer.Argument(help="Sweep name or file, by default the one last started; or a CSV file of curves."),
    ] = None,
    paper: Annotated[
        bool, typer.Option("--paper", help="Compare as arXiv 2510.13786 does: its grid, its rule of 0.02.")
    ] = False,
    task: TaskOption = None,
    reference: Annotated[
        str | None,
        typer.Option("--reference", help="Variant that the others are compared with; a sweep names its own."),
    ] = None,
    fit_from: Annotated[
        str | None,
        typer.Option("--from", help='Of a CSV file or experiment, as in `fit`: a compute, or "auto".'),
    ] = None,
    loss: Annotated[Loss | None, typer.Option(help="Of a CSV file or experiment; huber: outliers count less.")] = None,
    ceiling: Annotated[
        float | None, typer.Option(help="Of a CSV file or experiment; the highest pass rate that the task allows.")
    ] = None,
    mlflow: Annotated[
        str | None, typer.Option("--mlflow", help="MLflow server or store whose --experiment is compared.")
    ] = None,
    experiment: Annotated[str | None, typer.Option("--experiment", help="Name of the MLflow experiment.")] = None,
    metric: Annotated[str | None, typer.Option("--metric", help="MLflow metric with the held-out pass rate.")] = None,
    compute: Annotated[
        str | None, typer.Option("--compute", help='MLflow metric with the compute at the same steps, or "step".')
    ] = None,
    variant: Annotated[
        str | None, typer.Option("--variant", help="MLflow param or tag that names the variant; by default variant.")
    ] = None,
    seed: Annotated[
        str | None,
        typer.Option(
            "--seed", help="MLflow param or tag with the seed; by default runs count in the order they began."
        ),
    ] = None,
    samples: Annotated[
        str | None, typer.Option("--samples", help="MLflow metric, or a number: all generations behind a score.")
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the variants of a sweep with its reference, or those of a CSV file or an MLflow experiment."""
    given = {"fit_from": check_cutoff(fit_from), "loss": loss, "ceiling": ceiling}
    settings = {name: value for name, value in given.items() if value is not None}
    of_mlflow = {
        "experiment": experiment,
        "metric": metric,
        "compute": compute,
        "variant": variant,
        "seed": seed,
        "samples": samples,
    }
    of_mlflow = {name: value for name, value in of_mlflow.items() if value is not None}
    if mlflow is not None:
        _refuse("an MLflow experiment", {"SWEEP": sweep, "--task": task})
        results = _of_experiment(mlflow, of_mlflow, reference, FitSettings(**settings))
    elif sweep is not None and sweep.lower().endswith(".csv"):
        _refuse("a CSV file", {"--task": task} | {f"--{name}": value for name, value in of_mlflow.items()})
        results = _of_file(Path(sweep), reference, FitSettings(**settings))
    else:
        options = {"reference": reference, "from": fit_from, "loss": loss, "ceiling": ceiling} | of_mlflow
        _refuse("a sweep", {f"--{name}": value for name, value in options.items()})
        results = _of_sweep(home, sweep, task)
    if paper:
        from ablations.paper.comparison import paper_comparison
        from ablations.report.tables import paper_table

        comparison = paper_comparison(results)
        if as_json:
            print_json({"sweep": results.plan.sweep} | comparison.to_json())
        else:
            plan = results.plan
            console().print(paper_table(comparison, sweep=plan.sweep, compute_name=plan.compute_name))
    elif as_json:
        print_json(results.to_json())
    else:
        from ablations.report.tables import comparison_table, hours_table

        console().print(comparison_table(results))
        if spent := hours_table(results):
            console().print("", spent)


def _refuse(source: str, options: dict[str, str | None]) -> None:
    """AblationsError when one of the options is given, as it has no effect on what is compared."""
    if given := [name for name, value in options.items() if value is not None]:
        raise AblationsError(f"{given[0]} {options[given[0]]} has no effect on {source}; leave it out")


def _of_sweep(home: Path | None, sweep: str | None, task: str | None) -> "Results":
    from ablations.verdict.results import read_results
    from ablations.verdict.task_curves import with_task

    return read_results(with_task(find_sweep(home, sweep), task))


def _of_file(path: Path, reference: str | None, settings: FitSettings) -> "Results":
    from ablations.verdict.elsewhere import compare_elsewhere, study_of_file

    return compare_elsewhere(study_of_file(path), reference, settings)


def _of_experiment(tracking_uri: str, named: dict[str, str], reference: str | None, settings: FitSettings) -> "Results":
    from ablations.tracking.experiment import ExperimentNames, study_of_experiment
    from ablations.verdict.elsewhere import compare_elsewhere

    if missing := [f"--{name}" for name in ("experiment", "metric", "compute") if name not in named]:
        raise AblationsError(f"--mlflow needs {', '.join(missing)} too")
    return compare_elsewhere(study_of_experiment(tracking_uri, ExperimentNames(**named)), reference, settings)


def report(sweep: SweepArgument = None, task: TaskOption = None, home: HomeOption = None) -> None:
    """Write the report of a sweep: one HTML file that opens anywhere."""
    from ablations.report.page import write_report
    from ablations.verdict.results import read_results
    from ablations.verdict.task_curves import with_task

    results = read_results(with_task(find_sweep(home, sweep), task))
    print(write_report(results, now=datetime.now(UTC)))
