"""Nine logs in five forms become one sweep, on which every command and every page of a sweep works."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from dashboard.app_pages import figures_of, html_of, messages, open_page
from nine_logs import CEILINGS, EVERY, GPUS, SCORE, STEPS, hours, import_ladder, import_nine, run, write, write_nine
from typer.testing import CliRunner

from ablations.cli import app
from ablations.home.home import Home
from ablations.home.source import source_of
from ablations.home.started_sweep import read_sweep
from scalerl.durable import file_sha256


@pytest.fixture(scope="module")
def logs(tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("logs") / "runs"
    folder.mkdir()
    return write_nine(folder)


@pytest.fixture(scope="module")
def home(tmp_path_factory, logs) -> Path:
    path = tmp_path_factory.mktemp("home")
    import_nine(path, logs)
    return path


def test_an_import_that_is_killed_before_it_has_a_plan_is_done_again(logs, tmp_path):
    killed = "import os; from ablations.imports import import_runs as it; it._planned = lambda *_: os._exit(9); "
    arguments = ["import", str(logs[0]), "--log", "verl", "--gpus", str(GPUS), "--as", "one", "--home", str(tmp_path)]
    command = f"{killed} from ablations.cli import app; app({arguments!r})"
    assert subprocess.run([sys.executable, "-c", command], check=False).returncode == 9
    assert len(list((tmp_path / "runs").glob("*/metrics.jsonl"))) == 1
    assert "sweep 'one' with 1 run" in run(tmp_path, *arguments[:-2])


def test_all_forms_give_the_numbers_that_were_written_and_say_where_they_come_from(home, logs):
    sweep = read_sweep(Home(home), "mine")
    assert [(one.name, [run.seed for run in one.runs]) for one in sweep.plan.variants] == [
        (name, [0, 1, 2]) for name in CEILINGS
    ]
    found = json.loads(run(home, "compare", "mine", "--json"))
    lines = {line["curve"]: line for line in found["variants"]}
    assert {name: line["A"] for name, line in lines.items()} == pytest.approx(CEILINGS, abs=0.01)
    assert [lines[name]["level_verdict"] for name in CEILINGS] == ["level up", "reference", "level down"]
    assert all(one["cost_gpu_hours"] == pytest.approx(hours(STEPS)) for one in found["runs"])
    of_paths = {Path(one).stem: one for one in map(str, logs)}
    for variant in sweep.plan.variants:
        for one in variant.runs:
            source = source_of(sweep.run(one.id))
            assert source is not None
            assert of_paths[f"{variant.name}-s{one.seed}"] in source.files[0].path
            assert source.reader == "verl"
            assert source.files[0].sha256 == file_sha256(Path(source.files[0].path))


def test_the_answers_in_passing_are_those_of_the_import(home, logs, tmp_path):
    options = ("--log", "verl", "--gpus", str(GPUS), "--reference", "dapo", "--json")
    passing = json.loads(run(tmp_path, "compare", *map(str, logs), *options))
    assert passing["variants"] == json.loads(run(home, "compare", "mine", "--json"))["variants"]
    assert [*tmp_path.iterdir()] == [tmp_path / "curves"]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("compare", "mine", "--explain"), "C_mid and cost: GPU-hours"),
        (("list",), "mine"),
        (("status", "mine"), "9 done; 100% of the compute"),
        (("show", "mine"), "cispo"),
        (("fit", "mine"), "cispo-s2"),
        (("forecast", "mine", "--budget", "2x"), "every run at"),
        (("forecast", "mine", "--backtest"), "forecasts of the last 3 evaluations"),
        (("doctor", "mine"), "dapo-s1, 200 steps: nothing found"),
        (("design", "mine"), "smallest detectable difference, by design"),
        (("report", "mine"), "report.html"),
        (("report", "mine", "--format", "md"), "report.md"),
        (("report", "mine", "--format", "latex"), "report.tex"),
        (("report", "mine", "--format", "csv"), "report-csv"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
def test_every_command_works(home, command, said, monkeypatch):
    monkeypatch.setattr(
        "ablations.answers.simulated_runs.NUM_CURVES", 2
    )  # of a design, whose numbers are not looked at
    assert said in " ".join(run(home, *command).split())


def test_it_is_exported_sent_to_mlflow_and_deleted(home, tmp_path, empty_store):
    archive, other = tmp_path / "mine.tar.gz", tmp_path / "other"
    run(home, "export", "mine", "--to", str(archive))
    run(other, "import", str(archive), "--as", "theirs")
    theirs, mine = (
        json.loads(run(*one, "--json")) for one in ((other, "compare", "theirs"), (home, "compare", "mine"))
    )
    assert theirs["variants"] == mine["variants"]
    shutil.copy(empty_store, other / "mlflow.db")
    run(other, "sync", "theirs")
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{other / 'mlflow.db'}")
    (experiment,) = [one for one in client.search_experiments() if one.name == "theirs"]
    runs = client.search_runs([experiment.experiment_id], filter_string="tags.variant = 'cispo' and tags.seed = '1'")
    assert [len(client.get_metric_history(one.info.run_id, "eval/pass_rate")) for one in runs] == [STEPS // EVERY]
    run(other, "delete", "theirs", "--yes")
    assert [*other.glob("runs/*")] == []


def test_two_tables_of_one_study_are_a_ladder(tmp_path):
    import_ladder(tmp_path / "home", tmp_path)
    found = json.loads(run(tmp_path / "home", "ladder", "study", "--json"))
    assert [(one["scale"], one["parameters"]) for one in found["scales"]] == [("1e8", 1e8), ("1e9", 1e9)]
    (level,) = [one for one in found["differences"] if one["question"] == "level"]
    assert [rung["estimate"] for rung in level["rungs"]] == pytest.approx([0.02, 0.05], abs=0.003)


@pytest.mark.parametrize(
    ("page", "said"),
    [("sweeps", "highest pass rate"), ("compare", "cispo"), ("forecast", "cispo"), ("run", "cispo-s1"), ("paper", "")],
)
def test_every_page_shows_it(home, page, said, monkeypatch):
    query = {"run": read_sweep(Home(home), "mine").plan.variants[0].runs[1].id} if page == "run" else {}
    shown = open_page(monkeypatch, home, page, sweep="mine", **query)
    text = (
        html_of(shown)
        + messages(shown)
        + "".join(str(one.value) for one in (*shown.markdown, *shown.title, *shown.caption))
    )
    assert said in text + "".join(json.dumps(one) for one in figures_of(shown))
    assert not shown.error


def test_a_log_that_has_grown_and_a_new_run_are_added_and_nothing_of_ours_is_touched(tmp_path):
    (folder := tmp_path / "runs").mkdir()
    options = ("--log", "verl", "--gpus", str(GPUS))
    names = [("dapo", 0), ("grpo", 0)]
    paths = [write(folder, "jsonl", *name, steps=100) for name in names]
    run(tmp_path / "home", "import", *map(str, paths), *options)
    before = read_sweep(Home(tmp_path / "home"), "runs").plan
    write(folder, "jsonl", "dapo", 0, steps=120)
    new = write(folder, "csv", "grpo", 1, steps=100)
    said = run(tmp_path / "home", "import", str(paths[0]), str(new), *options)
    assert "with 3 runs, 1 new, 1 read again, 1 unchanged" in said
    after = read_sweep(Home(tmp_path / "home"), "runs").plan
    assert {run.id for run in before.runs} < {run.id for run in after.runs}
    found = json.loads(run(tmp_path / "home", "compare", "runs", "--json"))
    costs = {(one["variant"], one["seed"]): one["cost_gpu_hours"] for one in found["runs"]}
    assert costs == pytest.approx({("dapo", 0): hours(120), ("grpo", 0): hours(100), ("grpo", 1): hours(100)})
    refused = CliRunner().invoke(
        app,
        ["import", str(new), "--compute", "step", "--score", SCORE, "--as", "runs", "--home", str(tmp_path / "home")],
    )
    assert "counts compute in GPU-hours, not in steps; choose another name with --as" in str(refused.exception)
