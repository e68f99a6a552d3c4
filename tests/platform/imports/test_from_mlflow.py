"""Runs in MLflow, ours or of another trainer, are compared as those of a sweep are."""

import json
import math
import shutil
from functools import partial

import pytest
from fixtures_design import study_of, trained_home
from imported import study_of as imported_study
from typer.testing import CliRunner

from ablations.cli import app
from ablations.errors import AblationsError
from ablations.home.started_sweep import read_sweep
from ablations.imports.orders import Foreign
from ablations.logs.meaning import LogMeaning
from ablations.tracking.push_missing import push_sweep

NAMED = ["--score", "pass_rate", "--compute", "gpu_hours", "--reference", "plain"]
RATES = {0: 0.58, 1: 0.61, 2: 0.64}
"""The ceiling of the run with each seed."""


class Logged:
    """An experiment of a launcher whose runs are nested and begun again; they begin in the order in which they are
    logged."""

    def __init__(self, store, name):
        from mlflow import MlflowClient

        self.uri, self.name = f"sqlite:///{store}", name
        self.client = MlflowClient(self.uri)
        self.experiment = self.client.create_experiment(name)
        self.begun = 0

    def log(self, name, *, ceiling=None, parent="", status="FINISHED", num=31, num_of=None, params=None, **tags):
        """A run with a curve of `num` readings, or without where there is no ceiling; gives its id."""
        from mlflow.entities import Metric, Param

        self.begun += 1
        told = {**tags, **({"mlflow.parentRunId": parent} if parent else {})}
        run = self.client.create_run(self.experiment, start_time=self.begun, run_name=name, tags=told).info.run_id
        metrics = [
            Metric(metric, hours if metric == "gpu_hours" else rate(hours, ceiling), 1, step)
            for metric, number in (num_of or {"pass_rate": num, "gpu_hours": num}).items()
            for step, hours in enumerate(range(number if ceiling else 0))
        ]
        self.client.log_batch(run, metrics, [Param(*pair) for pair in (params or {}).items()])
        if status == "RUNNING":
            self.client.update_run(run, status)
        else:
            self.client.set_terminated(run, status)
        return run

    def study(self, *, seed="seed", score="pass_rate", compute="gpu_hours", **of_meaning):
        meaning = LogMeaning(score=score, compute=compute, **of_meaning)
        naming = {} if seed is None else {"seed": seed}
        return imported_study(Foreign(names=(self.name,), meaning=meaning, naming=naming, mlflow=self.uri))


def rate(hours, ceiling):
    """A curve that rises to its ceiling, with a little that no curve has."""
    rises = (ceiling - 0.2) / (1 + (8 / hours) ** 1.9) if hours else 0.0
    return 0.2 + rises + 0.002 * math.sin(7 * hours + 100 * ceiling)


@pytest.fixture
def launched(store, request):
    """An experiment of its own in the same store."""
    return Logged(store.removeprefix("sqlite:///"), request.node.name)


@pytest.fixture(scope="module")
def store(tmp_path_factory, empty_store):
    """A store with an experiment of another trainer, not all of whose runs can be read."""
    logged = Logged(shutil.copy(empty_store, tmp_path_factory.mktemp("store") / "other.db"), "grpo")
    log = partial(logged.log, num=41)
    log("a", ceiling=0.60, params={"loss": "plain"})
    log("b", ceiling=0.61, params={"loss": "plain"}, status="FAILED")
    log("c", ceiling=0.50, loss="dapo")
    log("short", ceiling=0.51, params={"loss": "dapo"}, num_of={"pass_rate": 41, "gpu_hours": 40})
    log("nameless", ceiling=0.5, params={"los": "dapo"})
    log("without hours", ceiling=0.5, params={"loss": "dapo"}, num_of={"pass_rate": 41})
    return logged.uri


def platform(*arguments: str) -> str:
    result = CliRunner().invoke(app, [*arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def compare(home, *arguments: str, options=("--json",)) -> str:
    """The comparison of an experiment that is imported with these arguments."""
    platform("import", *arguments, "--as", "mine", "--home", str(home))
    return platform("compare", "mine", *options, "--home", str(home))


def refused(*arguments: str) -> str:
    return str(CliRunner().invoke(app, ["import", *arguments]).exception)


def test_a_sweep_that_was_pushed_is_compared_from_mlflow_as_from_its_folder(tmp_path, empty_store):
    # Its recipes can be read, so that it is known which runs begin alike.
    home = trained_home(tmp_path, study_of(tmp_path / "study", name="loo", seeds="[0, 1]"))
    uri = f"sqlite:///{shutil.copy(empty_store, tmp_path / 'mlflow.db')}"
    assert push_sweep(read_sweep(home, "loo"), uri).rows_left == 0
    ours = json.loads(platform("compare", "loo", "--home", str(home.path), "--json"))
    named = ["--score", "eval/pass_rate", "--compute", "eval/compute_gpu_hours", "--samples", "eval/num_samples"]
    told = ["--variant", "ablations.variant", "--seed", "seed", "--reference", "scalerl"]
    told += ["--ceiling", "0.73"]  # what the task of scale smoke allows
    theirs = json.loads(compare(home.path, "loo", "--mlflow", uri, *named, *told))
    by_name = {line["curve"]: line for line in theirs["variants"]}
    assert len(by_name) == 2
    for line in ours["variants"]:
        unknown_there = {"hours": None, "overrides": {}}
        assert by_name[line["curve"]] | {"hours": None} == line | unknown_there


def test_variants_are_told_by_a_param_or_tag_and_what_cannot_be_read_is_said(store, tmp_path):
    found = json.loads(compare(tmp_path, "grpo", "--mlflow", store, *NAMED, "--variant", "loss"))
    assert [(line["curve"], line["num_seeds"], line["cost"]) for line in found["variants"]] == [
        ("plain", 2, 80.0),
        ("dapo", 2, 79.0),
    ]
    assert found["variants"][1]["ceiling_verdict"] == "ceiling down"
    assert found["variants"][1]["ceiling_difference"] == pytest.approx(-0.1, abs=0.01)
    assert found["reasons"] == []
    nameless, without = found["notes"]
    assert nameless.startswith(
        "MLflow's run 'nameless' is left out: --variant: the run has no param or tag 'loss'; did you"
    )
    assert without.startswith("MLflow's run 'without hours' is left out: --compute: no column 'gpu_hours'; ")


def test_the_table_warns_of_runs_that_failed_and_of_readings_without_compute(store, tmp_path):
    named = ["grpo", "--mlflow", store, *NAMED, "--variant", "loss"]
    said = " ".join(compare(tmp_path, *named, options=["--explain"]).split())
    assert said.startswith("mine, 4 runs")
    assert "C_mid and cost: gpu_hours." in said
    assert "plain-s1: its status in MLflow is FAILED." in said
    assert "dapo-s1: 1 of 41 evaluations have no compute at their step." in said


def test_compute_may_be_the_step_and_samples_a_number(store, tmp_path):
    named = ["--score", "pass_rate", "--compute", "step", "--variant", "loss", "--reference", "plain"]
    found = json.loads(compare(tmp_path, "grpo", "--mlflow", store, *named, "--samples", "16000"))
    assert found["variants"][0]["window"] == [1, 40]
    assert found["variants"][1]["num_seeds"] == 3


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["grp", *NAMED], "no experiment 'grp'; did you mean 'grpo'?"),
        (["grpo"], "--score and --compute missing; name columns, or the trainer with --log"),
        (["grpo", "other", *NAMED], "--mlflow: found 2 names; name one experiment of MLflow"),
        (["grpo", *NAMED], "has no readable run"),
        (["grpo", *NAMED, "--variant", "loss", "--seed", "loss"], "--seed: found seed 'plain'; a seed is"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_names_there_are(store, tmp_path, options, said):
    assert said in refused(*options, "--mlflow", store, "--home", str(tmp_path / "home"))
    assert not (tmp_path / "home" / "sweeps" / options[0]).exists()


def test_a_store_that_is_not_there_is_not_made_and_escapes_are_named(tmp_path):
    path = tmp_path / "none.db"
    home = ["--home", str(tmp_path / "home")]
    assert f"there is no file {path}" in refused("x", "--mlflow", f"sqlite:///{path}", *NAMED, *home)
    said = refused("x", "--mlflow", f"sqlite:///{tmp_path}/runs%20a/mlflow.db", *NAMED, *home)
    assert said.endswith(f"there is no file {tmp_path}/runs a/mlflow.db; in a URL ? is %3F and % is %25")
    assert not [*tmp_path.rglob("*.db")]


@pytest.mark.parametrize("seed", ["seed", None])
def test_a_parent_that_holds_the_mean_of_its_seeds_is_no_seed(launched, seed):
    parent = launched.log("plain", ceiling=0.61, variant="plain")
    seeds = [launched.log(f"plain-{one}", ceiling=RATES[one], parent=parent, seed=str(one)) for one in RATES]
    study = launched.study(seed=seed)
    assert [run.place for run in study.runs] == seeds
    assert study.notes == (
        "Parents of other runs in MLflow are left out, since they may hold the mean of their children: plain.",
    )


def test_parents_of_parents_are_none_either_and_one_without_metrics_is_not_worth_a_note(launched):
    above = launched.log("all", ceiling=0.6, variant="plain")
    parent = launched.log("plain", ceiling=0.61, parent=above)
    seeds = [launched.log(f"plain-{one}", ceiling=RATES[one], parent=parent, seed=str(one)) for one in RATES]
    other = launched.log("group", parent=launched.log("groups"), variant="other")
    seeds.append(launched.log("other-0", ceiling=0.6, parent=other, seed="0"))
    study = launched.study()
    assert [(run.variant, run.place) for run in study.runs] == list(zip(["plain"] * 3 + ["other"], seeds, strict=True))
    (note,) = study.notes
    assert note.endswith("of their children: all, plain.")


def test_a_parent_whose_children_have_no_such_metric_is_the_run(launched):
    run = launched.log("trained", ceiling=0.6, variant="plain", seed="0")
    launched.log("its profile", parent=run, variant="plain", seed="0")
    study = launched.study()
    assert [one.place for one in study.runs] == [run]
    assert study.notes == (
        "MLflow's run 'its profile' is left out: --score: no column 'pass_rate'; columns are: step.",
    )


def test_a_parent_of_children_that_were_deleted_still_holds_their_mean(launched):
    parent = launched.log("plain", ceiling=0.61, variant="plain", seed="7")
    child = launched.log("plain-0", ceiling=0.6, parent=parent, seed="0")
    other = launched.log("plain-1", ceiling=0.6, variant="plain", seed="1")
    launched.client.delete_run(child)
    study = launched.study()
    assert [run.place for run in study.runs] == [other]
    assert study.notes[0].endswith("of their children: plain.")


def test_a_child_of_a_parent_that_was_deleted_or_is_elsewhere_is_a_run(launched):
    parent = launched.log("gone", ceiling=0.61, variant="plain")
    elsewhere = Logged(launched.uri.removeprefix("sqlite:///"), "other").log("other", variant="plain")
    runs = [launched.log("a", ceiling=0.6, parent=parent, seed="0")]
    runs.append(launched.log("b", ceiling=0.6, parent=elsewhere, variant="plain", seed="1"))
    launched.client.delete_run(parent)
    study = launched.study()
    assert [run.place for run in study.runs] == runs
    assert study.notes == ()


@pytest.mark.parametrize(
    ("tries", "used", "warnings"),
    [
        # a script that crashed at step 12 of 90 outside `with` is FINISHED for MLflow
        ([("FINISHED", 91), ("FINISHED", 13)], 0, ()),
        ([("FINISHED", 13), ("FINISHED", 91)], 1, ()),
        ([("KILLED", 60), ("FINISHED", 13), ("RUNNING", 30)], 0, ("its status in MLflow is KILLED",)),
        ([("FAILED", 31), ("FINISHED", 31), ("FINISHED", 31), ("KILLED", 31)], 2, ()),
        ([("KILLED", 31), ("RUNNING", 31)], 1, ("its status in MLflow is RUNNING",)),
        ([("FAILED", 201), ("FINISHED", 200)], 1, ()),  # within a hundredth
    ],
)
def test_the_attempt_with_the_most_compute_counts_and_it_is_said_how_far_each_came(launched, tries, used, warnings):
    ids = [
        launched.log(f"try {number}", ceiling=0.6, variant="plain", seed="0", status=state, num=num)
        for number, (state, num) in enumerate(tries)
    ]
    study = launched.study()
    assert [(run.place, run.warnings) for run in study.runs] == [(ids[used], warnings)]
    told = [f"{ids[number]} ({state}, {num - 1} gpu_hours)" for number, (state, num) in enumerate(tries)]
    others = ", ".join(one for number, one in enumerate(told) if number != used)
    assert study.notes == (
        f"plain, seed 0, has {len(tries)} attempts in MLflow: {told[used]} is used, which came furthest; "
        f"left out: {others}.",
    )


def test_an_attempt_that_was_deleted_or_has_no_readings_is_none(launched):
    finished = launched.log("a", ceiling=0.6, variant="plain", seed="0")
    launched.client.delete_run(launched.log("b", ceiling=0.7, variant="plain", seed="0"))
    launched.log("empty", variant="plain", seed="0")
    study = launched.study()
    assert [run.place for run in study.runs] == [finished]
    assert [note.partition(":")[0] for note in study.notes] == ["MLflow's run 'empty' is left out"]


def test_of_thousands_of_values_all_are_read(launched):
    from mlflow.entities import Metric

    run = launched.log("long", variant="plain", seed="0")
    for first in range(0, 3000, 1000):
        steps = range(first, first + 1000)
        launched.client.log_batch(run, metrics=[Metric("perf/step_s", 2.0, step, step + 1) for step in steps])
    launched.client.log_batch(run, metrics=[Metric("acc", 0.4, 1, step) for step in (1500, 3000)])
    (found,) = launched.study(score="acc", compute="cumsum(perf/step_s) * 8 / 3600").runs
    assert found.curve.compute.tolist() == pytest.approx([3000 * 8 / 3600, 6000 * 8 / 3600])
    assert found.warnings == ()


def test_a_history_of_which_the_server_sends_only_the_first_page_is_refused(launched, monkeypatch):
    """A server that gives no token for the next page, as some do, is a store whose history is cut."""
    from mlflow import MlflowClient

    launched.log("long", ceiling=0.6, variant="plain", seed="0")
    whole = MlflowClient.get_metric_history
    monkeypatch.setattr(MlflowClient, "get_metric_history", lambda *asked: whole(*asked)[:10])
    with pytest.raises(AblationsError) as raised:
        launched.study()
    assert "the history of 'pass_rate' is incomplete: MLflow sent 10 values without the latest, 0.5" in str(
        raised.value
    )


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (
            [0, 1, 2, 3, 2, 3, 4],
            "attempt 1 reached step 3 and attempt 2 goes on at 2, so 2 rows after step 1 of attempts before it are "
            "left out",
        ),
        ([0, 1, 2, 3, 0, 1], "the steps begin again at 0 after 3, and end at 1: two runs are in one log"),
        ([0, 0, 0], "all 3 values of pass_rate are at step 0, as if no step was logged"),
    ],
)
def test_values_are_in_the_order_in_which_they_were_logged(launched, steps, said):
    run = launched.log("dapo", variant="dapo", seed="1")
    for number, step in enumerate(steps):
        launched.client.log_metric(run, "pass_rate", number / 100, timestamp=number + 1, step=step)
    if "attempt" in said:
        (found,) = launched.study(compute="step").runs
        assert (found.curve.score.tolist(), found.warnings) == ([0.0, 0.01, 0.04, 0.05, 0.06], (said,))
    else:
        with pytest.raises(AblationsError, match=said):
            launched.study(compute="step")


def test_the_names_of_a_trainer_are_known_in_mlflow_too(launched):
    from mlflow.entities import Metric

    run = launched.log("dapo", variant="dapo", seed="1")
    rows = [("timing/step", 3600.0, step) for step in range(1, 5)] + [("eval/all/avg_score", 0.3, 2)]
    launched.client.log_batch(run, metrics=[Metric(name, value, 1, step) for name, value, step in rows])
    study = launched.study(score=None, compute=None, trainer="skyrl", gpus=8.0)
    assert study.sweep.plan.compute_name == "GPU-hours"
    assert study.runs[0].curve.compute.tolist() == [16.0]


def test_nan_in_mlflow_is_left_out_and_said(launched):
    run = launched.log("a", ceiling=0.6, params={"variant": "a", "seed": "0"})
    launched.client.log_metric(run, "pass_rate", math.nan, timestamp=2, step=31)
    (one,) = launched.study().runs
    assert one.curve.score.size == 31
    assert one.warnings == ("pass_rate was logged as NaN 1 time; these values are left out",)


@pytest.mark.parametrize("metric", ["pass_rate", "gpu_hours"])
def test_infinity_which_mlflow_stores_as_the_largest_number_is_refused_as_infinity(launched, metric):
    """mlflow 3.17.2: infinity comes back as 1.797e308, which as a finite number would be the compute of a reading."""
    counts = {name: 30 if name == metric else 31 for name in ("pass_rate", "gpu_hours")}
    run = launched.log("a", ceiling=0.6, variant="a", seed="0", num_of=counts)
    launched.client.log_metric(run, metric, math.inf, timestamp=2, step=30)
    assert launched.client.get_metric_history(run, metric)[-1].value == pytest.approx(1.797e308, rel=1e-3)
    said = "score is inf" if metric == "pass_rate" else "compute is inf"
    with pytest.raises(AblationsError, match=said):
        launched.study()


@pytest.mark.parametrize("values", [(0.4, math.nan), (math.nan, 0.4)])
def test_of_two_values_at_one_step_and_time_the_number_counts_and_not_nan(launched, values):
    """mlflow 3.17.2 itself compares NaN as 0, so its latest value is .4 in both orders."""
    run = launched.log("a", ceiling=0.6, variant="a", seed="0", num_of={"pass_rate": 30, "gpu_hours": 31})
    for value in values:
        launched.client.log_metric(run, "pass_rate", value, timestamp=1, step=30)
    (found,) = launched.study().runs
    assert found.curve.score[-1] == 0.4
    assert found.warnings == ("pass_rate was logged as NaN 1 time; these values are left out",)
