"""What the doctor says of a minute of training."""

import pytest

from ablations.home.home import Home
from ablations.slurm import doctor
from ablations.slurm.doctor import DoctorQuestion, examine
from ablations.slurm.doctor.training import check_training_here, resolved_recipe, training_finding
from scalerl.checks.finding import Finding

RECIPE = resolved_recipe({"vllm", "deepspeed"})
WENT_WELL = {
    "state": "done", "message": "", "warnings": [], "seconds": 64.2, "steps": 31,
    "pass_rates": [0.31, 0.42], "mismatch": 2.8e-7, "log": [],
}  # fmt: skip


def test_a_run_that_reached_its_budget_says_what_worked_together():
    found = training_finding("a node", WENT_WELL, RECIPE)
    assert (found.level, found.remedy) == ("ok", "")
    assert found.found == (
        "2 generators (vllm) and 2 ranks (deepspeed) took 31 optimiser steps in 64 s, start included; "
        "pass rate 0.31 to 0.42; log-probs of generator and learner differ by 2.8e-07 nats at the first step"
    )


@pytest.mark.parametrize(
    ("otherwise", "found"),
    [
        (
            {"state": "failed", "message": "RankDied: rank 1 died", "log": ["a", "b"]},
            "a run with 2 generators (vllm) and 2 ranks (deepspeed) is failed: RankDied: rank 1 died",
        ),
        ({"state": "", "message": "", "steps": 0, "pass_rates": []}, "is not begun: "),
        ({"steps": 0, "mismatch": None}, "ended without an optimiser step"),
        ({"problem": "the run's process ended with exit code 1", "log": ["a"]}, "ended with exit code 1"),
        ({"warnings": ["generator 1 died (signal 9)"]}, "generator 1 died (signal 9)"),
    ],
)
def test_a_run_that_did_not_is_an_error_with_the_end_of_its_log_and_one_with_warnings_is_a_warning(otherwise, found):
    judged = training_finding("a node", WENT_WELL | otherwise, RECIPE)
    assert judged.level == ("warning" if "warnings" in otherwise else "error")
    assert found in judged.found
    assert judged.log == tuple(otherwise.get("log", ()))


def test_an_engine_that_is_missing_is_replaced_by_what_is_built_in():
    recipe = resolved_recipe(set())
    assert (recipe.generator.type, recipe.learner.type, recipe.learner.ranks) == ("torch", "fsdp", 2)


@pytest.mark.parametrize("missing", [(), ("sbatch",)])
@pytest.mark.parametrize("controller", ["ok", "error"])
def test_it_trains_here_without_a_job_whether_slurm_answers_or_not(tmp_path, monkeypatch, missing, controller):
    def finding(check, level):
        return Finding(part="Slurm", check=check, level=level, found="as this test says", remedy="")

    monkeypatch.setattr(doctor.commands, "missing", lambda: missing)
    monkeypatch.setattr(doctor, "check_controller", lambda is_asked_for: finding("controller", controller))
    monkeypatch.setattr(doctor, "look_at_machine", lambda: {"engines": {}})
    monkeypatch.setattr(doctor, "check_here", lambda home, uri, here: [])
    monkeypatch.setattr(doctor, "check_training_here", lambda installed, say: finding("training", "ok"))
    for name in ("probed_partitions", "check_configuration"):
        monkeypatch.setattr(doctor, name, lambda *given: ())
    question = DoctorQuestion(home=Home(tmp_path), tracking_uri="", say=print, with_job=False, trains=True)
    assert [found.check for found in examine(question)].count("training") == 1


@pytest.mark.engines
@pytest.mark.parametrize("installed", [set(), {"vllm", "deepspeed"}], ids=["built in", "vLLM and DeepSpeed"])
def test_this_machine_trains_for_a_minute(installed):
    said = []
    found = check_training_here(installed, said.append)
    assert found.level == "ok", found
    assert said == ["this machine trains for about a minute"]
