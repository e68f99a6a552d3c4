"""Several sweeps against one reference: which variants there are, what is refused, and that numbers stay."""

import json
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from fixtures_home import TRUTH, changed, make_home, write_run
from places import DATA
from typer.testing import CliRunner

from ablations.answers.questions import QUESTIONS
from ablations.cli import app
from ablations.findings.together import together, why_apart
from ablations.home.home import Home
from ablations.home.plan import PlannedRun, PlannedVariant
from ablations.home.started_sweep import StartedSweep, read_sweep
from ablations.study.resolve import load_resolved

SLOW = (0.60, 1.8, 330.0)
OF_ALL_AT_ONCE = {key for question in QUESTIONS for key in question.keys if "joint" in key}
"""What depends on how many variants are compared."""


def with_another(path: Path) -> tuple[StartedSweep, StartedSweep]:
    """`loo`, and `more` with its reference, its `loo-loss` trained anew, and `again`."""
    sweep = make_home(path, seeds=(0, 1))
    reference, loss, _ = sweep.plan.variants
    anew = replace(loss, runs=(PlannedRun(seed=2, id="cd" * 6),))
    again = PlannedVariant(name="again", overrides={"batch.prompts": 24}, runs=(PlannedRun(seed=0, id="ab" * 6),))
    write_run(sweep.home, "cd" * 6, TRUTH["loo-loss"], seed=2)
    write_run(sweep.home, "ab" * 6, SLOW)
    other = changed(sweep, sweep="more", variants=(reference, anew, again))
    other.write_plan()
    return sweep, other


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    return with_another(tmp_path_factory.mktemp("home"))[0].home.path


def said(home: Path, *arguments: str) -> str:
    result = CliRunner().invoke(app, [*arguments, "--home", str(home)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(home: Path, *arguments: str) -> str:
    result = CliRunner().invoke(app, [*arguments, "--home", str(home)])
    assert result.exception is not None
    return str(result.exception)


def lines(home: Path, *arguments: str) -> dict[str, dict]:
    return {line["curve"]: line for line in json.loads(said(home, *arguments, "--json"))["variants"]}


NAMES = ["scalerl", "loo-loss", "loo-curriculum", "loo-loss (more)", "again (more)"]


def test_variants_of_another_sweep_stand_under_its_name_and_a_run_stands_once(home):
    found = json.loads(said(home, "compare", "loo", "more", "--json"))
    assert (found["sweep"], found["together_with"], found["reference"]) == ("loo", ["more"], "scalerl")
    assert [line["curve"] for line in found["variants"]] == NAMES
    assert len({run["id"] for run in found["runs"]}) == len(found["runs"]) == 8


def test_the_numbers_of_a_sweep_are_those_it_has_alone(home):
    own, both = lines(home, "compare", "loo", "--alone"), lines(home, "compare", "loo", "more", "--alone")
    for name, line in own.items():
        assert {key: both[name][key] for key in line if key not in OF_ALL_AT_ONCE} == {
            key: value for key, value in line.items() if key not in OF_ALL_AT_ONCE
        }
    # Four variants are compared with the reference instead of two, so the corrected interval is wider.
    one, two = own["loo-loss"], both["loo-loss"]
    assert two["delta_level_joint_lo"] < one["delta_level_joint_lo"] < one["delta_level_lo"]


def test_a_real_sweep_that_is_cut_in_two_has_the_numbers_of_the_whole(tmp_path):
    with tarfile.open(DATA / "homes" / "5b233c1.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    home = tmp_path / "home"
    plan = home / "sweeps/small/plan.json"
    plan.write_text(plan.read_text().replace(' "total_gpu_hours": null,\n', ""))
    reference, penalty = (whole := read_sweep(Home(home), "small")).plan.variants
    shutil.copy(tmp_path / "a81b84a39abf.finished.jsonl", whole.run("a81b84a39abf").metrics)
    changed(whole, sweep="one", variants=(reference,)).write_plan()
    # As the version of today writes it, with a setting that the old plan lacks.
    changed(whole, sweep="two", variants=(reference, penalty), fit={**whole.plan.fit, "ceiling": None}).write_plan()
    found, expected = lines(home, "compare", "one", "two"), lines(home, "compare", "small")
    found["kl=penalty"] = found.pop("kl=penalty (two)") | {"curve": "kl=penalty"}
    assert json.loads(json.dumps(found).replace("kl=penalty (two)", "kl=penalty")) == expected


def test_any_variant_can_be_the_reference(home):
    found = lines(home, "compare", "loo", "more", "--reference", "again (more)")
    plain = lines(home, "compare", "loo", "more")
    assert found["again (more)"]["level_difference"] == "reference"
    assert found["scalerl"]["delta_level"] == pytest.approx(-plain["again (more)"]["delta_level"], rel=1e-12)
    assert "unknown variant 'agin (more)' of loo with more; did you mean 'again (more)'" in refused(
        home, "compare", "loo", "more", "--reference", "agin (more)"
    )
    assert "not to loo-loss." in said(home, "compare", "loo", "--reference", "loo-loss", "--explain")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"scale": "8b"}, "its scale is 8b, not laptop"),
        ({"compute_name": "measured device-hours"}, "its compute is counted in measured device-hours, not in"),
        ({"fit": {"r0": "free"}}, "its curves are fitted with other settings (fit.r0)"),
    ],
)
def test_sweeps_that_mean_other_things_are_refused(tmp_path, change, why):
    sweep = make_home(tmp_path)
    changed(sweep, sweep="more", **change).write_plan()
    said_of_it = refused(tmp_path, "compare", "loo", "more")
    assert said_of_it.startswith(f"sweep 'more' cannot be compared with 'loo': {why}")


def real(sweep: StartedSweep, name: str, *sets: str) -> StartedSweep:
    """A sweep of one variant, whose run has a recipe that can be read: the shipped one, changed by `sets`."""
    recipe = load_resolved("scalerl", "smoke", sets)
    run_id = recipe.identity(0)
    write_run(sweep.home, run_id, SLOW)
    (sweep.run(run_id).path / "recipe.json").unlink()
    sweep.run(run_id).create(recipe, 0)
    only = PlannedVariant(name="scalerl", overrides={}, runs=(PlannedRun(seed=0, id=run_id),))
    return changed(sweep, sweep=name, variants=(only,))


def test_the_recipes_say_whether_prompts_and_account_are_the_same(tmp_path):
    sweep = make_home(tmp_path)
    first = real(sweep, "first")
    prompts = real(sweep, "prompts", "tasks=[{type: k_smallest, validation_prompts: 100}]")
    assert why_apart(first, prompts) == "its tasks and held-out prompts are different"
    free = real(sweep, "free", "cluster.attention={type: free}")
    assert why_apart(first, free) == "its runs charge different compute for the same work (cluster.attention)"
    assert why_apart(first, real(sweep, "device", "cluster.device.tflops=500.0")) == (
        "its runs charge different compute for the same work (cluster.device)"
    )
    assert why_apart(first, real(sweep, "batch", "batch.prompts=12")) == ""
    shutil.rmtree(free.run(free.plan.runs[0].id).path)  # not begun: nothing speaks against it
    assert why_apart(first, free) == ""


def test_what_another_reference_changes_is_said_of_its_variants(tmp_path):
    sweep = make_home(tmp_path)
    first, second = real(sweep, "first"), real(sweep, "second", "batch.prompts=12", "loss={type: grpo}")
    found = together(first, [second]).plan.variants[1]
    assert found.name == "scalerl (second)"
    assert found.overrides["loss.type"] == "grpo"
    assert found.overrides["batch.prompts"] == "12"
    assert "loss.max_ratio" not in found.overrides  # a setting of the loss that it no longer has


@pytest.mark.parametrize(("ours", "theirs", "expected"), [(0.73, 0.8, 0.8), (0.73, None, None)])
def test_of_two_ceilings_the_higher_one_limits_all_curves(tmp_path, ours, theirs, expected):
    sweep = make_home(tmp_path)
    first, second = (changed(sweep, fit={"ceiling": one}) for one in (ours, theirs))
    assert why_apart(first, second) == ""  # as for a sweep that an earlier version planned, which knew no ceiling
    assert together(first, [second]).plan.fit_settings.ceiling == expected
