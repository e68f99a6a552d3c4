"""The command that forecasts results at larger budgets, and tests such forecasts on finished runs: forecast."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from ablations.cli.budget import read_budget
from ablations.cli.named_sweeps import find_sweep
from ablations.cli.options import HomeOption, JsonOption, ReferenceOption, TaskOption, refuse_idle, started_sweeps
from ablations.cli.output import console, print_json, say_pages
from ablations.cli.read import fitted_results
from ablations.errors import AblationsError
from ablations.terminal.progress_bar import progress_bar

if TYPE_CHECKING:
    from ablations.findings.sweep_forecast import SweepForecast


def forecast(
    sweep: Annotated[
        str | None,
        typer.Argument(
            metavar="SWEEP",
            help="Sweep name or file, or a CSV file of curves. Default: the sweep last started.",
            autocompletion=started_sweeps,
        ),
    ] = None,
    budget: Annotated[
        list[str] | None,
        typer.Option(
            help="Compute per run: 2 in the scale's unit, 160h in GPU-hours, 2x times the sweep's budget; may be "
            "repeated. Default: 1x, 2x and 10x."
        ),
    ] = None,
    score: Annotated[float | None, typer.Option(help="Forecast the compute needed to reach this pass rate.")] = None,
    backtest: Annotated[
        bool, typer.Option("--backtest", help="Forecast finished runs from their first 30, 50 and 70 % and compare.")
    ] = False,
    reference: ReferenceOption = None,
    task: TaskOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Forecast every variant at larger budgets, and the likely leader."""
    from ablations.findings.kept_forecast import kept_forecast
    from ablations.findings.several_sweeps import with_baseline
    from ablations.findings.sweep_forecast import backtest_sweep, forecast_sweep
    from ablations.readings.task_curves import with_task
    from ablations.report.documents.forecast import backtest_document, forecast_document
    from ablations.report.writers.terminal import print_document

    asked = [read_budget(one) for one in budget or ()]
    if score is not None and not 0 < score <= 1:
        raise AblationsError(f"--score: found {score:g}; must be a pass rate above 0 and at most 1")
    if backtest:
        idle = {"--budget": budget and budget[0], "--score": score, "--reference": reference}
        refuse_idle("--backtest", idle)
    started = with_task(find_sweep(home, sweep), task)
    if reference is not None:
        started = with_baseline(started, reference)
    plan, unit = started.plan, started.plan.compute_unit_gpu_hours
    if plan.hours_name != "GPU-hours" and plan.imported and (of_hours := [one for one in asked if one.unit == "h"]):
        raise AblationsError(
            f"--budget {of_hours[0].amount:g}h: {plan.sweep} has no GPU-hours; write its own compute, or 2x"
        )

    if backtest:
        whole = fitted_results(started)
        with progress_bar("forecasting from parts of curves") as done:
            found = backtest_sweep(whole, done=done)
        document = partial(backtest_document, found, plan.sweep)
    else:
        own = plan.budget_gpu_hours
        hours = [one.in_scale_units(unit_gpu_hours=unit, own=own / unit) * unit for one in asked]

        def made() -> "SweepForecast":
            results = fitted_results(started)
            with progress_bar("forecasting variants") as done:
                return forecast_sweep(results, budgets_gpu_hours=hours, score=score, done=done)

        found = kept_forecast(started, hours, score, made)
        document = partial(forecast_document, found, plan.compute_name)
    if as_json:
        print_json({"sweep": plan.sweep} | found.to_json())
    elif not found.is_empty:
        out = console()
        print_document(document(), out)
        if not started.home.is_passing:
            say_pages(started.home, out)
    if found.is_empty:
        why = "; ".join(found.reasons[:3]) or "no run has an evaluation"
        raise AblationsError(f"{plan.sweep}: no run has a forecast ({why})")
