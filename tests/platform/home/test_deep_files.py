"""Files of a home folder that are nested too deeply: named, and no hindrance for commands that can do without."""

import json

import pytest
from fixtures_home import make_home

from ablations.errors import AblationsError
from ablations.home.home import Home
from ablations.home.plan import Plan
from ablations.status.sweeps import sweep_lines
from ablations.tracking.sync_note import read_note

DEEP = "[" * 100_000


@pytest.fixture
def sweep(tmp_path):
    return make_home(tmp_path)


def test_a_plan_is_named_and_the_other_sweeps_are_listed(sweep, tmp_path):
    (tmp_path / "sweeps" / "deep").mkdir()
    plan = tmp_path / "sweeps" / "deep" / "plan.json"
    plan.write_text(DEEP)
    with pytest.raises(AblationsError, match=r"plan.json: not a plan \(nested too deeply\)"):
        Plan.read(plan)
    lines = {line.name: line for line in sweep_lines(Home(tmp_path))}
    assert "nested too deeply" in lines["deep"].problem
    assert not lines["loo"].problem


@pytest.mark.parametrize("content", [DEEP, "{", '{"a": 1}', "3", "[1]", '"loo"'])
def test_a_cancellation_is_named(sweep, content):
    sweep.cancellation.path.write_text(content)
    with pytest.raises(AblationsError, match=r"cancelled: unreadable .*; delete the file and cancel again"):
        _ = sweep.cancellation.is_whole


def test_a_note_of_mlflow_is_made_again(sweep):
    (sweep.folder / "sync.json").write_text(DEEP)
    assert read_note(sweep.home, sweep.name).runs == {}


def test_a_run_without_a_readable_recipe_says_so(sweep):
    folder = sweep.run(sweep.plan.runs[0].id)
    (folder.path / "recipe.json").write_text(DEEP)
    with pytest.raises(ValueError, match=r"recipe.json is damaged \(nested too deeply\)"):
        folder.read_recipe()
    assert json.loads((sweep.folder / "plan.json").read_text())["sweep"] == "loo"
