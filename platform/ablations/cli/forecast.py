"""The command that forecasts: what more compute would buy, and whether such forecasts have held."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ablations.cli.options import (
    HomeOption,
    JsonOption,
    SweepArgument,
    TaskOption,
    check_budget,
    console,
    find_sweep,
    print_json,
)
from ablations.errors import AblationsError

if TYPE_CHECKING:
    from ablations.forecast.backtest import Backtest, Check
    from ablations.forecast.of_sweep import SweepForecast


def forecast(
    sweep: SweepArgument = None,
    budget: Annotated[
        list[float] | None,
        typer.Option(help="Compute per run, in the scale's unit; may be repeated. By default 1, 2 and 10 budgets."),
    ] = None,
    score: Annotated[float | None, typer.Option(help="Pass rate to reach: forecast the compute it takes.")] = None,
    backtest: Annotated[
        bool, typer.Option("--backtest", help="Forecast finished runs from their first 30, 50 and 70 %, and compare.")
    ] = False,
    task: TaskOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Forecast every variant at larger budgets, and which would lead."""
    from ablations.forecast.of_sweep import backtest_sweep, forecast_sweep
    from ablations.verdict.results import read_results
    from ablations.verdict.task_curves import with_task

    for one in budget or ():
        check_budget(one)
    if score is not None and not 0 < score <= 1:
        raise AblationsError(f"--score: found {score:g}; a pass rate to reach lies in (0, 1]")
    if backtest and (budget or score is not None):
        raise AblationsError("--budget and --score have no effect on --backtest; leave them out")
    results = read_results(with_task(find_sweep(home, sweep), task))
    unit = results.plan.compute_unit_gpu_hours
    if backtest:
        found = backtest_sweep(results)
        shown = backtest_tables(found, sweep=results.plan.sweep)
    else:
        found = forecast_sweep(results, budgets_gpu_hours=[one * unit for one in budget or ()], score=score)
        shown = forecast_tables(found, results.plan.compute_name)
    if as_json:
        print_json({"sweep": results.plan.sweep} | found.to_json())
    else:
        console().print(shown)


def forecast_tables(found: "SweepForecast", compute_name: str) -> Group:
    """A table for every budget, one of what does not depend on it, and what the reader must know."""
    from ablations.forecast.words import budget_lines, curve_lines, forecast_notes
    from ablations.report.headings import budget_headings, curve_headings, under
    from ablations.text import compute_text

    shown = []
    for index, hours in enumerate(found.budgets_gpu_hours):
        title = f"{found.sweep}, every run at {compute_text(hours)} {compute_name} [95 %]"
        shown += [*_titled(title, under(budget_headings(found), budget_lines(found, index))), Text()]
    any_budget = f"at any budget, compute in {compute_name} [95 %]"
    shown += [*_titled(any_budget, under(curve_headings(found), curve_lines(found))), Text()]
    said = [*forecast_notes(found), *(f"No forecast: {reason}" for reason in found.reasons)]
    return Group(*shown, *(Text(note) for note in said))


def _titled(title: str, lines: list[dict[str, str]]) -> list[Text | Table]:
    """A table under a title of its own line, which does not wrap where the table is narrow; nothing without lines."""
    if not lines:
        return []
    table = _table(*lines[0])
    for line in lines:
        table.add_row(*map(escape, line.values()))
    return [Text(title, style="italic"), table]


def backtest_tables(found: "Backtest", *, sweep: str) -> Group:
    """The score of each fraction, then every run."""
    errors = ("mean error", "mean |error|", "95 % intervals that held", "mean |error| of no more gain")
    scores = _table("fitted on", "runs", *errors)
    for one in found.scores:
        cells = (
            str(one.num_runs),
            _number(one.mean_error, "+.4f"),
            _number(one.mean_absolute_error, ".4f"),
            _number(one.coverage, ".0%"),
            _number(one.carried_mean_absolute_error, ".4f"),
        )
        scores.add_row(f"first {one.fraction:.0%}", *cells)
    runs = _table("run", "fitted on", "up to", "predicted [95 %]", "measured", "error", "held")
    for check in found.checks:
        if not check.reason:
            runs.add_row(*map(escape, _check_cells(check)))
    title = Text(f"{sweep}: forecasts of the last 3 readings of finished runs", style="italic")
    reasons = [Text(f"Not from the first {one.fraction:.0%}: {one.reason}") for one in found.checks if one.reason]
    return Group(title, scores, Text(), Text("run by run", style="italic"), runs, *reasons)


def _check_cells(check: "Check") -> list[str]:
    from ablations.forecast.forecasts import or_dots
    from ablations.text import interval_text

    return [
        check.curve,
        f"{check.fraction:.0%}",
        or_dots(check.fitted_to),
        interval_text(check.predicted, check.lo, check.hi, ".3f"),
        _number(check.measured, ".3f"),
        _number(check.error, "+.3f"),
        "yes" if check.is_held else "no",
    ]


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(first, no_wrap=True)
    for head in others:
        table.add_column(head, justify="right")
    return table


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
