"""What the finished runs of a sweep teach: saved by variant, the same whichever variants a page shows."""

import json
from dataclasses import replace

import numpy as np
from fixtures_design import study_of, trained_home
from fixtures_home import BUDGET, eval_row, make_home, planned_run

from ablations.answers import past_forecasts
from ablations.findings import finished_runs
from ablations.findings.finished_runs import PAST, calibration_of, finished_curves
from ablations.findings.results import read_results
from ablations.findings.sweep_forecast import forecast_sweep
from ablations.home.started_sweep import StartedSweep, read_sweep


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


def test_of_many_finished_runs_the_first_of_each_variant_teach(tmp_path, monkeypatch):
    monkeypatch.setattr(finished_runs, "MOST_TEACHING", 4)  # of 3 variants: 4 / 3, so 2 of each
    monkeypatch.setattr(finished_runs, "LEAST_OF_A_VARIANT", 1)
    results = results_of(make_home(tmp_path, seeds=(0, 1, 2)).home)
    assert {one.run for one in calibration_of(results).errors} == {
        f"{variant.name}-s{seed}" for variant in results.variants for seed in (0, 1)
    }


def test_a_newly_finished_run_fits_its_variant_again_and_no_other(tmp_path, monkeypatch):
    home = make_home(tmp_path, seeds=(0, 1)).home
    first = calibration_of(results_of(home))
    folder = read_sweep(home, "loo").folder / PAST
    assert len([*folder.glob("*.msgpack")]) == 3
    fitted = []

    def counted(curve, settings, **options):
        fitted.append(curve.name)
        return original(curve, settings, **options)

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


def test_a_sweep_with_few_finished_runs_learns_from_others_of_its_scale(tmp_path):
    place = tmp_path / "runs-are-here"
    trained_home(place, study_of(tmp_path, name="before"))
    home = trained_home(place, study_of(tmp_path, name="now", seeds="[7]"))
    found = calibration_of(read_results(read_sweep(home, "now")))
    # Two runs of its own; two variants with three seeds before.
    assert found.num_runs == 8
    assert {one.run for one in found.errors if one.run.startswith("before/")} == {
        f"before/{variant.name}-s{run.seed}"
        for variant in read_sweep(home, "before").plan.variants
        for run in variant.runs
    }
    # A run of both sweeps counts once, as one of its own.
    first = tuple(replace(variant, runs=variant.runs[:1]) for variant in read_sweep(home, "before").plan.variants)
    again = StartedSweep(home=home, plan=replace(read_sweep(home, "now").plan, sweep="again", variants=first))
    again.write_plan()
    assert calibration_of(read_results(again)).num_runs == 8


def test_other_sweeps_are_asked_for_as_many_runs_as_are_missing(tmp_path, monkeypatch):
    place = tmp_path / "runs-are-here"
    trained_home(place, study_of(tmp_path, name="before"))
    home = trained_home(place, study_of(tmp_path, name="now", seeds="[7]"))
    monkeypatch.setattr(finished_runs, "ENOUGH", 2)
    assert calibration_of(read_results(read_sweep(home, "now"))).num_runs == 2


def test_what_lies_beyond_the_fitted_window_teaches_nothing(tmp_path):
    home = make_home(tmp_path, seeds=(0, 1)).home
    whole = calibration_of(results_of(home))
    plan = read_sweep(home, "loo").plan
    StartedSweep(home=home, plan=replace(plan, fit_to_gpu_hours=BUDGET / 2)).write_plan()
    half = calibration_of(results_of(home))
    assert half.errors != whole.errors
    for run in plan.variants[0].runs:  # readings beyond the half change nothing
        log = home.run(run.id).metrics
        rows = [json.loads(line) for line in log.read_text().splitlines()]
        late = [row | {"pass_rate": 0.9} if row["compute_gpu_hours"] > 0.6 * BUDGET and row["kind"] == "eval" else row
                for row in rows]  # fmt: skip
        log.write_text("".join(json.dumps(row) + "\n" for row in late))
    changed = results_of(home)
    assert changed.variants[0].runs[0].curve.score[-1] == 0.9
    assert calibration_of(changed).errors == half.errors
