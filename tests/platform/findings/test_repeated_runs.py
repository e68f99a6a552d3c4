"""Repeated runs of other sweeps of a scale, against the numbers that they were drawn from."""

import json
from dataclasses import replace

import numpy as np
import pytest
from fixtures_design import BUDGET, EVERY, study_of, trained_home

from ablations.answers.run_to_run import ASSUMED_SD, ENOUGH_FREEDOM
from ablations.findings import repeated_runs
from ablations.findings.results import read_results
from ablations.home.home import Home
from ablations.home.started_sweep import StartedSweep, read_sweep
from ablations.report.documents.comparison_words import method, unkept_results_note
from scalerl.run.run_log import read_rows


@pytest.fixture
def home(tmp_path) -> Home:
    """A sweep `before` of two variants with three seeds, and `now` with one."""
    place = tmp_path / "runs-are-here"
    trained_home(place, study_of(tmp_path, name="before"))
    return trained_home(place, study_of(tmp_path, name="now", seeds="[7]"))


def now(home: Home) -> StartedSweep:
    return read_sweep(home, "now")


def level_by_hand(home: Home, run_id: str) -> float:
    """The mean over the last third of the budget of the lines that join the readings."""
    rows = [row for row in read_rows(home.run(run_id).metrics) if row["kind"] == "eval"]
    x = np.linspace(2 / 3 * BUDGET, BUDGET, 20_001)
    return float(np.interp(x, [row["compute_gpu_hours"] for row in rows], [row["pass_rate"] for row in rows]).mean())


def shortened(home: Home, run_id: str, share: float) -> None:
    """The run log as it was when so much of the budget was spent."""
    path = home.run(run_id).metrics
    rows = [row for row in read_rows(path) if row["compute_gpu_hours"] <= share * BUDGET]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_one_seed_takes_the_spread_of_the_seeds_of_another_sweep(home):
    found = read_results(now(home)).comparison
    variants = zip(read_sweep(home, "before").plan.variants, now(home).plan.variants, strict=True)
    recipes = [(*variant.runs, *more.runs) for variant, more in variants]  # seed 7 is one more of the same recipe
    squares = [float(np.var([level_by_hand(home, run.id) for run in runs])) * 4 for runs in recipes]
    assert found.spreads["level"].sd == pytest.approx(np.sqrt(sum(squares) / 6), rel=0.03)
    assert found.spreads["level"].sd > 3 * ASSUMED_SD
    assert (found.spreads["level"].freedom, found.spreads["level"].num_runs, found.spreads["level"].num_other_runs) == (
        6,
        8,
        6,
    )
    assert found.others.sweeps == ("before",)
    assert found.run_to_run_json()["other_sweeps"] == ["before"]


def test_the_seeds_of_the_sweep_itself_count_once(home):
    found = read_results(read_sweep(home, "before")).comparison
    assert (found.spreads["level"].freedom, found.spreads["level"].num_other_runs) == (4, 0)
    assert found.others.sweeps == ()


def test_a_run_of_two_sweeps_counts_once_and_as_one_of_the_other(home):
    first = tuple(replace(variant, runs=variant.runs[:1]) for variant in read_sweep(home, "before").plan.variants)
    again = StartedSweep(home=home, plan=replace(now(home).plan, sweep="again", variants=first))
    again.write_plan()
    found = read_results(again).comparison
    assert (found.spreads["level"].freedom, found.spreads["level"].num_runs, found.spreads["level"].num_other_runs) == (
        6,
        8,
        8,
    )
    assert set(found.others.sweeps) == {"before", "now"}


def test_runs_that_have_not_come_far_say_nothing_and_are_no_fault(home):
    for run in read_sweep(home, "before").plan.variants[0].runs:
        shortened(home, run.id, 0.5)
    found = read_results(now(home)).comparison
    assert (found.spreads["level"].freedom, found.spreads["level"].num_other_runs) == (3, 3)
    assert found.others.left_out == ()


def test_a_longer_run_is_read_in_the_window_of_the_sweep(home):
    sweep = now(home)
    half = StartedSweep(home=home, plan=replace(sweep.plan, fit_to_gpu_hours=BUDGET / 2, sweep="half"))
    half.write_plan()
    short = read_results(half).comparison.spreads["level"]
    for run in read_sweep(home, "before").plan.runs:
        shortened(home, run.id, (BUDGET / 2 + EVERY / 2) / BUDGET)
    assert read_results(half).comparison.spreads["level"].sd == pytest.approx(short.sd, rel=1e-12)


@pytest.mark.parametrize("changes", [{"evaluation": {"samples": 5}}, {"compute_unit_gpu_hours": 1.0}])
def test_runs_with_other_evaluations_or_of_another_unit_say_nothing(home, changes, monkeypatch):
    recipe = home.run(now(home).plan.runs[0].id).read_recipe()[0]
    update = {
        name: value if not isinstance(value, dict) else getattr(recipe, name).model_copy(update=value)
        for name, value in changes.items()
    }
    like = recipe.model_copy(update=update)
    asked = {"sweep": "now", "settings": now(home).plan.fit_settings, "own": (), "freedom": 0}
    assert repeated_runs.repeats_of_home(home, "smoke", like=like, **asked).of("level") == ()
    assert repeated_runs.repeats_of_home(home, "laptop", like=recipe, **asked).of("level") == ()
    assert len(repeated_runs.repeats_of_home(home, "smoke", like=recipe, **asked).of("level")) == 2


def test_runs_of_two_versions_of_the_code_do_not_repeat_each_other(home):
    for number, run in enumerate(read_sweep(home, "before").plan.runs):
        folder = home.run(run.id)
        folder.write_status(replace(folder.read_status(), code_versions=(f"version {number}",)))
    found = read_results(now(home)).comparison
    assert str(found.spreads["level"]) == f"{ASSUMED_SD}, assumed"


@pytest.mark.parametrize("name", ["metrics.jsonl", "recipe.json"])
def test_a_broken_run_is_left_out_and_named(home, name):
    (run, *_) = read_sweep(home, "before").plan.variants[0].runs
    path = home.run(run.id).path / name
    path.write_bytes(b"{" + path.read_bytes()[: path.stat().st_size // 2] + b"\n\n{}")
    results = read_results(now(home))
    left_out = results.comparison.others.left_out
    assert results.comparison.spreads["level"].num_other_runs == 5
    assert len(left_out) == 1
    assert left_out[0].startswith("before, scalerl-s0: ")
    assert "Left out because they cannot be read: 1 run of other sweeps (before, scalerl-s0" in method(results)


def test_findings_are_kept_until_a_log_changes(home, monkeypatch):
    before = read_results(now(home)).comparison.spreads["level"]
    assert len([*(home.sweep("now") / "repeated_runs").glob("*.msgpack")]) == 2
    real, read = repeated_runs.read_run, []
    monkeypatch.setattr(repeated_runs, "read_run", lambda *given: read.append(given[0].path.name) or real(*given))
    again = read_results(now(home)).comparison.spreads["level"]
    assert (again.sd, read) == (before.sd, [])
    variants = read_sweep(home, "before").plan.variants
    shortened(home, variants[0].runs[0].id, 0.9)
    assert read_results(now(home)).comparison.spreads["level"].num_other_runs == before.num_other_runs
    assert {run.id for run in variants[0].runs} <= set(read)
    assert not {run.id for run in variants[1].runs} & set(read)


def test_a_home_that_cannot_be_written_is_read(home):
    (home.sweep("now") / "repeated_runs").touch()
    results = read_results(now(home))
    assert results.comparison.spreads["level"].num_other_runs == 6
    assert f"because {home.path} is not writable (File exists)" in unkept_results_note(results)
    (home.sweep("now") / "repeated_runs").unlink()
    assert unkept_results_note(read_results(now(home))) == ""


def test_a_sweep_with_seeds_enough_reads_no_other(home, monkeypatch):
    def refuse(*_):
        raise AssertionError("no plan is read")

    monkeypatch.setattr(repeated_runs, "plans_of", refuse)
    assert repeated_runs.of_other_sweeps(now(home), (), ENOUGH_FREEDOM).of("level") == ()
