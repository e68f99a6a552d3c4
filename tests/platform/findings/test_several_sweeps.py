"""Several sweeps against one reference: which variants there are, what is refused, and that numbers stay."""

import csv
import json
import shutil
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from fixtures_home import TRUTH, changed, make_home, write_run
from typer.testing import CliRunner

from ablations.answers.questions import QUESTIONS
from ablations.cli import app
from ablations.findings.results import read_results
from ablations.findings.several_sweeps import together, why_apart
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


def test_a_variant_brings_only_the_runs_that_are_not_there_yet(tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1))
    runs = sweep.plan.variants[0].runs
    longer = replace(sweep.plan.variants[0], runs=(*runs, PlannedRun(seed=2, id="ab" * 6)))
    shorter = replace(sweep.plan.variants[1], runs=sweep.plan.variants[1].runs[:1])
    found = together(sweep, [changed(sweep, sweep="more", variants=(longer, shorter))])
    assert found.plan.variants[:3] == sweep.plan.variants
    assert [(one.name, [run.seed for run in one.runs]) for one in found.plan.variants[3:]] == [("scalerl (more)", [2])]


def test_the_numbers_of_a_sweep_are_those_it_has_alone(home):
    sweeps = [read_sweep(Home(home), name) for name in ("loo", "more")]
    first, several = (read_results(one, alone=True) for one in (sweeps[0], together(sweeps[0], sweeps[1:])))
    own, both = ({line["curve"]: line for line in one.to_json()["variants"]} for one in (first, several))
    for name, line in own.items():
        assert {key: both[name][key] for key in line if key not in OF_ALL_AT_ONCE} == {
            key: value for key, value in line.items() if key not in OF_ALL_AT_ONCE
        }
    # Four variants are compared with the reference instead of two, so the corrected interval is wider.
    one, two = own["loo-loss"], both["loo-loss"]
    assert two["level_difference_joint_lo"] < one["level_difference_joint_lo"] < one["level_difference_lo"]


def test_the_table_names_both_sweeps_and_says_whose_variants_are_whose(home):
    printed = " ".join(said(home, "compare", "loo", "more", "--explain").split())
    assert "loo with more at scale laptop, 2000 modelled GPU-hours per run" in printed
    assert "again (more) changes batch.prompts = 24." in printed
    assert (
        "Variants marked (more) belong to that sweep. All runs are fitted in the window of loo, 0 to 2,000" in printed
    )
    first = " ".join(said(home, "compare", "more", "loo").split())
    assert "more with loo at scale" in first
    assert "loo-curriculum (loo)" in first


def test_a_sweep_whose_runs_all_stand_there_adds_nothing_and_that_is_said(tmp_path):
    sweep = make_home(tmp_path)
    changed(sweep, sweep="part", variants=sweep.plan.variants[:2]).write_plan()
    printed = said(tmp_path, "compare", "loo", "part", "--explain")
    assert "part adds nothing: all of its runs are in" in " ".join(printed.split())


def test_a_sweep_that_has_not_begun_says_so_line_by_line(tmp_path):
    sweep = make_home(tmp_path)
    waiting = PlannedVariant(name="later", overrides={}, runs=(PlannedRun(seed=0, id="ef" * 6),))
    changed(sweep, sweep="more", variants=(sweep.plan.variants[0], waiting)).write_plan()
    line = lines(tmp_path, "compare", "loo", "more")["later (more)"]
    assert (line["fit_verdict"], line["A"], line["cost"]) == ("no fit", None, 0)
    assert "later (more)-s0" in line["reason"]


def test_any_variant_can_be_the_reference(home):
    found = lines(home, "compare", "loo", "more", "--reference", "again (more)")
    plain = lines(home, "compare", "loo", "more")
    assert found["again (more)"]["level_verdict"] == "reference"
    assert found["scalerl"]["level_difference"] == pytest.approx(-plain["again (more)"]["level_difference"], rel=1e-12)
    assert "unknown variant 'agin (more)' of loo with more; did you mean 'again (more)'" in refused(
        home, "compare", "loo", "more", "--reference", "agin (more)"
    )
    assert "not to loo-loss." in said(home, "compare", "loo", "--reference", "loo-loss", "--explain")


def test_the_report_of_several_has_one_order_in_its_sheet_and_its_latex_table(tmp_path):
    with_another(tmp_path)
    sheet = Path(said(tmp_path, "report", "loo", "more", "--format", "csv").strip()) / "comparison.csv"
    names = [row["variant"] for row in csv.DictReader(StringIO(sheet.read_text()))]
    assert names == NAMES
    table = (
        Path(said(tmp_path, "report", "loo", "more", "--format", "latex").strip()).with_name("table.tex").read_text()
    )
    rows = [line for line in table.splitlines() if line.endswith(r"\\")][1:]
    assert [row.partition(" & ")[0].replace("{-}", "-") for row in rows] == names
    assert table.startswith("% needs \\usepackage{booktabs}\n\\begin{tabular}")


def test_the_report_of_several_stands_beside_that_of_one(tmp_path):
    sweep, _ = with_another(tmp_path)
    own = Path(said(tmp_path, "report", "loo").strip())
    alone = own.read_text()
    page = Path(said(tmp_path, "report", "loo", "more").strip())
    assert page == sweep.folder / "with" / "more" / "report.html"
    assert "<h1>loo with more</h1>" in page.read_text()
    assert "again (more)" in page.read_text()
    assert own.read_text() == alone
    text = Path(said(tmp_path, "report", "loo", "more", "--format", "md").strip()).read_text()
    assert (
        "5 variants of one recipe were trained with seeds from 0, 1, 2 at scale laptop in 2 sweeps, each run for 2,000"
        in text
    )


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
    for command in ("compare", "report"):
        said_of_it = refused(tmp_path, command, "loo", "more")
        assert said_of_it.startswith(f"sweep 'more' cannot be compared with 'loo': {why}")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["loo", "mor"], "unknown sweep 'mor'"),
        (["loo", "more", "loo"], "sweep 'loo' is named twice; name each sweep once"),
        (["loo", "curves.csv"], "a CSV file cannot be combined with other sources; pass only"),
        (["loo", "more", "--mlflow", "sqlite:///none.db"], "--mlflow: found 2 names; name one experiment of MLflow"),
        (["loo", "--gpus", "8"], "--gpus 8.0 has no effect with a sweep; omit this option"),
        (["loo", "--explain", "--json"], "--explain has no effect with --json; omit this option"),
    ],
)
def test_what_cannot_be_meant_by_several_is_refused(home, arguments, why):
    assert why in refused(home, "compare", *arguments)


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


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"), [(0.73, 0.8, 0.8), (0.8, 0.73, 0.8), (0.73, None, None), (None, 0.73, None)]
)
def test_of_two_ceilings_the_higher_one_limits_all_curves(tmp_path, ours, theirs, expected):
    sweep = make_home(tmp_path)
    first, second = (changed(sweep, fit={"ceiling": one}) for one in (ours, theirs))
    assert why_apart(first, second) == ""  # as for a sweep that an earlier version planned, which knew no ceiling
    assert together(first, [second]).plan.fit_settings.ceiling == expected
