"""A forecast and a backtest as documents: each number beside its text, and nothing where there is no number."""

from dataclasses import replace

import pytest
from fixtures_home import BUDGET

from ablations.answers.crossings import Crossing
from ablations.findings.sweep_forecast import backtest_sweep, forecast_sweep
from ablations.report.documents.blocks import Table, Text
from ablations.report.documents.forecast import backtest_document, forecast_document

UNIT = "modelled GPU-hours"


@pytest.fixture(scope="module")
def found(decided):
    return forecast_sweep(decided, budgets_gpu_hours=[BUDGET, 2 * BUDGET], score=0.5)


def cells_of(table, row):
    return {one.heading: cell for one, cell in zip(table.columns, table.rows[row], strict=True)}


def tables_of(found):
    return [one for one in forecast_document(found, UNIT) if isinstance(one, Table)]


def test_each_budget_has_a_table_and_all_of_them_one(found):
    first, second, any_budget = tables_of(found)
    assert first.title == "loo, every run at 2,000 modelled GPU-hours [95 %]"
    assert len({first.name, second.name, any_budget.name}) == 3
    for row, one in enumerate(found.variants):
        at, shown = one.outlooks[1], cells_of(second, row)
        assert shown["variant"].text == one.variant
        rate = at.prediction
        assert shown["pass rate"].text == f"{rate.estimate:.3f} [{rate.lo:.3f}, {rate.hi:.3f}]"
        assert shown["pass rate"].number == rate.estimate
        assert shown["P(wins)"].text == f"{at.chance.wins:.2f}"
        assert (shown["− scalerl"].text == "") == (one.variant == "scalerl")
        assert cells_of(any_budget, row)["reaches 0.5 at"].number == one.reach.estimate
    reference, loss = cells_of(any_budget, 0), cells_of(any_budget, 1)
    assert [reference[heading].text for heading in ("crosses scalerl at", "P(crosses)", "then leads scalerl")] == [
        ""
    ] * 3
    # A of 0.54 against 0.61 at the same C_mid: the reference leads for good.
    assert loss["then leads scalerl"].text == "no, 0.00"


@pytest.mark.parametrize(
    ("crossing", "texts"),
    [
        (
            Crossing(compute=5200.0, lo=3900.0, hi=None, probability=0.83, leads_after=0.97),
            ("5,200 [3,900, …]", "0.83", "yes, 0.97"),
        ),
        (Crossing(compute=None, lo=None, hi=None, probability=0.0, leads_after=0.5), ("", "0.00", "cannot tell, 0.50")),
    ],
)
def test_a_crossing_without_an_end_has_an_open_one(found, crossing, texts):
    first, second, *others = found.variants
    crossed = replace(found, variants=(first, replace(second, crossing=crossing, reach=None), *others))
    shown = cells_of(tables_of(crossed)[-1], 1)
    assert tuple(shown[name].text for name in ("crosses scalerl at", "P(crosses)", "then leads scalerl")) == texts
    assert shown["reaches 0.5 at"].text == "…"


def test_notes_say_what_finished_runs_and_one_seed_have_to_do_with_the_numbers(found):
    def notes(found):
        return " ".join(one.text for one in forecast_document(found, UNIT) if isinstance(one, Text))

    assert "describe the run" not in notes(found)
    assert "errors of such forecasts for the 9 finished runs" in notes(found)
    assert "predicted the 9 finished runs better" in notes(replace(found, is_carried=True))
    assert "Fewer than two runs have finished" in notes(replace(found, num_finished=1))
    first, second, *others = found.variants
    single = replace(second, num_seeds=1)
    said = notes(replace(found, variants=(first, single, *others), reasons=("loo-loss-s1: too short",)))
    assert "describe the run" in said
    assert said.endswith("No forecast: loo-loss-s1: too short")


def test_a_backtest_has_its_scores_every_run_and_the_reasons(decided):
    made = backtest_sweep(decided)
    refused = replace(made.checks[0], predicted=None, reason="curve 'scalerl-s0': too short")
    scores, note, by_run, warning = backtest_document(replace(made, checks=(refused, *made.checks[1:])), "loo")
    for row, one in enumerate(made.scores):
        shown = cells_of(scores, row)
        assert shown["mean error"].number == one.mean_error
        assert shown["95 % intervals that held"].text == f"{one.coverage:.0%}"
        assert shown["skill"].number == one.skill == 1 - one.interval_score / one.carried_interval_score
    assert "Forecasts of this sweep add the rise" in note.text
    (runs,) = by_run.blocks
    assert len(runs.rows) == len(made.checks) - 1
    last, shown = made.checks[-1], cells_of(runs, -1)
    assert shown["predicted [95 %]"].text == f"{last.predicted:.3f} [{last.lo:.3f}, {last.hi:.3f}]"
    assert shown["held"].text == ("yes" if last.lo <= last.measured <= last.hi else "no")
    assert warning.text == "No forecast from the first 30%: curve 'scalerl-s0': too short"
