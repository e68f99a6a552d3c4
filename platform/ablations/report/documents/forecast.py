"""The forecast of a sweep as a document, and the backtest of such forecasts."""

from ablations.answers.crossings import UNTOLD, Crossing
from ablations.answers.interval import Interval
from ablations.answers.past_forecasts import NUM_LAST
from ablations.findings.backtest import Backtest
from ablations.findings.sweep_forecast import SweepForecast
from ablations.report.documents.blocks import Blocks, Cell, Folded, Table, Text, table_of_rows
from ablations.report.documents.number_cells import compute_interval_cell, interval_cell, number_cell
from ablations.text import compute_text, counted, or_dots

LEADS = {True: "yes", False: "no", None: "cannot tell"}


def forecast_document(found: SweepForecast, compute_name: str) -> Blocks:
    """A table for each budget and one for all of them, notes, those of the import, and the runs without a forecast."""
    tables = [_at_budget(found, place, compute_name) for place in range(len(found.budgets_gpu_hours))]
    return [
        *([*tables, _at_any_budget(found, compute_name)] if found.variants else ()),
        *(Text(text=note, kind="note") for note in (*_notes(found), *found.notes)),
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
            }
        )
    unit = "" if compute_name == "compute" else f", compute in {compute_name}"
    title = f"at any budget{unit} [95 %]"
    return table_of_rows(rows, name="at-any-budget", title=title)


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
    said = [
        "A forecast starts from where each run stands, the mean of its last evaluations about the curve. It adds seven "
        "tenths of the rise of eq. 1 from there, less twice what the variant has lost since its peak.",
        _calibration_note(found),
        "Differences compare levels up to the compute that all runs have reached, and forecasts beyond it.",
        "P(wins) is the share of joint draws in which the variant is highest, with "
        f"{found.variants[0].outlooks[0].chance.rule}.",
        "A crossing is the last one of two curves between the first fitted evaluation and 100 times the last. "
        "P(crosses) is the share of the draws that have one, and the interval is that of those draws. The "
        f"leader beyond it is unknown if its share of the draws lies between {UNTOLD[0]:g} and {UNTOLD[1]:g}. `…` "
        "stands for a compute beyond that range, or for a curve that may be flat.",
        "With one seed, pass rates, crossings and costs describe the run, not its recipe."
        if any(one.num_seeds == 1 for one in found.variants)
        else "",
    ]
    return [*filter(None, said)]


def _calibration_note(found: SweepForecast) -> str:
    """What finished runs have to do with the numbers."""
    if found.num_finished < 2:
        return (
            "Fewer than two runs have finished, so it is not known how well such forecasts hold for this sweep; the "
            "intervals come from public curves and our own."
        )
    runs = counted(found.num_finished, "finished run")
    if found.is_carried:
        return (
            f"Carrying the last evaluations on predicted the {runs} better from their first parts than such a "
            "forecast, so it is used here. `--backtest` shows both."
        )
    return (
        f"The errors of such forecasts for the {runs}, from their first parts, shift the estimates and set the "
        "intervals. `--backtest` shows them."
    )


def backtest_document(found: Backtest, sweep: str) -> Blocks:
    """The scores of each fitted share, every run, and the runs without a forecast."""
    scores = [
        {
            "fitted on": f"first {one.fraction:.0%}",
            "runs": number_cell(one.num_runs, "d"),
            "mean error": number_cell(one.mean_error, "+.4f"),
            "mean |error|": number_cell(one.mean_absolute_error, ".4f"),
            "95 % intervals that held": number_cell(one.coverage, ".0%"),
            "mean interval score": number_cell(one.interval_score, ".3f"),
            "|error| carried on": number_cell(one.carried_mean_absolute_error, ".4f"),
            "score carried on": number_cell(one.carried_interval_score, ".3f"),
            "skill": number_cell(one.skill, "+.0%"),
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
        Text(text=_skill_note(found), kind="note"),
        *([Folded(title="run by run", blocks=[by_run])] if by_run else ()),
        *(Text(text=f"No forecast from the {reason}", kind="warning") for reason in found.reasons),
    ]


def _skill_note(found: Backtest) -> str:
    """How to read the scores, and which forecast the sweep gets."""
    chosen = "carry the last evaluations on" if found.is_carried else "add the rise"
    return (
        "Each run is forecast as if all others had finished. Carried on is the mean of the last three fitted "
        "evaluations, calibrated in the same way. The interval score is the width plus 40 times the distance outside, "
        "and lower is better; skill is the share of it that the forecast saves. Forecasts of this sweep "
        f"{chosen}, which predicted its finished runs better."
    )
