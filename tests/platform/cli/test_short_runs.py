"""One failed, cancelled or short run, of a variant and of the reference, in a study and in logs: levels stay where they
were, or their compute is said, in every output."""

import csv
import io
import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from curves import eq1, measured
from dashboard.app_pages import html_of, messages, open_page
from fixtures_home import settled
from generated_home import NAME, Size, end_early, write_home
from imported import compared, logs_named
from typer.testing import CliRunner

from ablations.cli import app
from ablations.findings.advice import next_steps
from ablations.findings.results import Results, open_sweep, read_results
from ablations.home.home import Home
from ablations.home.started_sweep import StartedSweep, read_sweep
from ablations.home.stops import STOPS_FILE, Stopped
from ablations.imports.orders import Foreign
from ablations.logs.meaning import LogMeaning
from ablations.report.documents.comparison import brief_notes, report_document
from ablations.report.documents.comparison_tables import comparison_table, paper_numbers
from ablations.report.documents.headline import headline
from ablations.report.formats import report_page
from ablations.report.writers.csv_files import csv_files, sheet_text
from ablations.report.writers.latex import latex_table
from ablations.report.writers.markdown import markdown_document
from ablations.study.sweep import Stop
from ablations.tracking import push_missing
from ablations.tracking.sortable import numbers_of_variant, verdicts_of_variant

NOW = datetime(2026, 11, 28, tzinfo=UTC)
BUDGET, EARLY = 1875.0, 750.0
MESSAGES = {"failed": "RuntimeError: CUDA out of memory", "cancelled": "", "done": ""}
LAWS = {
    "scalerl": {"A": 0.65, "B": 1.8, "C_mid": 300.0},
    "quick": {"A": 0.63, "B": 1.8, "C_mid": 150.0},
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> StartedSweep:
    """Three variants of three seeds, all of which reached their budget."""
    path = tmp_path_factory.mktemp("home") / "runs"
    sweep = settled(write_home(path, Size(variants=3, seeds=3, evaluations=25, metrics=11)))
    read_results(sweep)
    return sweep


def damaged(
    whole: StartedSweep, path: Path, variant: str, state: str, seeds: tuple[int, ...] = (1,), end: float = EARLY
) -> StartedSweep:
    """A copy in which these seeds of a variant ended at 40 % of the budget."""
    shutil.copytree(whole.home.path, path)
    sweep = read_sweep(Home(path), NAME)
    for one in sweep.plan.variants:
        for run in one.runs:
            if one.name == variant and run.seed in seeds:
                end_early(sweep.run(run.id), end, state, MESSAGES[state])
    return settled(sweep)


def printed(*arguments: str | Path) -> str:
    result = CliRunner(env={"COLUMNS": "300"}).invoke(app, ["compare", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def one_line(text: str) -> str:
    return " ".join(text.split())


def outputs(sweep: StartedSweep, variant: str) -> Iterator[tuple[str, str]]:
    """What every output says of a variant, as text."""
    results = open_sweep(NAME, sweep.home.path)
    yield "terminal", one_line(printed(NAME, "--home", sweep.home.path))
    yield "headline", " ".join(headline(results))
    yield "page of the report", report_page(results, now=NOW)
    yield "Markdown", markdown_document(report_document(results, now=NOW))
    yield "LaTeX", latex_table(paper_numbers(results))
    yield "notebook", results._repr_html_()
    yield "MLflow's tags", json.dumps(verdicts_of_variant(results, variant))


def line_of(data: dict, variant: str) -> dict:
    return next(line for line in data["variants"] if line["curve"] == variant)


def levels(data: dict) -> dict[str, float]:
    return {line["curve"]: line["level_difference"] for line in data["variants"]}


@pytest.mark.parametrize("state", list(MESSAGES))
@pytest.mark.parametrize("place", ["variant", "reference"])
def test_a_short_run_of_a_study_is_left_out_and_every_output_says_so(tmp_path, whole, place, state):
    before = open_sweep(NAME, whole.home.path).to_json()
    name = [one.name for one in whole.plan.variants][0 if place == "reference" else 1]
    sweep = damaged(whole, tmp_path / "runs", name, state)
    for where, text in outputs(sweep, name):
        assert "2 of 3" in text, where
    results = open_sweep(NAME, sweep.home.path)
    data = results.to_json()
    assert levels(data) == pytest.approx(levels(before), abs=0.01)
    assert {line["level_compute"] for line in data["variants"]} == {data["level_compute"]} == {BUDGET}
    counted = {line["curve"]: (line["num_counting"], line["num_runs"]) for line in data["variants"]}
    assert counted == {line["curve"]: (2 if line["curve"] == name else 3, 3) for line in data["variants"]}
    assert [run["curve"] for run in data["runs"] if not run["counts"]] == [f"{name}-s1"]
    (row,) = [row for row in csv.DictReader(io.StringIO(csv_files(results)["comparison.csv"].decode()))
              if row["variant"] == name]  # fmt: skip
    assert (row["num_counting"], row["num_runs"], row["level_compute"]) == ("2", "3", "1875.0")
    numbers = numbers_of_variant(results, name)
    assert (numbers["level_compute"], numbers["num_seeds"]) == (BUDGET, 2)
    (remark,) = [one for one in results.remarks if one.kind == "ended early"]
    how = {"failed": "failed", "cancelled": "was cancelled", "done": "ended"}[state]
    assert remark.text == f"{name}: 1 of 3 seeds ended early (seed 1 {how} at 750 GPU-hours) and does not count."
    failed = f"{name}: 1 of 3 seeds failed (seed 1 at 750 of 1,875 GPU-hours: {MESSAGES['failed']}). It does not count."
    shown, other = (failed, remark.text) if state == "failed" else (remark.text, failed)
    terminal = one_line(printed(NAME, "--home", sweep.home.path))
    assert shown in terminal
    assert other not in terminal
    assert terminal.count("failed 1 of 3") == (state == "failed")
    assert terminal.count("ended early 1 of 3") == (state == "cancelled")
    assert shown in report_page(results, now=NOW)


def test_a_run_that_a_rule_stopped_counts_for_the_ceiling_and_is_no_error(tmp_path, whole):
    name = whole.plan.variants[1].name
    cancelled = damaged(whole, tmp_path / "runs", name, "cancelled")  # what the trainer writes if a rule stops it
    rules = Stop(gain_below=0.01).model_dump()
    (run_id,) = [run.id for run in cancelled.plan.variants[1].runs if run.seed == 1]
    stop = Stopped(
        run=run_id, variant=name, seed=1, rule="gain", ends_run=True, value=0.95, compute_gpu_hours=EARLY,
        num_readings=10, A_lo=0.58, A_hi=0.62, budget_gpu_hours=BUDGET, stop=rules,
    )  # fmt: skip
    (cancelled.folder / STOPS_FILE).write_text(json.dumps({"runs": [asdict(stop)]}))
    results = read_results(replace(cancelled, plan=replace(cancelled.plan, stop=rules)))
    assert len(results.variant(name).fits) == 3
    assert results.variant(name).num_counting == 2
    (remark,) = [one for one in results.remarks if one.kind == "ended early"]
    assert remark.text == (
        f"{name}: 1 of 3 seeds ended early (seed 1 was stopped at 750 GPU-hours) and does not count for the level."
    )
    assert remark.weight == "warning"
    assert "ended early" not in results.verdicts(name)


def again(sweep: StartedSweep) -> str:
    """The command for the home folder that the runs were copied into."""
    file = sweep.plan.command.split()[2]
    return f"`platform sweep {file} --home {sweep.home.path}`"


def test_why_levels_are_read_early_is_not_put_down_to_runs_that_went_on_a_little(tmp_path, whole):
    sweep = whole
    for number, (end, seeds) in enumerate([(900.0, (0, 1, 2)), (825.0, (1,))]):
        for one in whole.plan.variants:
            sweep = damaged(sweep, tmp_path / f"{number}-{one.name}", one.name, "failed", seeds, end)
    # All came to 900 but for three that failed at 825, where all are read.
    results = read_results(sweep)
    (remark,) = [one for one in results.remarks if one.kind == "read early"]
    assert remark.text == (
        "Levels are read at 825 of 1,875 modelled GPU-hours; fewer than half of the runs got much farther."
    )
    assert next_steps(results) == [f"{again(sweep)} continues {len(results.runs)} runs, which failed."]


@pytest.mark.parametrize("place", ["variant", "reference"])
def test_if_every_run_of_one_side_ended_early_the_compute_stands_at_every_number(tmp_path, whole, place):
    names = [one.name for one in whole.plan.variants]
    name = names[0 if place == "reference" else 1]
    sweep = damaged(whole, tmp_path / "runs", name, "failed", seeds=(0, 1, 2))
    results = open_sweep(NAME, sweep.home.path)
    for where, text in outputs(sweep, names[1]):
        assert "at 750" in text, where
    data = results.to_json()
    assert data["level_compute"] == (EARLY if place == "reference" else BUDGET)
    assert line_of(data, names[1])["level_compute"] == numbers_of_variant(results, names[1])["level_compute"] == EARLY
    assert line_of(data, names[2])["level_compute"] == data["level_compute"]
    if place == "variant":
        level = results.compared(name).answers["level"]
        assert level.cell.endswith("] at 750")
        assert not level.is_held
        assert name not in headline(results)[0]
        assert f"{name} has not reached 1,875 modelled GPU-hours: " in " ".join(headline(results))
        assert next_steps(results)[0] == f"{again(sweep)} continues 3 runs, which failed."
        assert not any(f"{level.cell}*" in text for _, text in outputs(sweep, name))
        assert data["leader"]["variant"] != name
        assert name not in (data["leader"]["runner_up"], *data["leader"]["not_ruled_out"])
    else:
        assert "in pass rate at 750 of 1,875 modelled GPU-hours" in headline(results)[0]


def test_the_page_says_which_run_does_not_count(tmp_path, whole, monkeypatch):
    name = whole.plan.variants[1].name
    sweep = damaged(whole, tmp_path / "runs", name, "cancelled")
    page = open_page(monkeypatch, sweep.home.path, "compare", sweep=NAME)
    shown = "".join([html_of(page), messages(page), *(one.value for one in page.markdown)]).replace("\\", "")
    assert f"{name} counts with 2 of 3 seeds." in shown
    assert f"{name}: 1 of 3 seeds ended early" in shown


def test_the_curve_of_a_variant_in_mlflow_goes_to_the_end_of_those_that_count(
    tmp_path, whole, empty_store, monkeypatch
):
    for name in ("curves_picture", "differences_picture"):
        monkeypatch.setattr(push_missing, name, lambda *_, **__: b"a picture")
    monkeypatch.setattr(push_missing, "report_page", lambda *_, **__: "a report")
    name = whole.plan.variants[1].name
    sweep = damaged(whole, tmp_path / "runs", name, "failed")
    shutil.copy(empty_store, sweep.home.path / "mlflow.db")
    push_missing.push_sweep(sweep, None)
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{sweep.home.path / 'mlflow.db'}")
    (experiment,) = [one for one in client.search_experiments() if one.name != "Default"]
    runs = client.search_runs([experiment.experiment_id])
    (run,) = [one for one in runs if one.data.tags["kind"] == "variant" and one.data.tags["variant"] == name]
    assert (run.data.tags["seeds_counting"], run.data.metrics["level_compute"]) == ("2 of 3", BUDGET)
    assert client.get_metric_history(run.info.run_id, "eval/compute_gpu_hours")[-1].value == BUDGET


def log_of(path: Path, variant: str, seed: int, end: float) -> Path:
    """A log of JSON lines with an evaluation every 60 hours."""
    compute = np.arange(0.0, 1801.0, 60.0)
    score = measured(eq1(compute, **LAWS[variant]), 10 * list(LAWS).index(variant) + seed, sd=0.003)
    rows = [row for row in zip(compute.tolist(), score.tolist(), strict=True) if row[0] <= end]
    file = path / f"{variant}-s{seed}.jsonl"
    file.write_text("".join(json.dumps({"hours": C, "score": R}) + "\n" for C, R in rows))
    return file


def as_csv(logs: list[Path], path: Path) -> Path:
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["curve", "seed", "compute", "score"])
        for log in logs:
            variant, _, seed = log.stem.rpartition("-s")
            rows = map(json.loads, log.read_text().splitlines())
            out.writerows([variant, seed, row["hours"], row["score"]] for row in rows)
    return path


def compared_logs(path: Path, home: Path, name: str = "", end: float = 1e9, damage: str = "short") -> Results:
    """The comparison of two variants of three seeds, of which seed 2 of `name` ended early.

    A run that failed while it wrote leaves half a row; one that was cancelled does not; the third is in a table.
    """
    path.mkdir()
    logs = [
        log_of(path, variant, seed, end if (variant, seed) == (name, 2) else 1e9)
        for variant in LAWS
        for seed in range(3)
    ]
    if damage == "short":
        return compared(Foreign(names=(str(as_csv(logs, path / "curves.csv")),)), home, "scalerl")
    if damage == "failed":
        file = path / f"{name}-s2.jsonl"
        file.write_text(f'{file.read_text()}{{"hours": 75')
    return compared(logs_named(logs, LogMeaning(score="score", compute="hours")), home, "scalerl")


@pytest.fixture(scope="module")
def whole_logs(tmp_path_factory) -> dict[str, float]:
    """The levels of logs that all go to their end."""
    path = tmp_path_factory.mktemp("logs")
    return levels(compared_logs(path / "whole", path / "home").to_json())


@pytest.mark.parametrize(("damage", "end"), [("failed", 720.0), ("cancelled", 1020.0), ("short", 480.0)])
@pytest.mark.parametrize("name", ["quick", "scalerl"])
def test_a_short_log_is_left_out_and_every_output_says_so(tmp_path, whole_logs, name, damage, end):
    results = compared_logs(tmp_path / "logs", tmp_path / "home", name, end, damage)
    data = results.to_json()
    assert levels(data) == pytest.approx(whole_logs, abs=0.01)
    line = line_of(data, name)
    assert (line["num_counting"], line["num_runs"], line["level_compute"], data["level_compute"]) == (2, 3, 1800, 1800)
    assert [run["curve"] for run in data["runs"] if not run["counts"]] == [f"{name}-s2"]
    (remark,) = [one for one in data["remarks"] if one["kind"] == "ended early"]
    unit = "compute" if damage == "short" else "hours"
    assert remark["text"] == f"{name}: 1 of 3 seeds ended early (seed 2 ends at {end:,g} {unit}) and does not count."
    assert remark["text"] in brief_notes(results)
    assert any(name in row[0].text and row[1].text == "2 of 3" for row in comparison_table(results).rows)
    assert f"{name} counts with 2 of 3 seeds." in headline(results)
    (row,) = [one for one in csv.DictReader(io.StringIO(sheet_text(results.rows()))) if one["variant"] == name]
    assert (row["num_counting"], row["num_runs"], row["level_compute"]) == ("2", "3", "1800.0")
    assert f"{name} & 2 of 3 & " in latex_table(paper_numbers(results))
    assert "\nvariant & seeds & $" in latex_table(paper_numbers(results))


def test_unreadable_logs_count_among_the_seeds_and_are_named_once(tmp_path):
    logs = [log_of(tmp_path, variant, seed, 1e9) for variant in LAWS for seed in range(3)]
    empty, broken = logs[-2:]
    empty.write_text("")
    broken.write_text("no JSON at all\n{\n")
    (tmp_path / "notes.jsonl").write_text("what I tried on Monday\n")  # no run of any variant
    given = [str(tmp_path / "notes.jsonl"), *map(str, logs)]
    results = compared(logs_named(given, LogMeaning(score="score", compute="hours")), tmp_path / "home")
    assert [(one.name, one.num_counting, len(one.runs)) for one in results.variants] == [
        ("scalerl", 3, 3),
        ("quick", 1, 3),
    ]
    assert "quick counts with 1 of 3 seeds." in headline(results)
    said = results.to_json()
    named = [[sum(str(path) in one for one in said[key]) for path in (empty, broken, Path(given[0]))]
             for key in ("reasons", "notes")]  # fmt: skip
    # Runs of a variant have a reason; a log of none is left out.
    assert named == [[1, 1, 0], [0, 0, 1]]
