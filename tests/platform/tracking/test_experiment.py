"""Runs in MLflow, ours or of another trainer, are compared as those of a sweep are."""

import json

import numpy as np
import pytest
from fixtures_design import study_of, trained_home
from typer.testing import CliRunner

from ablations.cli import app
from ablations.home.started_sweep import read_sweep
from ablations.tracking.synchroniser import push_sweep

NAMED = ["--metric", "pass_rate", "--compute", "gpu_hours", "--reference", "plain"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home folder whose sweep is in MLflow; its recipes can be read, so that it is known which runs begin alike."""
    path = tmp_path_factory.mktemp("home")
    sweep = read_sweep(trained_home(path, study_of(path / "study", name="loo", seeds="[0, 1]")), "loo")
    assert push_sweep(sweep).rows_left == 0
    return path


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store with an experiment of another trainer, not all of whose runs can be read."""
    from mlflow import MlflowClient

    uri = f"sqlite:///{tmp_path_factory.mktemp('store') / 'other.db'}"
    client = MlflowClient(uri)
    experiment = client.create_experiment("grpo")
    begun = iter(range(100))

    def log(name, A, *, params, tags=(), status="FINISHED", metrics=("pass_rate", "gpu_hours")):
        run = client.create_run(experiment, start_time=1000 + next(begun), run_name=name, tags=dict(tags))
        for key, value in params.items():
            client.log_param(run.info.run_id, key, value)
        for step, hours in enumerate(np.arange(0.0, 41.0)):
            score = 0.2 + (A - 0.2) / (1 + (8 / hours) ** 1.9) if hours else 0.2
            score += 0.002 * np.sin(7 * step + 100 * A)
            values = {"pass_rate": score, "gpu_hours": hours}
            for metric in metrics:
                if metric == "pass_rate" or step != 40 or name != "short":
                    client.log_metric(run.info.run_id, metric, values[metric], step=step)
        client.set_terminated(run.info.run_id, status)
        return run.info.run_id

    log("a", 0.60, params={"loss": "plain"})
    log("b", 0.61, params={"loss": "plain"}, status="FAILED")
    log("c", 0.50, params={}, tags={"loss": "dapo"})
    log("short", 0.51, params={"loss": "dapo"})
    log("nameless", 0.5, params={"los": "dapo"})
    log("without hours", 0.5, params={"loss": "dapo"}, metrics=("pass_rate",))
    return uri


def compare(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["compare", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*arguments: str) -> str:
    return str(CliRunner().invoke(app, ["compare", *arguments]).exception)


def test_a_sweep_that_was_pushed_is_compared_from_mlflow_as_from_its_folder(home):
    ours = json.loads(compare("loo", "--home", str(home), "--json"))
    named = ["--metric", "eval/pass_rate", "--compute", "eval/compute_gpu_hours", "--samples", "eval/num_samples"]
    told = ["--variant", "ablations.variant", "--seed", "seed", "--reference", "scalerl"]
    uri = f"sqlite:///{home / 'mlflow.db'}"
    theirs = json.loads(compare("--mlflow", uri, "--experiment", "loo", *named, *told, "--json"))
    by_name = {line["curve"]: line for line in theirs["variants"]}
    assert len(by_name) == 2
    for line in ours["variants"]:
        unknown_there = {"hours": None, "overrides": {}}
        assert by_name[line["curve"]] | {"hours": None} == line | unknown_there


def test_variants_are_told_by_a_param_or_tag_and_what_cannot_be_read_is_said(store):
    found = json.loads(compare("--mlflow", store, "--experiment", "grpo", *NAMED, "--variant", "loss", "--json"))
    assert [(line["curve"], line["num_seeds"], line["cost"]) for line in found["variants"]] == [
        ("plain", 2, 80.0),
        ("dapo", 2, 79.0),
    ]
    assert found["variants"][1]["difference"] == "ceiling down"
    assert found["variants"][1]["delta_A"] == pytest.approx(-0.1, abs=0.01)
    nameless, without = found["reasons"]
    assert nameless.startswith("MLflow's run 'nameless' is left out: --variant: it has no param or tag 'loss'; did you")
    assert without.startswith("MLflow's run 'without hours' is left out: it has no metric 'gpu_hours'; ")


def test_the_table_warns_of_runs_that_failed_and_of_readings_without_compute(store):
    said = " ".join(compare("--mlflow", store, "--experiment", "grpo", *NAMED, "--variant", "loss").split())
    assert said.startswith("grpo, 4 runs")
    assert "C_mid and cost: gpu_hours." in said
    assert "plain, seed 1: MLflow has it as FAILED." in said
    assert "dapo, seed 1: 1 of 41 readings have no gpu_hours at their step." in said


def test_compute_may_be_the_step_and_samples_a_number(store):
    named = ["--metric", "pass_rate", "--compute", "step", "--variant", "loss", "--reference", "plain"]
    found = json.loads(compare("--mlflow", store, "--experiment", "grpo", *named, "--samples", "16000", "--json"))
    assert found["variants"][0]["window"] == [1, 40]
    assert found["variants"][1]["num_seeds"] == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--experiment", "grp", *NAMED], "no experiment 'grp'; did you mean 'grpo'?"),
        (["--experiment", "grpo"], "--mlflow needs --metric, --compute too"),
        (["--experiment", "grpo", *NAMED], "has no run that can be read"),
        (["--experiment", "grpo", *NAMED, "--variant", "loss", "--seed", "loss"], "--seed: found 'plain'; a seed is"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_names_there_are(store, options, said):
    assert said in refused("--mlflow", store, *options)


def test_a_store_that_is_not_there_is_not_made(tmp_path):
    path = tmp_path / "none.db"
    assert "there is no such file" in refused("--mlflow", f"sqlite:///{path}", "--experiment", "x", *NAMED)
    assert not path.exists()
