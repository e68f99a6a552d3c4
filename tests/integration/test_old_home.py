"""A home folder made by commit 5b233c1 opens and its runs resume; `tests/data/homes/README.md` says what it holds."""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from places import DATA

from ablations.verdict.task_curves import curve_of
from scalerl.run.metrics import WALL_FIELDS, read_rows
from scalerl.run.run_folder import RunFolder

DONE, STOPPED, ON_THE_WALL_CLOCK = "b64197716932", "a81b84a39abf", "91e7f517f3ab"
NO_LONGER_SAID = {"delta_rule", "C_mid_ratio", "C_mid_ratio_lo", "C_mid_ratio_hi"}
OF_THE_LEVEL = {"level", "delta_level", "delta_level_lo", "delta_level_hi", "level_difference"}
CORRECTED = {
    *(f"{name}_joint_{end}" for name in ("delta_level", "delta_A", "compute_ratio") for end in ("lo", "hi")),
    *(f"{name}_joint" for name in ("level_difference", "difference", "efficiency")),
}
OF_EQ_1_ALONE = {"A_eq1", "A_eq1_lo", "A_eq1_hi", "asymptote_under_eq1", "eq1_p"}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The unpacked archive."""
    with tarfile.open(DATA / "homes" / "5b233c1.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


def platform(old: Path, *arguments: str, code: int = 0) -> str:
    """What a command on the old home folder prints, called from the folder of the study."""
    result = subprocess.run(
        [sys.executable, "-m", "ablations.cli", *arguments, "--home", str(old / "home")],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        cwd=old / "study",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert result.returncode == code, f"{arguments} gave {result.returncode}\n{result.stdout}\n{result.stderr}"
    return result.stdout + result.stderr if code == 2 else result.stdout


def rows_of(path: Path) -> list[dict]:
    return [{name: value for name, value in row.items() if name not in WALL_FIELDS} for row in read_rows(path)]


def test_an_old_home_shows_its_status_and_its_comparison(old):
    status = json.loads(platform(old, "status", "small", "--json", code=3))
    assert {run["id"]: (run["state"], run["step"]) for run in status["runs"]} == {
        DONE: ("done", 103),
        STOPPED: ("cancelled", 40),
    }
    said = json.loads(platform(old, "compare", "small", "--json"))
    before = json.loads((old / "compare.json").read_text())
    assert said.keys() == before.keys() | {"run_to_run", "together_with"}
    ours, theirs = said["variants"][0], before["variants"][0]  # the variant whose run is done
    theirs = {name: value for name, value in theirs.items() if name not in NO_LONGER_SAID}
    assert ours.keys() == theirs.keys() | {"hours", "overrides"} | OF_THE_LEVEL | OF_EQ_1_ALONE | CORRECTED
    assert ours["hours"] is None  # its rows do not say
    for name, value in theirs.items():
        assert ours[name] == (pytest.approx(value, rel=1e-6) if isinstance(value, float) else value), name


def test_a_study_whose_runs_were_made_with_free_attention_says_how_to_resume_them(old):
    said = platform(old, "sweep", "sweeps/small.yaml", "--dry-run")
    assert "2 runs" in said
    assert "write `attention: {type: free}` under `cluster` in the scale" in said
    assert not any(run_id in said for run_id in (DONE, STOPPED))
    make_attention_free(old)
    said = platform(old, "sweep", "sweeps/small.yaml", "--dry-run")
    assert "attention" not in said
    assert all(run_id in said for run_id in (DONE, STOPPED))


def make_attention_free(old: Path) -> None:
    """Write into the study's scale what the runs of 5b233c1 were charged."""
    scale = old / "study" / "recipes" / "scales" / "seconds.yaml"
    text = scale.read_text()
    assert text.count("tokens_stand_for: 1000}") == 1
    scale.write_text(text.replace("tokens_stand_for: 1000}", "tokens_stand_for: 1000, attention: {type: free}}"))


def test_the_stopped_run_of_an_old_home_resumes_and_reaches_its_budget(old):
    make_attention_free(old)
    folder = RunFolder(old / "home" / "runs" / STOPPED)
    stopped = rows_of(folder.metrics)
    platform(old, "sweep", "sweeps/small.yaml")
    resumed, expected = rows_of(folder.metrics), rows_of(old / f"{STOPPED}.finished.jsonl")
    assert resumed[: len(stopped)] == stopped
    assert resumed[-1]["compute_gpu_hours"] >= 8.0
    # Requests have seeds of their own since, so that what is sampled differs: the course is the same, not the numbers.
    steps = [[row["step"] for row in rows if row["kind"] == "train"] for rows in (resumed, expected)]
    assert steps[0] == list(range(1, len(steps[0]) + 1))
    assert len(steps[0]) == pytest.approx(len(steps[1]), rel=0.1)
    status = folder.read_status()
    assert (status.state, status.attempt) == ("done", 2)
    # Its new evaluations count right answers by prompt, and the curve is made of both kinds.
    counted = ["prompt_counts" in row for row in resumed if row["kind"] == "eval"]
    first = sum(row["kind"] == "eval" for row in stopped)
    assert counted == [False] * first + [True] * (len(counted) - first)
    assert any(counted)
    curve = curve_of(resumed, "resumed")
    assert curve is not None
    assert curve.answer_variance is not None
    assert curve.samples is not None
    assert np.isnan(curve.answer_variance).tolist() == [not one for one in counted]
    as_samples = curve.score * (1 - curve.score) / curve.samples
    assert curve.sampling_variance[:first] == pytest.approx(as_samples[:first])
    done = RunFolder(old / "home" / "runs" / DONE)
    assert done.read_status().attempt == 1  # what was done has not been trained again


def test_a_damaged_checkpoint_ends_the_command_with_a_message(old):
    (old / "home" / "runs" / ON_THE_WALL_CLOCK / "checkpoint.pt").write_bytes(b"garbage")
    said = platform(old, "train", "scalerl", "--scale", "wall_seconds", "--budget", "1", code=2)
    assert "Traceback" not in said
    assert "checkpoint.pt is not a checkpoint" in " ".join(said.split())


def test_a_run_on_the_wall_clock_of_an_old_home_resumes(old):
    folder = RunFolder(old / "home" / "runs" / ON_THE_WALL_CLOCK)
    stopped = rows_of(folder.metrics)
    assert folder.read_status().step == 20
    platform(old, "train", "scalerl", "--scale", "wall_seconds", "--budget", "1")
    resumed = rows_of(folder.metrics)
    assert resumed[: len(stopped)] == stopped
    steps = [row["step"] for row in resumed if row["kind"] == "train"]
    assert steps == list(range(1, len(steps) + 1))
    assert len(steps) > 20
    status = folder.read_status()
    assert (status.state, status.attempt) == ("done", 2)
