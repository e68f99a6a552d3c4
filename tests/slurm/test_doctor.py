"""The doctor on a real cluster: well, without nodes, without a controller, with a broken Python, and interrupted."""

import http.server
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
from slurm.cluster import SlurmCluster, free_ports
from slurm.study import LIMIT_S
from typer.testing import CliRunner
from waiting import wait_until

from ablations.cli import app
from ablations.home.home import Home
from ablations.slurm.commands import NodeGroup
from ablations.slurm.doctor import probed_partitions
from ablations.slurm.doctor.cluster import seconds, up_and_away
from ablations.slurm.doctor.here import without_password
from ablations.slurm.doctor.node import check_clock
from ablations.slurm.doctor.probe import look_at_tracking
from ablations.slurm.doctor.probe_job import Probe, remove_left_probes

ROOT = Path(__file__).parents[2]


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


def node(cluster):
    return cluster.run("sinfo", "-h", "-N", "-o", "%N").stdout.split()[0]


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


@pytest.fixture
def drained(cluster):
    """The cluster while its node is taken away."""
    cluster.run("scontrol", "update", f"nodename={node(cluster)}", "state=drain", "reason=disk is full")
    yield cluster
    cluster.run("scontrol", "update", f"nodename={node(cluster)}", "state=resume")


NODE_CHECKS = {
    "probe job", "Python", "packages", "code", "home folder", "lock of here", "lock of node", "GPUs", "engines",
    "temporary", "tracking", "SIGUSR2", "clock", "SIGTERM",
}  # fmt: skip


def test_a_cluster_that_is_well_has_no_errors_and_keeps_nothing_of_the_probes(cluster, run, home):
    code, found = run(cluster, "--partition", "low", "--partition", "high")
    assert code == 0, found
    for part in ("a node of partition low", "a node of partition high"):
        assert levels(found, part) == dict.fromkeys(NODE_CHECKS, "ok")
    told = found["a node of partition low", "SIGTERM"]["found"]
    lived_s = float(told.partition("had ")[2].partition(" s")[0])
    assert 3.0 < lived_s < 20.0, told  # KillWait is 5 s
    assert levels(found, "Slurm")["accounting"] == "warning"
    assert "10 s" in found["Slurm", "preemption low"]["found"]
    assert jobs(cluster) == []
    assert not home.exists()


def test_with_accounting_nothing_is_left_to_ask_for_it(cluster_with_accounting, run):
    code, found = run(cluster_with_accounting, "--no-job")
    assert code == 0
    assert levels(found, "Slurm")["accounting"] == "ok"
    assert "at most 2 h per job; largest node 4 cores, 8 GB, no GPU" in found["Slurm", "partition low"]["found"]


def test_a_drained_node_is_an_error_that_says_why_and_its_probe_is_cancelled(drained, run):
    code, found = run(drained, "--wait-s", "4")
    assert code == 1
    assert levels(found, "a node of partition low") == {"probe job": "error"}
    told = found["a node of partition low", "probe job"]
    assert "DRAINED" in told["found"]
    assert "disk is full" in told["found"]
    assert "--partition" in told["remedy"]
    assert levels(found, "Slurm")["partition low"] == "error"
    assert levels(found, "Slurm")["partition high"] == "warning"  # no job is meant to run there
    assert jobs(drained) == []


def test_a_busy_cluster_is_a_warning(cluster, run):
    other = cluster.run("sbatch", "--parsable", "--exclusive", "-o", "/dev/null", "--wrap", "sleep 100").stdout.strip()
    try:
        wait_until(
            lambda: cluster.run("squeue", "-h", "-j", other, "-o", "%T").stdout.strip() == "RUNNING",
            "the other job to run",
            limit_s=LIMIT_S,
            every_s=0.2,
        )
        code, found = run(cluster, "--wait-s", "4")
        assert code == 0
        told = found["a node of partition low", "probe job"]
        assert told["level"] == "warning"
        assert "Slurm's reason: Resources" in told["found"]
        assert "--wait-s 40" in told["remedy"]
    finally:
        cluster.run("scancel", other)
    wait_until(lambda: not jobs(cluster), "the end of every job", limit_s=LIMIT_S, every_s=0.2)


def test_a_python_that_does_not_start_is_an_error_with_the_last_lines_of_the_job(cluster, run):
    code, found = run(cluster, "--setup", "export PYTHONPATH=/nonexistent PATH=/nonexistent")
    assert code == 1
    told = found["a node of partition low", "Python"]
    assert sys.executable in told["found"]
    assert "srun: command not found" in " ".join(told["log"]) or "srun: No such file" in " ".join(told["log"])
    assert "setup lines" in told["remedy"]

    code, found = run(cluster, "--setup", "export PYTHONHOME=/nonexistent")
    assert code == 1
    assert "No module named 'encodings'" in " ".join(found["a node of partition low", "Python"]["log"])


def test_code_that_is_not_the_snapshot_is_an_error_and_a_dead_server_a_warning(cluster, run):
    (port,) = free_ports(1)
    source = f"export PYTHONPATH={ROOT}/platform:{ROOT}/trainer"
    code, found = run(cluster, "--setup", source, "--tracking-uri", f"http://127.0.0.1:{port}")
    assert code == 1
    wrong = {"code": "error", "tracking": "warning"}
    assert levels(found, "a node of partition low") == dict.fromkeys(NODE_CHECKS, "ok") | wrong
    assert str(ROOT / "platform") in found["a node of partition low", "code"]["found"]
    assert "platform sync --watch" in found["a node of partition low", "tracking"]["remedy"]
    assert levels(found, "this machine")["tracking"] == "warning"


def test_a_home_folder_that_cannot_be_made_is_an_error_and_gets_no_probe(cluster, run, tmp_path):
    (tmp_path / "file").touch()
    code, found = run(cluster, "--home", str(tmp_path / "file" / "home"))
    assert code == 1
    assert "Not a directory" in found["this machine", "home folder"]["found"]
    assert {part for part, _ in found} == {"this machine", "Slurm"}


def test_what_sbatch_refuses_is_said_in_its_words(cluster, run):
    code, found = run(cluster, "--sbatch", "constraint=nowhere")
    assert code == 1
    assert "Invalid feature specification" in found["a node of partition low", "probe job"]["found"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--partition", "hihg"], "unknown partition 'hihg'; did you mean 'high'? partitions are: low, high"),
        (["--sbatch", "acount=x"], "unknown option 'acount'; did you mean 'account'?"),
        (["--sbatch", "output=x"], "output"),
        (["--no-job", "--setup", "true"], "conflict with --no-job"),
    ],
)
def test_wrong_options_end_with_2_and_what_would_be_right(cluster, home, arguments, said):
    done = platform(cluster, home, *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def platform(cluster, home, *arguments, **options):
    command = [sys.executable, "-m", "ablations.cli", "doctor", "--home", str(home), *arguments]
    return subprocess.run(command, env=cluster.environment, capture_output=True, text=True, check=False, **options)


def start(cluster, home, *arguments):
    command = [sys.executable, "-m", "ablations.cli", "doctor", "--home", str(home), *arguments]
    return subprocess.Popen(
        command,
        env=cluster.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def test_ctrl_c_while_the_probe_waits_leaves_no_job(drained, home):
    doctor = start(drained, home)
    wait_until(lambda: jobs(drained), "the probe job", limit_s=LIMIT_S, every_s=0.2)
    os.killpg(doctor.pid, signal.SIGINT)  # as a terminal does: sbatch and scancel get it too
    _, said = doctor.communicate(timeout=LIMIT_S)
    assert doctor.returncode == 3
    assert "No probe job is left behind" in said
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
                probe.submit(tracking_uri="")
            finally:
                thread.join()

    for _ in range(5):  # a controller that was stopped may refuse sbatch, and then there was no job to leave behind
        probe = Probe(Home(home), partition, setup=(), options=(), wait_s=10.0)
        with pytest.raises(KeyboardInterrupt) as interrupted:
            submit()
        wait_until(lambda: not jobs(cluster), "the end of every job", limit_s=LIMIT_S, every_s=0.2)
        assert not list(home.glob("doctor"))
        if probe.job:
            return
        refused.append(repr(interrupted.value.__context__))
    pytest.fail(f"Slurm never had the job; nothing was shown: {refused}")


def test_kill_while_the_probe_runs_leaves_no_job(cluster, home):
    doctor = start(cluster, home)
    wait_until(lambda: list(home.glob("doctor/*/report.json")), "the report of the probe", limit_s=LIMIT_S, every_s=0.2)
    doctor.terminate()
    doctor.communicate(timeout=LIMIT_S)
    assert doctor.returncode == 3
    wait_until(lambda: not jobs(cluster), "the end of every job", limit_s=LIMIT_S, every_s=0.2)
    assert not home.exists()


def test_what_a_killed_doctor_leaves_the_next_one_removes(drained, home, monkeypatch):
    doctor = start(drained, home)
    (name,) = wait_until(lambda: jobs(drained), "the probe job", limit_s=LIMIT_S, every_s=0.2)
    doctor.kill()
    doctor.communicate()
    folder = home / "doctor" / name
    monkeypatch.setenv("SLURM_CONF", drained.environment["SLURM_CONF"])
    remove_left_probes(Home(home))
    assert folder.exists(), "a young one may be another doctor's"
    os.utime(folder, (0, 0))
    remove_left_probes(Home(home))
    assert not folder.exists()
    assert jobs(drained) == []


class ClusterWithGpus(SlurmCluster):
    """Slurm is told that two devices of its node, which every machine has, are GPUs."""

    def _configure(self):
        super()._configure()
        path = self.folder / "slurm.conf"
        path.write_text(path.read_text().replace("State=UNKNOWN", "Gres=gpu:2 State=UNKNOWN") + "GresTypes=gpu\n")
        (self.folder / "gres.conf").write_text("Name=gpu File=/dev/null\nName=gpu File=/dev/zero\n")


@pytest.fixture(scope="module")
def cluster_with_gpus(cluster, tmp_path_factory):
    """A cluster to break; `cluster` is asked for so that this one is skipped where that one is."""
    folder = tmp_path_factory.mktemp("slurm")
    for parent in (folder, *folder.parents[:2]):
        parent.chmod(0o755)
    with ClusterWithGpus(folder=folder / "cluster") as running:
        yield running


@pytest.mark.skipif(Path("/dev/nvidia0").exists(), reason="this node has what Slurm believes")
def test_gpus_that_slurm_promises_and_torch_does_not_find_are_an_error(cluster_with_gpus, run):
    code, found = run(cluster_with_gpus)
    assert code == 1
    assert levels(found, "a node of partition low") == dict.fromkeys(NODE_CHECKS, "ok") | {"GPUs": "error"}
    told = found["a node of partition low", "GPUs"]["found"]
    assert "2 GPUs per node" in told
    assert "torch can use none" in told


def test_a_controller_that_does_not_answer_is_an_error_that_ends_the_questions(cluster_with_gpus, run):
    cluster_with_gpus.kill_controller()
    try:
        code, found = run(cluster_with_gpus, "--partition", "low")
    finally:
        cluster_with_gpus.start_controller()
    assert code == 1
    assert levels(found, "Slurm") == {"commands": "ok", "controller": "error"}
    assert "DOWN" in found["Slurm", "controller"]["found"]
    assert levels(found, "this machine")["home folder"] == "ok"


class ClusterWithBlindNode(SlurmCluster):
    """Its node has an empty folder where this machine has the folder `unseen`."""

    @property
    def unseen(self):
        return self.folder.parent / "unseen"

    def start_node(self, name=""):
        self.unseen.mkdir()
        hide = f"mount -t tmpfs none {self.unseen} && exec slurmd -D -N {name}"
        self._spawn("unshare", "--mount", "sh", "-c", hide)


@pytest.fixture
def cluster_with_blind_node(cluster, tmp_path):
    if subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"], check=False).returncode:
        pytest.skip("nothing can be mounted here")
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    with ClusterWithBlindNode(folder=tmp_path / "cluster") as running:
        yield running


def test_a_home_folder_that_nodes_do_not_see_is_an_error(cluster_with_blind_node, run):
    unseen = cluster_with_blind_node.unseen / "home"
    code, found = run(cluster_with_blind_node, "--home", str(unseen))
    assert code == 1
    assert levels(found, "a node of partition low") == {"home folder": "error"}
    told = found["a node of partition low", "home folder"]
    assert f"the node does not see {unseen}" in told["found"]
    assert "--home" in told["remedy"]


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


def test_a_password_is_not_shown():
    assert without_password("postgresql://me:secret@db:5432/mlflow") == "postgresql://me:***@db:5432/mlflow"
    assert without_password("http://mlflow:5000") == "http://mlflow:5000"


def test_slurms_durations_in_seconds():
    assert [seconds(text) for text in ("30 sec", "10", "00:02:00", "1-00:00:00")] == [30, 10, 120, 86400]


def test_nodes_that_sleep_or_work_are_up_and_drained_ones_are_not():
    states = {"idle": 1, "mixed": 2, "allocated": 4, "powered_down": 8, "draining": 16, "down": 32, "maint": 64}
    nodes = [NodeGroup(partition="low", state=state, number=number) for state, number in states.items()]
    up, away = up_and_away("low", [*nodes, NodeGroup(partition="high", state="idle", number=128)])
    assert up == 15
    assert [group.state for group in away] == ["draining", "down", "maint"]


@pytest.mark.engines
def test_a_minute_of_training_on_a_node(cluster, run):
    code, found = run(cluster, "--partition", "low", "--train")
    training = found["a node of partition low", "training"]
    assert (code, training["level"]) == (0, "ok"), training
    assert "2 generators (vllm) and 2 ranks (deepspeed) took" in training["found"]
    wait_until(lambda: jobs(cluster) == [], "the end of the job", shown=lambda: jobs(cluster))
