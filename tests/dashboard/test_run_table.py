"""The table of runs as plain data: its rows, the rows that are asked for, and groups with intervals."""

import math
import os
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from fixtures_home import changed, collapse, make_grid, make_home, planned_run, write_state

from ablations.errors import AblationsError
from ablations.findings.results import read_results
from ablations.status.progress import run_rows
from ablations.study.expand import expand
from ablations_dashboard.run_table.condition import fulfilled
from ablations_dashboard.run_table.groups import groups_of, spread_within
from ablations_dashboard.run_table.rows import run_table

TABLE = pd.DataFrame(
    {
        "run": ["a-s0", "a-s1", "b-s0", "c-s0"],
        "state": ["done", "failed", "done", "done"],
        "seed": [0, 1, 0, 0],
        "compute": [1.0, 0.4, 1.0, 1.0],
        "optimiser.learning_rate": [1e-4, 1e-4, 3e-4, np.nan],
        "loss.type": ["cispo", "cispo", "dapo", None],
        "message": ["", "CUDA out of memory", "", ""],
    }
)


def grid_with_recipes(path):
    """The finished sweep of a grid; its runs have the whole recipes of the study."""
    sweep = make_grid(path)
    for run in expand(path / "grid.yaml").runs:
        (sweep.run(run.id).path / "recipe.json").unlink()
        sweep.run(run.id).create(run.recipe, run.seed)
    return sweep


def table_of(sweep):
    return run_table(sweep, run_rows(sweep))


def test_runs_that_failed_collapsed_or_fell_come_first_with_what_happened(tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1))
    collapse(sweep, planned_run("loo-curriculum", 1).id, after=1500.0)
    write_state(sweep.home, planned_run("loo-curriculum", 0).id, "failed", compute=900.0, message="Diverged")
    before = table_of(sweep)
    assert list(before["state"]) == ["failed", *["done"] * 5], "nothing has fitted the runs yet"
    for run in sweep.plan.runs:
        os.utime(sweep.run(run.id).metrics, (1e9, 1e9))  # what is younger than a tenth of a second is not kept
    read_results(sweep)
    table = table_of(sweep)
    assert list(table["run"])[:3] == ["loo-curriculum-s0", "loo-curriculum-s1", "scalerl-s0"]
    assert list(table["state"])[:3] == ["failed", "collapsed", "done"]
    messages = table["message"].tolist()
    assert messages[0] == "Diverged"
    assert " at 1,500 to " in messages[1]
    assert table["compute"].tolist()[0] == 900 / 2000
    # The level of scalerl in the comparison is the mean of the levels of its seeds.
    levels = table.loc[table["variant"] == "scalerl", "level"]
    assert levels.mean() == pytest.approx(read_results(sweep).compared("scalerl").level, abs=1e-4)


def test_settings_are_those_that_vary_with_the_references_own_value(tmp_path):
    table = table_of(grid_with_recipes(tmp_path))
    by_run = table.set_index("run").to_dict("index")
    assert {name for name in table if "." in name} == {"loss.type", "batch.prompts"}
    assert set(table["batch.prompts"]) == {16, 32, 64}
    assert pd.api.types.is_numeric_dtype(table["batch.prompts"])
    assert by_run["scalerl-s0"]["loss.type"] == "cispo"
    assert set(table["loss.type"]) == {"cispo", "dapo"}


def test_a_setting_of_a_block_that_a_variant_replaces_is_missing_there_and_names_of_columns_stay_apart(tmp_path):
    sweep = make_home(tmp_path)
    ratio = {"loss.max_ratio": 3.0, "seed": 5}
    variants = [replace(one, overrides=ratio) if one.name == "loo-curriculum" else one for one in sweep.plan.variants]
    table = table_of(changed(sweep, variants=tuple(variants))).set_index("run").to_dict("index")
    assert math.isnan(table["loo-loss-s0"]["loss.max_ratio"]), "dapo has no max_ratio of cispo"
    assert table["loo-curriculum-s0"]["loss.max_ratio"] == 3.0
    assert table["loo-curriculum-s0"]["seed (setting)"] == 5
    assert table["loo-curriculum-s0"]["seed"] == 0


@pytest.mark.parametrize(
    ("asked", "rows"),
    [
        ("", [0, 1, 2, 3]),
        ("failed", [1]),
        ("B-s", [2]),
        ('"out of memory"', [1]),
        ("loss.type=DAPO", [2]),
        ("type!=dapo", [0, 1, 3]),
        ("learning_rate>0.0001", [2]),
        ("learning_rate>=1e-4 seed=0", [0, 2]),
        ("learning_rate=0.0001 done", [0]),
        ("seed!=0", [1]),
        ("compute<1", [1]),
        ("compute>50%", [0, 2, 3]),
        ("compute=40%", [1]),
        ("compute<50.5% seed<9", [1]),
        ("compute<=1 state=done", [0, 2, 3]),
        ("nothing-like-it", []),
        ("learning_rate==0.0001, state==done,", [0]),
    ],
)
def test_words_and_comparisons_choose_rows(asked, rows):
    assert np.flatnonzero(fulfilled(TABLE, asked)).tolist() == rows


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ('"open', "opens a quotation mark and does not close it"),
        ("sed=1", "no column `sed`: did you mean 'seed'"),
        ("state>done", "`state` has words, so `>` does not apply to it"),
        ("seed = 1", "`=` compares nothing; a comparison has no spaces"),
        ("seed=two", "`seed` has numbers; `two` is none"),
    ],
)
def test_a_filter_that_cannot_be_read_says_why(asked, said):
    with pytest.raises(AblationsError, match=r".") as refused:
        fulfilled(TABLE, asked)
    assert said in str(refused.value)


def test_the_end_of_a_path_that_two_columns_share_is_refused():
    with pytest.raises(AblationsError, match=r"`type` may be any of loss.type, advantage.type"):
        fulfilled(TABLE.assign(**{"advantage.type": "group"}), "type=dapo")


def test_a_group_has_the_mean_of_its_runs_and_the_interval_of_other_seeds():
    table = pd.DataFrame(
        {
            "variant": ["a", "a", "b", "b", "b", "c"],
            "loss": ["x", "x", "x", "x", "x", "y"],
            "compute": [1.0, 1.0, 1.0, 1.0, 0.5, 1.0],
            "level": [0.50, 0.52, 0.60, 0.64, 0.10, 0.70],
        }
    )
    # a: .51, squares 2 x .0001; b without the run that has not ended: .62, squares 2 x .0004; 2 degrees of freedom.
    spread = spread_within(table, "level")
    assert (spread.sd, spread.freedom) == (pytest.approx(math.sqrt(0.001 / 2)), 2)
    x, y = groups_of(table, "loss", "level")
    half = 4.302653 * math.sqrt(0.001 / 2 / 4)  # Student's t of 2 degrees of freedom, from a printed table
    assert (x.num_runs, x.num_counting, x.lowest, x.highest) == (5, 4, 0.50, 0.64)
    assert x.mean.estimate == pytest.approx((0.50 + 0.52 + 0.60 + 0.64) / 4)
    assert x.mean.hi - x.mean.estimate == pytest.approx(half, rel=1e-5)
    assert y.mean.estimate - y.mean.lo == pytest.approx(2 * half, rel=1e-5)
    alone = groups_of(pd.DataFrame(table[table["variant"] == "c"]), "loss", "level")[0]
    assert (alone.mean.lo, alone.mean.hi) == (None, None)


def test_a_group_without_a_run_that_counts_has_no_mean():
    table = pd.DataFrame({"variant": ["a"], "loss": ["x"], "compute": [0.2], "level": [0.5]})
    (group,) = groups_of(table, "loss", "level")
    assert (group.num_runs, group.num_counting, group.mean) == (1, 0, None)
