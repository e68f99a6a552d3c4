"""What the runs of a home folder say of their scale, against the numbers that they were drawn from."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from fixtures_design import (
    BUDGET,
    C_MID,
    EVERY,
    PROMPTS,
    R_0,
    RUN_TO_RUN_SD,
    SECONDS_PER_EVALUATION,
    SECONDS_PER_GPU_HOUR,
    A,
    B,
    study_of,
    trained_home,
)

from ablations.findings.earlier_runs import known_of_home
from ablations.home.home import Home
from ablations.home.started_sweep import StartedSweep, read_sweep
from scalerl.run.run_log import read_rows


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return study_of(tmp_path_factory.mktemp("study"), seeds="[0, 1, 2, 3]")


@pytest.fixture(scope="module")
def home(tmp_path_factory, study):
    return trained_home(tmp_path_factory.mktemp("home") / "runs-are-here", study)


@pytest.fixture(scope="module")
def known(home, study):
    return known_of_home(home, "smoke", study.reference.recipe, None)


def test_the_law_is_that_of_a_run_in_the_middle(known):
    compute = EVERY * np.arange(1, 21)
    truth = R_0 + (A - R_0) / (1 + (C_MID / compute) ** B)
    # Binomial noise of 800 samples is .017 a reading, and runs lie .05 apart.
    assert np.abs(known.law(compute) - truth).mean() < 0.05
    assert known.num_runs == 8


def test_the_spread_between_runs_is_that_of_the_levels_of_all_recipes(known, home, study):
    squares = []
    for variant in study.variants:
        levels = []
        for run in study.runs:
            if run.variant == variant.name:
                rows = [row for row in read_rows(home.run(run.id).metrics) if row["kind"] == "eval"]
                x = np.linspace(2 / 3 * BUDGET, BUDGET, 20_001)
                score = np.interp(x, [row["compute_gpu_hours"] for row in rows], [row["pass_rate"] for row in rows])
                levels.append(score.mean())
        squares.append(np.sum((np.array(levels) - np.mean(levels)) ** 2))
    found = np.sqrt(sum(squares) / 6)
    assert known.spread.freedom == 6
    assert known.spread.level == pytest.approx(found, rel=0.2)  # a prior of .0075 and the sampling noise are in it
    assert 0.5 * RUN_TO_RUN_SD < known.spread.level < 2 * RUN_TO_RUN_SD


def test_speed_and_prompts_are_read_from_the_logs(known):
    assert known.speed.seconds_per_gpu_hour == pytest.approx(SECONDS_PER_GPU_HOUR, rel=1e-6)
    assert known.speed.seconds_per_evaluation == pytest.approx(SECONDS_PER_EVALUATION, rel=1e-6)
    assert known.prompts == PROMPTS
    assert known.sampling_share == pytest.approx(1.0)


def test_runs_of_another_scale_task_or_unit_say_nothing(home, study, tmp_path):
    recipe = study.reference.recipe
    assert known_of_home(home, "laptop", recipe, None) is None
    assert known_of_home(Home(tmp_path), "smoke", recipe, None) is None
    for other in (
        recipe.model_copy(update={"compute_unit_gpu_hours": 1.0}),
        recipe.model_copy(update={"tasks": (recipe.tasks[0].model_copy(update={"symbols": 13}),)}),
    ):
        assert known_of_home(home, "smoke", other, None) is None


def test_a_run_of_two_sweeps_counts_once_and_a_broken_plan_is_left_out(home, study, tmp_path, known):
    copied = Home(tmp_path / "copy")
    shutil.copytree(home.path, copied.path)
    plan = read_sweep(copied, "before").plan
    StartedSweep(home=copied, plan=replace(plan, sweep="again")).write_plan()
    (copied.sweep("broken")).mkdir()
    copied.plan_file("broken").write_text("{")
    again = known_of_home(copied, "smoke", study.reference.recipe, None)
    assert (again.num_runs, again.spread) == (known.num_runs, known.spread)


def test_a_shorter_study_of_the_same_runs_takes_nothing_from_what_they_say(tmp_path, home, study, known):
    copied = Home(tmp_path / "copy")
    shutil.copytree(home.path, copied.path)
    whole = read_sweep(copied, copied.sweep_names()[0]).plan
    short = replace(whole, sweep="a", budget_gpu_hours=BUDGET / 4, fit_to_gpu_hours=BUDGET / 4)
    StartedSweep(home=copied, plan=short).write_plan()
    assert copied.sweep_names()[0] == "a"
    again = known_of_home(copied, "smoke", study.reference.recipe, None)
    assert np.array_equal(again.law(np.array([BUDGET])), known.law(np.array([BUDGET])))
