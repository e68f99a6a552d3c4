"""`platform sweep` on a program of the user's own, from the file to the verdict."""

import json
import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from integration.conftest import kill_tree, start
from own_programs import write_study
from places import REPOSITORY
from waiting import wait_until

from scalerl.run.run_log import read_rows

CURVE = """
def right(step):
    rise = 0.6 * (1 - run.settings["rate"]) / (1 + (8 / step) ** 2) if step else 0.0
    return round(2000 * (0.2 + rise)) + 10 * run.seed + step % 3
go_on(run.budget / 10, pause=0.05, right=right)
"""
"""Eq. 1 with B 2, C_mid 80 and A 0.8 - 0.6 rate: 0.74 for the reference, 0.68 for the variant."""


def steps_by_run(home: Path) -> dict[str, list[int]]:
    return {path.parent.name: [row["step"] for row in read_rows(path)] for path in home.glob("runs/*/metrics.jsonl")}


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return write_study(tmp_path / "study", CURVE, budget="{compute: 300}")


@pytest.mark.studies
def test_a_killed_study_is_resumed_without_a_doubled_row_and_judged(platform, study, home):
    for due in (8, 50):
        process = start(home, "sweep", str(study))
        wait_until(lambda due=due: sum(map(len, steps_by_run(home).values())) >= due, f"{due} rows", process=process)
        kill_tree(process)
    printed = platform("sweep", str(study)).stdout
    assert list(steps_by_run(home).values()) == [list(range(31))] * 4
    assert "own, 300 tokens per run" in printed
    found = json.loads(platform("compare", "own", "--json").stdout)
    assert [one["A"] for one in found["variants"]] == pytest.approx([0.74, 0.68], abs=0.02)
    assert found["variants"][1]["level_verdict"] == "level down"
    status = json.loads(platform("status", "own", "--json", code=None).stdout)
    assert {(run["state"], run["compute_gpu_hours"]) for run in status["runs"]} == {("done", 300)}
    assert max(run["attempt"] for run in status["runs"]) > 1
    with closing(sqlite3.connect(home / "mlflow.db")) as store:
        params = set(store.execute("select distinct key, value from params"))
        assert store.execute("select count(*) from metrics where key like '%pass_rate%'").fetchone()[0] >= 4 * 31
    assert ("rate", "0.2") in params


@pytest.mark.studies
def test_a_larger_budget_extends_runs_and_what_is_read_of_them_works(platform, study, home):
    platform("sweep", str(study))
    platform("sweep", str(study), "--budget", "400")
    assert list(steps_by_run(home).values()) == [list(range(41))] * 4
    for command in (
        *(["status"], ["show"], ["show", "--variant", "rate=0.2"], ["fit", "own", "--explain"], ["forecast"]),
        *(["design", str(study)], ["report", "--format", "md"], ["logs", "rate=0.2"]),
        *(["sweep", str(study), "--dry-run"], ["paper"]),
    ):
        printed = platform(*command).stdout
        assert "Traceback" not in printed
        assert "scale" not in printed, f"{command} speaks of a scale, which a program has not:\n{printed}"


def test_a_cancelled_run_ends_its_program_and_the_same_command_goes_on(platform, study, home):
    study.write_text(study.read_text().replace("compute: 300", "compute: 100000").replace("[0, 1]", "[0]"))
    process = start(home, "sweep", str(study))
    wait_until(lambda: any(len(one) > 3 for one in steps_by_run(home).values()), "four rows", process=process)
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 3
    status = json.loads(platform("status", "own", "--json", code=None).stdout)
    assert {run["state"] for run in status["runs"]} <= {"cancelled", "pending"}
    study.write_text(study.read_text().replace("compute: 100000", "compute: 300"))
    platform("sweep", str(study))
    assert list(steps_by_run(home).values()) == [list(range(31))] * 2


@pytest.mark.studies
def test_the_study_that_is_shipped_finds_the_slower_learning_rate(platform, home):
    platform("sweep", str(REPOSITORY / "sweeps" / "command" / "bandit.yaml"))
    found = {one["curve"]: one for one in json.loads(platform("compare", "--json").stdout)["variants"]}
    assert found["learning_rate=0.05"]["level_verdict"] == "level down"
    assert found["bandit_settings"]["A_lo"] < 0.9 < found["bandit_settings"]["A_hi"] + 0.02  # the best arm pays 0.9


@pytest.mark.studies
def test_trl_resumes_from_its_own_checkpoints_without_a_doubled_row(platform, tmp_path, home):
    pytest.importorskip("trl", reason="TRL is a test extra: pip install trl==1.16.0", exc_type=ImportError)
    folder = shutil.copytree(REPOSITORY / "sweeps" / "trl", tmp_path / "trl")
    file = folder / "losses.yaml"
    text = file.read_text().replace("[dapo, cispo]", "[dapo]").replace("seeds: [0, 1]", "seeds: [0]")
    file.write_text(text.replace("compute: 60", "compute: 28"))
    process = start(home, "sweep", str(file))
    wait_until(lambda: any(len(one) > 2 for one in steps_by_run(home).values()), "three rows", process=process)
    kill_tree(process)
    platform("sweep", str(file))
    assert list(steps_by_run(home).values()) == [[0, 4, 8, 12, 16, 20, 24, 28]] * 2
