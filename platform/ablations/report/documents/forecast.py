"""The forecast of a sweep as a document, and the backtest of such forecasts."""

from ablations.answers.crossings import UNTOLD, Crossing
from ablations.answers.interval import Interval
from ablations.findings.backtest import NUM_LAST, Backtest
from ablations.findings.sweep_forecast import SweepForecast
from ablations.report.documents.blocks import Blocks, Cell, Folded, Table, Text, table_of_rows
from ablations.report.documents.number_cells import compute_interval_cell, interval_cell, number_cell
from ablations.text import compute_text, or_dots

LEADS = {True: "yes", False: "no", None: "cannot tell"}


def forecast_document(found: SweepForecast, compute_name: str) -> Blocks:
    """A table for each budget and one for all of them, notes, and the runs without a forecast."""
    tables = [_at_budget(found, place, compute_name) for place in range(len(found.budgets_gpu_hours))]
    return [
        *([*tables, _at_any_budget(found, compute_name)] if found.variants else ()),
        *(Text(text=note, kind="note") for note in _notes(found)),
        *(Text(text=f"No forecast: {reason}", kind="warning") for reason in found.reasons),
    ]


def _at_budget(found: SweepForecast, place: int, compute_name: str) -> Table:
    hours = found.budgets_gpu_hours[place]
    rows = [
        {
            "variant": one.variant,
            "pass rate": interval_cell(at.prediction, ".3f"),
            f"− {found.reference}": interval_cell(at.difference, "+z.3f"),
            "P(wins)": number_cell(at.chance.wins, ".2f"),
            "compute for +0.01": compute_interval_cell(at.cost_of_a_point),
        }
        for one in found.variants
        for at in [one.outlooks[place]]
    ]
    title = f"{found.sweep}, every run at {compute_text(hours)} {compute_name} [95 %]"
    return table_of_rows(rows, name=f"at-{hours:g}", title=title)


def _at_any_budget(found: SweepForecast, compute_name: str) -> Table:
    rows = []
    for one in found.variants:
        at, probability, leads = _crossing_cells(one.crossing)
        reach = {} if found.score is None else {f"reaches {found.score:g} at": compute_interval_cell(one.reach)}
        rows.append(
            {
                "variant": one.variant,
                "seeds": number_cell(one.num_seeds, "d"),
                **reach,
                f"crosses {found.reference} at": at,
                "P(crosses)": probability,
                f"then leads {found.reference}": leads,
                "estimates by": "eq. 1" if one.is_by_eq1 else "all families",
                "weight of eq. 1": number_cell(one.eq1_weight, ".2f"),
            }
        )
    title = f"at any budget, compute in {compute_name} [95 %]"
    return table_of_rows(rows, name="at-any-budget", title=title, kinds={"estimates by": "words"})


def _crossing_cells(crossing: Crossing | None) -> tuple[Cell, Cell, Cell]:
    """The place, the probability, and the leader beyond with its share of the draws; all empty without a crossing."""
    if crossing is None:
        return Cell(""), Cell(""), Cell("")
    at = Cell("")
    if crossing.compute is not None:
        at = compute_interval_cell(Interval(estimate=crossing.compute, lo=crossing.lo, hi=crossing.hi))
    leads = Cell(f"{LEADS[crossing.leads]}, {crossing.leads_after:.2f}", crossing.leads_after)
    return at, number_cell(crossing.probability, ".2f"), leads


def _notes(found: SweepForecast) -> list[str]:
    """Notes on the families behind the numbers, the chances to win, and crossings."""
    if not found.variants:
        return []
    weights = sorted(found.weights.items(), key=lambda item: -item[1])
    listed = ", ".join(f"{name} {weight:.2f}" for name, weight in weights)
    worse = [f"{one.variant} ({one.eq1_weight:.2f})" for one in found.variants if not one.is_by_eq1]
    said = [
        "Within the fitted range every number comes from eq. 1. Beyond it the intervals also cover other families "
        "of curves, which have their full weight from twice the range on. They are weighted by AICc, with a prior of "
        f"1/2 for eq. 1 (mean weights: {listed}). An estimate comes from eq. 1 if the 80 % interval contains it, else "
        "it is the median over all families. Differences compare levels up to the compute that all runs have reached, "
        "and beyond it curves of one family.",
        f"Eq. 1 fits worse than other families for {', '.join(worse)}, by its weight." if worse else "",
        "P(wins) is the share of joint draws in which the variant is highest, with "
        f"{found.variants[0].outlooks[0].chance.rule}.",
        "A crossing is the last one of two curves between the first fitted evaluation and 100 times the last. The "
        f"leader beyond it is unknown if its share of the draws lies between {UNTOLD[0]:g} and {UNTOLD[1]:g}. `…` "
        "stands for a compute beyond that range, or for a curve that may be flat.",
        "With one seed, pass rates, crossings and costs describe the run, not its recipe."
        if any(one.num_seeds == 1 for one in found.variants)
        else "",
    ]
    return [*filter(None, said)]


def backtest_document(found: Backtest, sweep: str) -> Blocks:
    """The scores of each fitted share, every run, and the runs without a forecast."""
    scores = [
        {
            "fitted on": f"first {one.fraction:.0%}",
            "runs": number_cell(one.num_runs, "d"),
            "mean error": number_cell(one.mean_error, "+.4f"),
            "mean |error|": number_cell(one.mean_absolute_error, ".4f"),
            "95 % intervals that held": number_cell(one.coverage, ".0%"),
            "mean |error| of no more gain": number_cell(one.carried_mean_absolute_error, ".4f"),
        }
        for one in found.scores
    ]
    runs = [
        {
            "run": one.curve,
            "fitted on": number_cell(one.fraction, ".0%"),
            "up to": Cell(or_dots(one.fitted_to), one.fitted_to),
            "predicted [95 %]": interval_cell(predicted, ".3f"),
            "measured": number_cell(one.measured, ".3f"),
            "error": number_cell(one.error, "+.3f"),
            "held": "yes" if one.is_held else "no",
        }
        for one in found.checks
        if one.predicted is not None
        for predicted in [Interval(estimate=one.predicted, lo=one.lo, hi=one.hi)]
    ]
    title = f"{sweep}: forecasts of the last {NUM_LAST} evaluations of finished runs"
    by_run = table_of_rows(runs, name="backtest-runs", kinds={"held": "words"}) if runs else None
    return [
        table_of_rows(scores, name="backtest", title=title),
        *([Folded(title="run by run", blocks=[by_run])] if by_run else ()),
        *(Text(text=f"No forecast from the {reason}", kind="warning") for reason in found.reasons),
    ]
