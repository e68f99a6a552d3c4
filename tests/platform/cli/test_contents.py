"""What a home folder holds: listed, shown, compared setting by setting, deleted."""

import json
import shutil
from dataclasses import replace

import pytest
import yaml
from filelock import FileLock
from fixtures_home import make_home, make_plan, write_state
from trainer.tiny import tiny_recipe
from typer.testing import CliRunner

from ablations.cli import app
from ablations.home.home import Home
from ablations.home.plan import PlannedRun, PlannedVariant
from ablations.home.started_sweep import StartedSweep
from ablations.running.delete import remove_sweep, what_goes


@pytest.fixture
def platform(tmp_path):
    """`platform("list")` is what it printed, with this exit code, in the home folder `tmp_path`."""

    def platform(*arguments, code=0):
        result = CliRunner().invoke(app, [*arguments, "--home", str(tmp_path)], env={"COLUMNS": "200"})
        assert result.exit_code == code or (result.exception is not None and code == 2), result.output
        return result.stdout if code == 0 else f"{result.stdout}{result.exception}"

    return platform


def another(sweep: StartedSweep, name: str, num_variants: int) -> StartedSweep:
    """A sweep of this name with the first variants of the other, and so with their runs."""
    other = replace(sweep, plan=replace(sweep.plan, sweep=name, variants=sweep.plan.variants[:num_variants]))
    other.write_plan()
    return other


def test_the_list_has_every_sweep_with_its_runs_its_cost_and_its_question(platform, tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1))
    write_state(sweep.home, sweep.plan.runs[0].id, "failed")
    another(sweep, "part", 1)
    lines = {line["name"]: line for line in json.loads(platform("list", "--json"))}
    assert (lines["loo"]["runs"], lines["loo"]["states"]) == (6, {"done": 5, "failed": 1})
    assert lines["loo"]["compute_gpu_hours"] == pytest.approx(
        sum(sweep.run(run.id).read_status().compute_gpu_hours for run in sweep.plan.runs)
    )
    assert lines["part"]["variants"] == 1
    printed = platform("list")
    assert "5 of 6 done, 1 failed" in printed
    assert "Which choice raises the ceiling?" in printed


def test_a_broken_sweep_is_listed_with_its_fault_beside_the_others(platform, tmp_path):
    make_home(tmp_path)
    plan = tmp_path / "sweeps" / "torn" / "plan.json"
    plan.parent.mkdir()
    plan.write_text("{")
    lines = {line["name"]: line for line in json.loads(platform("list", "--json"))}
    assert "not a plan" in lines["torn"]["problem"]
    assert lines["loo"]["problem"] == ""
    assert "not a plan" in platform("list")


def test_a_sweep_shows_its_question_its_command_and_what_each_variant_changes(platform, tmp_path):
    make_home(tmp_path, seeds=(0, 1))
    printed = platform("show", "loo")
    assert "Which choice raises the ceiling?" in printed
    assert "platform sweep sweeps/loo.yaml" in printed
    rows = [line.split(maxsplit=3) for line in printed.splitlines()[-3:]]
    assert [row[0] for row in rows] == ["scalerl", "loo-loss", "loo-curriculum"]
    assert [row[3].strip() for row in rows] == ["the reference", "loss.type = dapo", "curriculum.type = uniform"]
    assert json.loads(platform("show", "loo", "--json"))["reference"] == "scalerl"


def two_recipes(home: Home, **of_other) -> tuple[str, str]:
    """A sweep `two` whose second variant has these settings; the ids of its runs."""
    recipes = {"scalerl": tiny_recipe(), "other": tiny_recipe(**of_other)}
    ids = {name: recipe.identity(0) for name, recipe in recipes.items()}
    for name, recipe in recipes.items():
        home.run(ids[name]).create(recipe, 0)
    variants = tuple(
        PlannedVariant(name=name, overrides={}, runs=(PlannedRun(seed=0, id=run),)) for name, run in ids.items()
    )
    StartedSweep(home=home, plan=replace(make_plan(), sweep="two", variants=variants)).write_plan()
    return ids["scalerl"], ids["other"]


def test_the_recipe_of_a_variant_and_its_run_is_whole_and_can_be_read_again(platform, tmp_path):
    _, run = two_recipes(Home(tmp_path), batch={"prompts": 2})
    settings = tiny_recipe(batch={"prompts": 2}).model_dump(mode="json")
    assert yaml.safe_load(platform("show", "two", "--variant", "other")) == settings
    assert json.loads(platform("show", "two", "--variant", "other", "--json")) == settings
    assert "did you mean 'other'?" in platform("show", "two", "--variant", "othr", code=2)
    assert platform("show", run) == platform("show", "two", "--variant", "other")
    assert f"no run 0123456789ab in {tmp_path}" in platform("show", "0123456789ab", code=2)


def test_two_variants_and_two_runs_differ_in_the_settings_that_were_changed(platform, tmp_path):
    runs = two_recipes(Home(tmp_path), batch={"prompts": 2}, aggregation="token")
    for names in (("scalerl", "other", "--sweep", "two"), runs):
        found = {one["path"]: (one["left"], one["right"]) for one in json.loads(platform("diff", *names, "--json"))}
        assert found == {"batch.prompts": ("4", "2"), "aggregation": (tiny_recipe().aggregation, "token")}
        assert "batch.prompts" in platform("diff", *names)
    assert "have the same settings" in platform("diff", runs[0], runs[0])
    said = platform("diff", "scalerl", "other", code=2)
    assert "unknown recipe 'other'" in said
    assert "for the variant of that name, add --sweep two" in said
    assert "--sweep" not in platform("diff", "scalerl", "nosuch", code=2)


def test_recipes_are_compared_at_one_scale_and_what_only_one_has_is_a_dash(platform):
    found = {
        one["path"]: (one["left"], one["right"])
        for one in json.loads(platform("diff", "scalerl", "baseline", "--scale", "smoke", "--json"))
    }
    assert found["off_policy.type"] == ("pipeline", "ppo_off_policy")
    assert found["loss.max_ratio"][1] == "-"
    assert not any(path.startswith(("model.", "batch.")) for path in found)
    assert "no run 0123456789ab" in platform("diff", "0123456789ab", "scalerl", code=2)


def test_deleting_a_sweep_takes_its_runs_and_leaves_those_of_others(platform, tmp_path):
    sweep = make_home(tmp_path)
    another(sweep, "part", 1)
    shared, *own = [run.id for run in sweep.plan.runs]
    said = platform("delete", "loo", code=2)
    assert "nothing deleted; to delete sweep 'loo' with 2 runs" in said
    assert "keeping 1 run shared with other sweeps" in said
    assert sweep.run(own[0]).path.exists()
    assert "Deleted sweep 'loo'" in platform("delete", "loo", "--yes")
    assert Home(tmp_path).sweep_names() == ["part"]
    assert [sweep.run(run).path.exists() for run in (shared, *own)] == [True, False, False]
    assert [path.name for path in sweep.home.sweeps.iterdir()] == ["part"]


def test_a_run_that_another_sweep_has_since_the_question_stays_and_an_interrupted_deletion_is_no_sweep(
    tmp_path, monkeypatch
):
    sweep = make_home(tmp_path)
    going = what_goes(sweep)
    another(sweep, "since", 1)
    real = shutil.rmtree
    monkeypatch.setattr(shutil, "rmtree", lambda path, **options: real(path, **options) if options else 1 / 0)
    with pytest.raises(ZeroDivisionError):
        remove_sweep(going)
    assert sweep.home.sweep_names() == ["since"]
    assert all(sweep.run(run.id).path.exists() for run in sweep.plan.runs)
    monkeypatch.undo()
    sweep.write_plan()
    remove_sweep(going)
    assert [sweep.run(run.id).path.exists() for run in sweep.plan.runs] == [True, False, False]
    assert {path.name for path in tmp_path.iterdir() if path.name.startswith(".")} == set()


def test_a_sweep_that_trains_or_is_worked_on_is_not_deleted(platform, tmp_path):
    sweep = make_home(tmp_path)
    with FileLock(sweep.lock):
        assert f"run `platform cancel loo --home {tmp_path}` first" in platform("delete", "loo", "--yes", code=2)
    torn = tmp_path / "sweeps" / "torn" / "plan.json"
    torn.parent.mkdir()
    torn.write_text("{")
    assert "not a plan" in platform("delete", "loo", "--yes", code=2)  # which may have the same runs
    assert all(sweep.run(run.id).path.exists() for run in sweep.plan.runs)


@pytest.mark.parametrize(
    ("option", "name", "comment", "setting"),
    [
        ("--recipes", "scalerl", "ScaleRL (arXiv 2510.13786", "off_policy:"),
        ("--scales", "smoke", "Less than a minute per run", "evaluation:"),
    ],
)
def test_a_recipe_and_a_scale_are_listed_and_shown_with_their_comments_and_every_default(
    platform, option, name, comment, setting
):
    (listed,) = [one["says"] for one in json.loads(platform("list", option, "--json")) if name in one.values()]
    assert listed.startswith(comment)
    assert name in platform("list", option)
    said = platform("show", name)
    written, _, whole = said.partition("# With every default:")
    assert f"# {comment}" in written
    assert setting in whole
    assert len(yaml.safe_load(whole)) > len(yaml.safe_load(written))
    assert json.loads(platform("show", name, "--json")) == yaml.safe_load(whole)
