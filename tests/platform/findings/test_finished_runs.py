"""What the finished runs of a sweep teach: saved by variant, the same whichever variants a page shows."""

import json
from dataclasses import replace

import numpy as np
from fixtures_home import BUDGET, eval_row, make_home, planned_run

from ablations.answers import past_forecasts
from ablations.findings.finished_runs import PAST, calibration_of, finished_curves
from ablations.findings.results import read_results
from ablations.findings.sweep_forecast import forecast_sweep
from ablations.home.started_sweep import read_sweep


def results_of(home):
    return read_results(read_sweep(home, "loo"))


def test_only_runs_at_their_budget_teach(tmp_path):
    home = make_home(tmp_path, seeds=(0, 1)).home
    short = home.run(planned_run("loo-loss", 1).id).metrics
    rows = short.read_text().splitlines()
    short.write_text("\n".join(rows[: len(rows) // 2]) + "\n")
    found = finished_curves(results_of(home))
    assert {name: len(curves) for name, curves in found.items()} == {"scalerl": 2, "loo-loss": 1, "loo-curriculum": 2}
    assert calibration_of(results_of(home)).num_runs == 5


def test_a_newly_finished_run_fits_its_variant_again_and_no_other(tmp_path, monkeypatch):
    home = make_home(tmp_path, seeds=(0, 1)).home
    first = calibration_of(results_of(home))
    folder = read_sweep(home, "loo").folder / PAST
    assert len([*folder.glob("*.msgpack")]) == 3
    fitted = []

    def counted(curve, settings):
        fitted.append(curve.name)
        return original(curve, settings)

    original = past_forecasts.fit_law
    monkeypatch.setattr(past_forecasts, "fit_law", counted)
    again = calibration_of(results_of(home))
    assert (again.errors, fitted) == (first.errors, [])
    rng = np.random.default_rng(7)
    rows = [eval_row(compute, (0.5, 1.8, 320.0), rng) for compute in np.arange(0, BUDGET + 1, 50).tolist()]
    changed = home.run(planned_run("loo-loss", 1).id).metrics
    changed.write_text("".join(json.dumps(row) + "\n" for row in rows))
    later = calibration_of(results_of(home))
    assert sorted(set(fitted)) == ["loo-loss-s0", "loo-loss-s1"]
    assert later.errors != first.errors


def test_a_page_that_shows_some_variants_forecasts_them_like_all(tmp_path):
    results = results_of(make_home(tmp_path, seeds=(0, 1)).home)
    whole = forecast_sweep(results, budgets_gpu_hours=[2 * BUDGET])
    some = replace(results, variants=results.variants[:2], chosen_from=results)
    shown = forecast_sweep(some, budgets_gpu_hours=[2 * BUDGET])
    assert shown.num_finished == whole.num_finished == 6
    assert [one.outlooks[0].prediction for one in shown.variants] == [
        one.outlooks[0].prediction for one in whole.variants[:2]
    ]
