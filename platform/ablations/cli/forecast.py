"""The command that forecasts results at larger budgets, and tests such forecasts on finished runs: forecast."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group
from rich.text import Text

from ablations.cli.budget import read_budget
from ablations.cli.named_sweeps import is_curve_file
from ablations.cli.options import HomeOption, JsonOption, ReferenceOption, TaskOption, refuse_idle, started_sweeps
from ablations.cli.output import console, print_json, say_pages
from ablations.cli.read import results_of_sweeps
from ablations.errors import AblationsError
from ablations.fit.options import FitSettings
from ablations.terminal.listing import Listing, listing_of
from ablations.terminal.progress_bar import progress_bar
from ablations.terminal.visible import made_visible
from ablations.text import compute_text, interval_text

if TYPE_CHECKING:
    from ablations.findings.backtest import Backtest
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
    from ablations.findings.other_trainers import compare_elsewhere, study_of_file
    from ablations.findings.sweep_forecast import backtest_sweep, forecast_sweep

    asked = [read_budget(one) for one in budget or ()]
    if score is not None and not 0 < score <= 1:
        raise AblationsError(f"--score: found {score:g}; must be a pass rate above 0 and at most 1")
    if backtest:
        refuse_idle("--backtest", {"--budget": budget and budget[0], "--score": score})
    is_file = sweep is not None and is_curve_file(sweep)
    if is_file:
        refuse_idle("a CSV file", {"--task": task})
        if of_hours := [one for one in asked if one.unit == "h"]:
            raise AblationsError(
                f"--budget {of_hours[0].amount:g}h: a CSV file has no GPU-hours; write its own compute, or 2x"
            )
        results = compare_elsewhere(study_of_file(Path(str(sweep))), reference, FitSettings())
    else:
        refuse_idle("a sweep", {"--reference": reference})
        results = results_of_sweeps(home, [] if sweep is None else [sweep], task)
    if backtest:
        with progress_bar("forecasting from parts of curves") as done:
            found = backtest_sweep(results, done=done)
        shown = backtest_tables(found, sweep=results.plan.sweep)
    else:
        unit = results.sweep.plan.compute_unit_gpu_hours if results.sweep else 1.0
        own = results.plan.budget_gpu_hours
        hours = [one.in_scale_units(unit_gpu_hours=unit, own=own / unit) * unit for one in asked]
        with progress_bar("forecasting variants") as done:
            found = forecast_sweep(results, budgets_gpu_hours=hours, score=score, done=done)
        shown = forecast_tables(found, results.plan.compute_name)
    if as_json:
        print_json({"sweep": results.plan.sweep} | found.to_json())
    elif not found.is_empty:
        out = console()
        out.print(shown)
        if results.sweep:
            say_pages(results.sweep.home, out)
    if found.is_empty:
        why = "; ".join(found.reasons[:3]) or "no run has an evaluation"
        raise AblationsError(f"{results.plan.sweep}: no run has a forecast ({why})")


def forecast_tables(found: "SweepForecast", compute_name: str) -> Group:
    """A table per budget, one for all budgets, and notes for the reader."""
    from ablations.report.words.forecast import budget_rows, curve_rows, forecast_notes

    shown = []
    for index, hours in enumerate(found.budgets_gpu_hours):
        title = f"{found.sweep}, every run at {compute_text(hours)} {compute_name} [95 %]"
        shown += [*_titled(title, budget_rows(found, index)), Text()]
    any_budget = f"at any budget, compute in {compute_name} [95 %]"
    shown += [*_titled(any_budget, curve_rows(found)), Text()]
    without = ["No forecast:", *(f"  {reason}" for reason in found.reasons)] if found.reasons else []
    said = [*forecast_notes(found), *without]
    return Group(*shown, *(Text(made_visible(note)) for note in said))


def _titled(title: str, lines: list[dict[str, str]]) -> list[Listing]:
    """A table with a title; nothing if there are no lines."""
    return [listing_of(lines, title=title)] if lines else []


def backtest_tables(found: "Backtest", *, sweep: str) -> Group:
    """The scores per fraction, then every run."""
    from ablations.answers.forecasts import or_dots

    scores = [
        {
            "fitted on": f"first {one.fraction:.0%}",
            "runs": str(one.num_runs),
            "mean error": _number(one.mean_error, "+.4f"),
            "mean |error|": _number(one.mean_absolute_error, ".4f"),
            "95 % intervals that held": _number(one.coverage, ".0%"),
            "mean |error| of no more gain": _number(one.carried_mean_absolute_error, ".4f"),
        }
        for one in found.scores
    ]
    runs = [
        {
            "run": check.curve,
            "fitted on": f"{check.fraction:.0%}",
            "up to": or_dots(check.fitted_to),
            "predicted [95 %]": interval_text(check.predicted, check.lo, check.hi, ".3f"),
            "measured": _number(check.measured, ".3f"),
            "error": _number(check.error, "+.3f"),
            "held": "yes" if check.is_held else "no",
        }
        for check in found.checks
        if not check.reason
    ]
    title = f"{sweep}: forecasts of the last 3 evaluations of finished runs"
    reasons = [Text(made_visible(f"No forecast from the {reason}")) for reason in found.reasons]
    return Group(*_titled(title, scores), Text(), *_titled("run by run", runs), *reasons)


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
