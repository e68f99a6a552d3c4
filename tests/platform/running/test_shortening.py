"""A study that was trained is never made smaller without a word."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from fixtures_design import study_of, trained_home
from typer.testing import CliRunner

from ablations.cli import app
from ablations.errors import AblationsError
from ablations.findings.results import open_sweep
from ablations.home.home import Home
from ablations.home.labels import StudySize
from ablations.home.plan import Plan
from ablations.report.documents.comparison_words import answers
from ablations.running.make_plan import make_plan
from ablations.running.shortening import newly_left_out, sized, what_is_lost
from scalerl.run.status import RunStatus

WHOLE = StudySize(num_variants=2, num_seeds=3, budget_gpu_hours=625.0)


@pytest.fixture
def home(tmp_path) -> Home:
    """A finished study of two variants and three seeds at 625 GPU-hours."""
    return trained_home(tmp_path / "home", study_of(tmp_path))


def plan_of(folder: Path, *, seeds: str = "[0, 1, 2]", budget: float | None = None) -> Plan:
    """The plan of the study in other sizes; `budget` is in units of 625 GPU-hours."""
    return make_plan(study_of(folder, seeds=seeds), "before", budget=budget, command="platform sweep before.yaml")


def test_a_smaller_budget_and_fewer_seeds_are_refused_with_both_sizes(home, tmp_path):
    smaller = plan_of(tmp_path, seeds="[0]", budget=0.5)
    said = "before started with 3 seeds at 625 GPU-hours; this file has 1 seed at 312.5 GPU-hours"
    assert what_is_lost(smaller, home) == said
    plan = plan_of(tmp_path)
    without = replace(plan, variants=plan.variants[:1])
    assert what_is_lost(without, home) == (
        "before started with 2 variants and 3 seeds at 625 GPU-hours; this file has 1 variant and 3 seeds at 625 "
        "GPU-hours"
    )
    with pytest.raises(AblationsError, match=f"^{said}. To use only this part of the results, add --shorten$"):
        sized(smaller, home, shorten=False)


@pytest.mark.parametrize(("seeds", "budget"), [("[0, 1, 2]", None), ("[0, 1, 2]", 2.0), ("[0, 1, 2, 3]", 1.0)])
def test_the_same_study_and_a_larger_one_are_taken_without_a_word(home, tmp_path, seeds, budget):
    plan = plan_of(tmp_path, seeds=seeds, budget=budget)
    assert sized(plan, home, shorten=False) == plan


def test_a_shortened_study_remembers_its_size_until_it_has_grown_again(home, tmp_path):
    short = sized(plan_of(tmp_path, seeds="[0]"), home, shorten=True)
    assert short.begun == WHOLE
    short.write(home.plan_file("before"))
    assert Plan.read(home.plan_file("before")) == short
    # The same again is not refused, a third of it is, and the whole is whole.
    assert sized(plan_of(tmp_path, seeds="[0]"), home, shorten=False).begun == WHOLE
    with pytest.raises(AblationsError, match="started with 1 seed at 625 GPU-hours"):
        sized(plan_of(tmp_path, seeds="[0]", budget=0.5), home, shorten=False)
    assert sized(plan_of(tmp_path), home, shorten=False).begun is None


def test_what_was_planned_but_never_trained_is_not_missed(home, tmp_path):
    plan = Plan.read(home.plan_file("before"))
    for run in plan.runs:
        home.run(run.id).write_status(RunStatus(state="cancelled", compute_gpu_hours=10.0 * (run.seed == 0)))
    assert what_is_lost(plan_of(tmp_path, seeds="[0]", budget=0.5), home) == ""


def test_the_command_refuses_until_it_is_told_to_shorten_and_every_output_says_that_it_did(home, tmp_path, monkeypatch):
    monkeypatch.setattr("ablations.tracking.beside_a_sweep.Tracker.begin_last", lambda tracker: None)

    def platform(*arguments: str):
        command = ["sweep", str(tmp_path / "before.yaml"), "--budget", "0.5", f"--home={home.path}", *arguments]
        return CliRunner().invoke(app, command)

    said = " ".join(platform("--dry-run").output.split())
    assert "this file has 3 seeds at 312.5 GPU-hours; pass --shorten to continue anyway" in said
    refused = platform().exception
    assert isinstance(refused, AblationsError)
    assert refused.exit_code == 2
    assert Plan.read(home.plan_file("before")).budget_gpu_hours == 625.0

    document = json.loads(platform("--shorten", "--json").stdout)
    assert [(one["weight"], one["text"]) for one in document["remarks"] if one["kind"] == "shortened"] == [
        (
            "warning",
            "before is shortened: the study started with 3 seeds at 625 GPU-hours; with --shorten its results use 3 "
            "seeds at 312.5 GPU-hours.",
        )
    ]
    said = answers(open_sweep("before", home.path))
    assert said[-1].startswith("logits=bf16, against scalerl: shortened to 3 seeds at 312.5 GPU-hours; ")


def test_other_seeds_in_place_of_trained_ones_are_refused_and_with_shorten_said_for_good(home, tmp_path):
    swapped = plan_of(tmp_path, seeds="[0, 3, 4]")
    said = "before has trained seeds 1, 2 of scalerl; this file has only 0, 3, 4"
    assert what_is_lost(swapped, home) == said
    with pytest.raises(AblationsError, match=f"^{said}. To use only this part of the results, add --shorten$"):
        sized(swapped, home, shorten=False)
    taken = sized(swapped, home, shorten=True)
    lost = ["scalerl-s1", "scalerl-s2", "logits=bf16-s1", "logits=bf16-s2"]
    assert sorted(taken.left_out.values()) == sorted(lost) == sorted(newly_left_out(taken, home))
    taken.write(home.plan_file("before"))
    again = sized(plan_of(tmp_path, seeds="[0, 3, 4]"), home, shorten=False)
    assert again.left_out == taken.left_out
    assert newly_left_out(again, home) == []
    (remark,) = [one for one in open_sweep("before", home.path).remarks if one.kind == "shortened"]
    assert remark.weight == "warning"
    assert remark.text.startswith("before leaves out trained seeds, which count in none of its numbers: scalerl-s1, ")
    assert sized(plan_of(tmp_path, seeds="[0, 1, 2, 3, 4]"), home, shorten=False).left_out == {}


def test_runs_with_former_settings_are_named_when_they_leave_the_study(home, tmp_path):
    plan = plan_of(tmp_path)
    edited = replace(plan, variants=tuple(renumbered(one) for one in plan.variants[:1]) + plan.variants[1:])
    assert what_is_lost(edited, home) == ""
    taken = sized(edited, home, shorten=False)
    assert newly_left_out(taken, home) == ["scalerl-s0", "scalerl-s1", "scalerl-s2"]
    taken.write(home.plan_file("before"))
    (remark,) = [one for one in open_sweep("before", home.path).remarks if one.kind == "left out"]
    assert (remark.weight, remark.text) == (
        "note",
        "3 runs of before with other settings or code, or of other variants, count no longer: scalerl-s0, scalerl-s1, "
        "scalerl-s2.",
    )
    assert sized(plan, home, shorten=False).left_out == {}


def renumbered(variant):
    """The variant with runs of other settings, which have other ids."""
    return replace(variant, runs=tuple(replace(run, id=run.id[::-1]) for run in variant.runs))
