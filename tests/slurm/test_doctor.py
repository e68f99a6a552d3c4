"""The doctor on a real cluster: well, with a broken Python, and interrupted.

What it makes of other answers of Slurm and of nodes is tests/platform/slurm/test_doctor_findings.py.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from slurm.study import LIMIT_S
from typer.testing import CliRunner
from waiting import wait_until

from ablations.cli import app
from ablations.errors import AblationsError
from ablations.home.home import Home
from ablations.slurm.doctor import DoctorQuestion, probed_partitions
from ablations.slurm.doctor.probe_job import Probe


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def run(home, monkeypatch):
    """`run(cluster, ...)` is the exit code and what was found, by part and check."""

    def run(cluster, *arguments):
        for name in ("SLURM_CONF", "PATH"):
            monkeypatch.setenv(name, cluster.environment[name])
        command = ["doctor", "--json", "--home", str(home), *arguments]
        result = CliRunner().invoke(app, command, catch_exceptions=False)
        found = {(one["part"], one["check"]): one for one in json.loads(result.stdout)["checks"]}
        return result.exit_code, found

    return run


def levels(found, part):
    return {check: one["level"] for (its, check), one in found.items() if its == part}


def jobs(cluster):
    """Those that wait or run."""
    return cluster.run("squeue", "-h", "-o", "%j").stdout.split()


def test_a_study_is_held_against_the_cluster_that_would_train_it(cluster, run, tmp_path):
    study = tmp_path / "wide.yaml"
    study.write_text(
        "name: wide\nreference: scalerl\nscale: smoke\nvariants: {bf16: {logits: bf16}}\n"
        "resources: {mem_gb: 9000, time_min: 10}\n"
    )
    code, found = run(cluster, "--no-job", "--for", str(study))
    assert (code, levels(found, "study")) == (1, {"wide": "ok", "jobs": "error"})
    assert f"{study}:5: resources.mem_gb: found 9000 GB per node" in found["study", "jobs"]["found"]
    code, found = run(cluster, "--no-job", "--for", "fig7")
    assert (code, levels(found, "study")) == (0, {"fig7": "ok", "jobs": "ok"})
    assert found["study", "fig7"]["found"] == "27 runs of 9 variants at scale bench"


NODE_CHECKS = {
    "probe job", "Python", "packages", "code", "home folder", "lock of here", "lock of node", "GPUs", "engines",
    "temporary", "SIGUSR2", "clock", "SIGTERM",
}  # fmt: skip


def test_a_cluster_that_is_well_has_no_errors_and_keeps_nothing_of_the_probe(cluster, run, home):
    code, found = run(cluster, "--partition", "low")
    assert code == 0, found
    assert levels(found, "a node of partition low") == dict.fromkeys(NODE_CHECKS, "ok")
    told = found["a node of partition low", "SIGTERM"]["found"]
    lived_s = float(told.partition("had ")[2].partition(" s")[0])
    assert 1.5 < lived_s < 20.0, told  # KillWait is 3 s
    assert levels(found, "Slurm")["accounting"] == "warning"
    assert "5 s" in found["Slurm", "preemption low"]["found"]
    assert "at most 2 h per job; largest node 4 cores, 8 GB, no GPU" in found["Slurm", "partition low"]["found"]
    assert jobs(cluster) == []
    assert not home.exists()


def test_a_python_that_does_not_start_is_an_error_with_the_last_lines_of_the_job(cluster, run):
    code, found = run(cluster, "--setup", "export PYTHONHOME=/nonexistent")
    assert code == 1
    told = found["a node of partition low", "Python"]
    assert sys.executable in told["found"]
    assert "setup lines" in told["remedy"]
    assert "No module named 'encodings'" in " ".join(told["log"])


def test_what_sbatch_refuses_is_said_in_its_words(cluster, run):
    code, found = run(cluster, "--sbatch", "constraint=nowhere")
    assert code == 1
    assert "Invalid feature specification" in found["a node of partition low", "probe job"]["found"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--partition", "hihg"], "unknown partition 'hihg'; did you mean 'high'? partitions are: low, high"),
        (["--sbatch", "acount=x"], "unknown option 'acount'; did you mean 'account'?"),
        (["--sbatch", "output=x"], "the platform sets 'output' itself"),
        (["--no-job", "--setup", "true"], "conflict with --no-job"),
    ],
)
def test_wrong_options_are_refused_with_what_would_be_right(cluster, run, arguments, said):
    with pytest.raises(AblationsError) as refused:
        run(cluster, *arguments)
    assert said in str(refused.value)


@pytest.fixture
def drained(cluster):
    """The cluster while its node is taken away."""
    (name,) = cluster.node_names
    cluster.run("scontrol", "update", f"nodename={name}", "state=drain", "reason=disk is full")
    yield cluster
    cluster.run("scontrol", "update", f"nodename={name}", "state=resume")


def test_ctrl_c_while_the_probe_waits_for_a_drained_node_leaves_no_job(drained, home):
    command = [sys.executable, "-m", "ablations.cli", "doctor", "--home", str(home)]
    doctor = subprocess.Popen(
        command,
        env=drained.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_until(lambda: jobs(drained), "the probe job", limit_s=LIMIT_S, every_s=0.2)
    os.killpg(doctor.pid, signal.SIGINT)  # as a terminal does: sbatch and scancel get it too
    printed, said = doctor.communicate(timeout=LIMIT_S)
    assert doctor.returncode == 3
    assert "No probe job is left behind" in said
    assert "disk is full" in printed
    assert jobs(drained) == []
    assert not home.exists()


def test_ctrl_c_while_sbatch_asks_leaves_no_job(cluster, home, monkeypatch):
    monkeypatch.setenv("SLURM_CONF", cluster.environment["SLURM_CONF"])
    (partition,) = probed_partitions(("low",))
    controller = int((cluster.folder / "slurmctld.pid").read_text())
    refused = []

    def is_asking():
        children = Path(f"/proc/{os.getpid()}/task/{threading.main_thread().native_id}/children").read_text().split()
        programs = []
        for child in children:
            with suppress(OSError):  # it has ended
                programs.append(Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")[0])
        return b"sbatch" in programs

    def interrupt():
        try:
            wait_until(is_asking, "sbatch", limit_s=LIMIT_S)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(1.0)
        finally:
            os.kill(controller, signal.SIGCONT)

    def submit():
        thread = threading.Thread(target=interrupt)
        with probe:
            os.kill(controller, signal.SIGSTOP)  # sbatch waits for an answer
            thread.start()
            try:
                probe.submit()
            finally:
                thread.join()

    for _ in range(5):  # a controller that was stopped may refuse sbatch, and then there was no job to leave behind
        probe = Probe(DoctorQuestion(home=Home(home), tracking_uri="", say=print, wait_s=10.0), partition)
        with pytest.raises(KeyboardInterrupt) as interrupted:
            submit()
        wait_until(lambda: not jobs(cluster), "the end of every job", limit_s=LIMIT_S, every_s=0.2)
        assert not list(home.glob("doctor"))
        if probe.job:
            return
        refused.append(repr(interrupted.value.__context__))
    pytest.fail(f"Slurm never had the job; nothing was shown: {refused}")


@pytest.mark.engines
def test_a_minute_of_training_on_a_node(cluster, run):
    code, found = run(cluster, "--partition", "low", "--train")
    training = found["a node of partition low", "training"]
    assert (code, training["level"]) == (0, "ok"), training
    assert "2 generators (vllm) and 2 ranks (deepspeed) took" in training["found"]
    wait_until(lambda: jobs(cluster) == [], "the end of the job", shown=lambda: jobs(cluster))
