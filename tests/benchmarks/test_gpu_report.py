"""The report of a GPU on a CPU: parts that run, one that fails and one that is too slow, as a user starts it."""

import json
import math
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
from gpu_report.bound import Bound, least, most
from gpu_report.known_rows import KNOWN, NOT_ON_A_CPU, PARTS, rows_of
from gpu_report.results import Results, completed, read_results
from places import REPOSITORY


def report(folder, *options):
    """The command's exit status and the rows of its report by id."""
    command = [sys.executable, "-m", "gpu_report", "--out", str(folder), *options]
    environment = os.environ | {"PYTHONPATH": "trainer:benchmarks"}  # nothing of the platform
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=550)
    content = json.loads((folder / "report.json").read_text())
    return done.returncode, content, {row["id"]: row for part in content["parts"] for row in part["rows"]}


def test_a_part_on_a_cpu_reports_every_row_within_its_bound(tmp_path):
    status, content, rows = report(tmp_path, "--device", "cpu", "--part", "step")
    assert status == 0, content["failed"]
    assert list(rows) == rows_of("step")
    assert {name for name, row in rows.items() if row["reason"] == NOT_ON_A_CPU} == {
        name for name in rows if KNOWN[name].cuda_only
    }
    # Other layouts and precisions round differently, so none of these is compared with itself.
    for name in ("step.packed.gradient", "step.bf16.gradient", "step.qwen3.packed.gradient"):
        assert rows[name]["outcome"] == "pass"
        assert 0 < rows[name]["value"] < 1
    text = (tmp_path / "report.md").read_text()
    assert all(f"| `{name}` |" in text for name in rows)
    assert content["machine"]["torch"]
    assert "python" in content["machine"]


@pytest.mark.skipif(os.path.exists("/dev/nvidia0"), reason="this machine has a GPU")
def test_a_part_that_fails_and_one_that_is_too_slow_fail_their_rows_and_end_no_other(tmp_path):
    status, content, rows = report(tmp_path, "--device", "cuda", "--part", "device", "real")
    assert status == 1
    device, real = content["parts"]
    assert "CUDA" in device["error"]
    assert rows["device.kind"]["outcome"] == "fail"
    assert "sees no GPU" in rows["device.kind"]["value"]
    assert rows["device.matmul"]["outcome"] == "fail"
    assert rows["device.matmul"]["reason"] == device["error"]
    assert real["error"] == ""
    assert {row["reason"] for row in real["rows"]} == {"no --model was given"}
    assert "Traceback" in (tmp_path / "device.log").read_text()

    status, content, rows = report(tmp_path, "--device", "cpu", "--part", "resume", "--limit", "0.2")
    assert status == 1
    assert content["parts"][0]["error"] == "not finished after its limit of 0.2 s"
    assert rows["resume.done"]["outcome"] == "fail"


def test_a_value_that_is_no_number_keeps_no_bound():
    assert most(1.0).holds(1.0)
    assert not most(1.0).holds(1.1)
    assert not most(1.0).holds(math.nan)
    assert least(1.0).holds(1)
    assert not least(1.0).holds(0.9)
    assert not least(1.0).holds("2")
    assert not Bound(least=0.5, most=2.0).holds(0.4)
    assert Bound(equal="done").holds("done")
    assert not Bound(equal="done").holds("failed")


def test_a_part_cut_off_keeps_what_it_had_found(tmp_path):
    path = tmp_path / "rows.jsonl"
    results = Results(path, "resume", "cuda")
    results.report("resume.done", "done")
    results.report("resume.steps", 0)
    with path.open("a") as file:
        file.write('{"id": "resume.lo')
    rows = completed("resume", read_results(path), "ended by signal 9")
    assert [row.id for row in rows] == rows_of("resume")
    assert [row.outcome for row in rows] == ["pass", "fail", "fail", "fail", "fail"]
    assert rows[-1].reason == "ended by signal 9"


def test_every_part_has_rows_and_a_file_and_every_row_a_bound():
    for part in PARTS:
        assert rows_of(part)
        assert find_spec(f"gpu_report.part_{part}")
    assert {row.part for row in KNOWN.values()} == set(PARTS)
    without = {name for name, row in KNOWN.items() if row.bound is None}
    assert without == {"device.matmul", "device.bandwidth"}  # these have the data sheet's
