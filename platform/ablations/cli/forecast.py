"""The command that forecasts: what more compute would buy, and whether such forecasts have held."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Group
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from ablations.cli.common import HomeOption, JsonOption, SweepArgument, console, find_plan, print_json
from ablations.cli.run import check_budget
from ablations.errors import AblationsError

if TYPE_CHECKING:
    from ablations.compare import Interval
    from ablations.forecast.backtest import Backtest, Check
    from ablations.forecast.forecasts import Crossing
    from ablations.forecast.of_sweep import SweepForecast


def forecast(
    sweep: SweepArgument = None,
    budget: Annotated[
        list[float] | None,
        typer.Option(help="Compute of a run, in the scale's unit; may be repeated. Else 1, 2 and 10 budgets."),
    ] = None,
    score: Annotated[float | None, typer.Option(help="Pass rate whose compute is wanted.")] = None,
    backtest: Annotated[
        bool, typer.Option("--backtest", help="Forecast finished runs from 30, 50, 70 % of themselves, and compare.")
    ] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Forecast every variant at larger budgets, and who would lead there."""
    from ablations.forecast.of_sweep import backtest_sweep, forecast_sweep
    from ablations.results import read_results

    for one in budget or ():
        check_budget(one)
    if score is not None and not 0 < score <= 1:
        raise AblationsError(f"--score: found {score:g}; a pass rate to reach lies in (0, 1]")
    if backtest and (budget or score is not None):
        raise AblationsError("--budget and --score have no effect on --backtest; leave them out")
    results = read_results(*find_plan(home, sweep))
    unit = results.plan.compute_unit_gpu_hours
    if backtest:
        found = backtest_sweep(results)
        shown = backtest_tables(found, sweep=results.plan.sweep)
    else:
        found = forecast_sweep(results, budgets_gpu_hours=[one * unit for one in budget or ()], score=score)
        shown = forecast_tables(found)
    if as_json:
        print_json({"sweep": results.plan.sweep} | found.to_json())
    else:
        console().print(shown)


def forecast_tables(found: "SweepForecast") -> Group:
    """Pass rates and chances at every budget; compute to targets; what the reader must know."""
    rates = _table(f"{found.sweep}: pass rate [95 %] and chance to lead at each budget, modelled GPU-hours", "variant")
    for hours in found.budgets_gpu_hours:
        for head in (f"at {hours:g}", "P(wins)"):
            rates.add_column(head, justify="right")
    compute = _table("compute in modelled GPU-hours [95 %]", "variant")
    if found.score is not None:
        compute.add_column(f"to reach {found.score:g}", justify="right")
    compute.add_column(f"leads {found.reference} from, or up to", justify="right")
    for hours in found.budgets_gpu_hours:
        compute.add_column(f"0.01 more at {hours:g}", justify="right")
    for one in found.variants:
        cells = []
        for outlook in one.outlooks:
            at = outlook.prediction
            cells += [f"{at.estimate:.3f} [{at.lo:.3f}, {at.hi:.3f}]", f"{outlook.chance.wins:.2f}"]
        rates.add_row(escape(one.variant), *map(escape, cells))
        reach = [] if found.score is None else [_hours(one.reach)]
        costs = [_hours(outlook.cost_of_a_point) for outlook in one.outlooks]
        compute.add_row(escape(one.variant), *map(escape, [*reach, _crossing(one.crossing), *costs]))
    return Group(rates, Text(), compute, Text(), *(Text(note) for note in forecast_notes(found)))


def forecast_notes(found: "SweepForecast") -> list[str]:
    """What the reader must know: model error, the run-to-run difference, and what has no forecast."""
    from ablations.forecast.forecasts import ASSUMED

    notes = []
    if found.variants:
        weights = sorted(found.weights.items(), key=lambda item: -item[1])
        listed = ", ".join(f"{name} {weight:.2f}" for name, weight in weights)
        notes = [
            "Estimates are by eq. 1, and so are intervals in the fitted range. Beyond it these hold other families, "
            f"fully from twice the range on, weighed by AICc and a prior of 1/2 for eq. 1 (mean weights): {listed}.",
            f"P(wins): share of joint draws, with {_rules(found)}.",
            "Crossings are looked for from the first reading fitted to 100 times the last; P is that there is one. "
            "`…` is beyond that, or a curve that may be flat.",
        ]
        if any(one.outlooks[0].chance.rule == ASSUMED for one in found.variants):
            notes.append("Pass rates, crossings and costs of one or two seeds are about these runs, not their recipe.")
    return [*notes, *(f"No forecast: {reason}" for reason in found.reasons)]


def backtest_tables(found: "Backtest", *, sweep: str) -> Group:
    """The score of each fraction, then every run."""
    scores = _table(f"{sweep}: forecasts of the last 3 readings of finished runs", "fitted on")
    for head in ("runs", "mean error", "mean |error|", "95 % intervals that held", "mean |error| of no more gain"):
        scores.add_column(head, justify="right")
    for one in found.scores:
        cells = (
            str(one.num_runs),
            _number(one.mean_error, "+.4f"),
            _number(one.mean_absolute_error, ".4f"),
            _number(one.coverage, ".0%"),
            _number(one.carried_mean_absolute_error, ".4f"),
        )
        scores.add_row(f"first {one.fraction:.0%}", *cells)
    runs = _table("run by run", "run")
    for head in ("fitted on", "up to", "predicted [95 %]", "measured", "error"):
        runs.add_column(head, justify="right")
    runs.add_column("held")
    for check in found.checks:
        runs.add_row(escape(check.curve), f"{check.fraction:.0%}", *map(escape, _check_cells(check)))
    return Group(scores, Text(), runs)


def _check_cells(check: "Check") -> list[str]:
    if check.reason:
        return ["", "", "", "", check.reason]
    predicted = f"{_number(check.predicted, '.3f')} [{_number(check.lo, '.3f')}, {_number(check.hi, '.3f')}]"
    held = "yes" if check.is_held else "no"
    return [
        _number(check.fitted_to, ".4g"),
        predicted,
        _number(check.measured, ".3f"),
        _number(check.error, "+.3f"),
        held,
    ]


def _rules(found: "SweepForecast") -> str:
    return " or ".join(dict.fromkeys(one.outlooks[0].chance.rule for one in found.variants))


def _table(title: str, first: str) -> Table:
    table = Table(title=escape(title), title_justify="left", box=None, pad_edge=False)
    table.add_column(first, no_wrap=True)
    return table


def _number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)


def _hours(interval: "Interval | None") -> str:
    """`410 [300, 620]`; `…` for an end without a number, and for an estimate without one."""
    if interval is None:
        return "…"
    lo, hi = ("…" if end is None else f"{end:.4g}" for end in (interval.lo, interval.hi))
    return f"{interval.estimate:.4g} [{lo}, {hi}]"


def _crossing(crossing: "Crossing | None") -> str:
    if crossing is None:
        return ""
    if crossing.compute is None:
        return "leads throughout" if crossing.leads_after else "never leads"
    side = "from" if crossing.leads_after else "up to"
    return f"{side} {crossing.compute:.4g} [{crossing.lo:.4g}, {crossing.hi:.4g}], P {crossing.probability:.2f}"
