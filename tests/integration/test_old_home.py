"""A home folder made by commit 5b233c1 is compared and not resumed; `tests/data/homes/README.md` says what it holds."""

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from places import DATA

from ablations.answers.questions import LEVEL, QUESTIONS
from scalerl.run.run_folder import RunFolder
from scalerl.run.run_log import WALL_FIELDS, read_rows

DONE, STOPPED, ON_THE_WALL_CLOCK = "b64197716932", "a81b84a39abf", "91e7f517f3ab"
NO_LONGER_SAID = {"delta_rule", "C_mid_ratio", "C_mid_ratio_lo", "C_mid_ratio_hi"}
OF_THE_STUDY = {
    "grid",
    "interactions",
    "leader",
    "level_compute",
    "next",
    "notes",
    "remarks",
    "run_to_run",
    "together_with",
    "unlike",
}
RENAMED = {
    "verdict": "fit_verdict",
    "difference": "ceiling_verdict",
    "efficiency": "compute_verdict",
    **{f"delta_A{end}": f"ceiling_difference{end}" for end in ("", "_lo", "_hi")},
}
OF_THE_LEVEL = {"level", "level_compute", "num_counting", "num_runs", *LEVEL.keys}
CORRECTED = {key for question in QUESTIONS for key in question.keys if "_joint" in key}
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
        timeout=550,
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
    assert said.keys() == before.keys() | OF_THE_STUDY
    ours, theirs = said["variants"][0], before["variants"][0]  # the variant whose run is done
    theirs = {RENAMED.get(name, name): value for name, value in theirs.items() if name not in NO_LONGER_SAID}
    assert ours.keys() == theirs.keys() | {"hours", "overrides"} | OF_THE_LEVEL | OF_EQ_1_ALONE | CORRECTED
    assert ours["hours"] is None  # its rows do not say
    for name, value in theirs.items():
        assert ours[name] == (pytest.approx(value, rel=1e-6) if isinstance(value, float) else value), name


def test_a_run_of_an_old_home_is_not_resumed_and_stays_as_it_is(old):
    folder = RunFolder(old / "home" / "runs" / ON_THE_WALL_CLOCK)
    before = rows_of(folder.metrics)
    # Padding was the default then; with today's, the command would train another run.
    of_then = ("--scale", "wall_seconds", "--set", "optimiser.packing=none")
    said = platform(old, "train", "scalerl", *of_then, "--budget", "1", code=2)
    assert "Traceback" not in said
    words = " ".join(said.split())
    assert "checkpoint.pt has format 0, written by code version 5b233c1; this version resumes only format 5" in words
    assert "The run cannot resume, but it can still be compared. To train it further, use the code" in words
    assert rows_of(folder.metrics) == before != []
    assert folder.read_status().state == "failed"
