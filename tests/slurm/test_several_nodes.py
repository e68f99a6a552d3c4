"""A run over four nodes as one job of a real Slurm: whatever is killed, nothing is lost and nothing is left."""

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from integration.conftest import SCALE
from reaper import marked
from slurm.cluster import SlurmCluster
from slurm.conftest import opened, require
from slurm.study import LIMIT_S, SlurmStudy
from waiting import wait_until

from scalerl.run.metrics import read_rows
from scalerl.run.run_folder import RunFolder

NODES = ["n1", "n2", "n3", "n4"]
CLUSTER = "cluster: {type: wall, generators: 3, slots: 16}\nthreads: 1\ncheckpoint_every_s: 1"
SWEEP = """
name: small
reference: scalerl
scale: wall_seconds
axes:
  schedule:
    ppo: {off_policy: {type: ppo_off_policy, k: 4}}
"""
LEFT_S = 10.0


class NodesStudy(SlurmStudy):
    """One run on the wall clock, a trainer and three generators, each on a node of its own."""

    def write(self, *, resources: str = "", **more: str) -> None:
        kept = [
            line
            for line in SCALE.splitlines()
            if not line.startswith(("cluster", "  attention", "evaluation", "compute_unit"))
        ]
        lines = [*kept, CLUSTER, "evaluation: {every: 2, samples: 2}", "compute_unit_gpu_hours: 0.002"]
        (self.folder / "recipes" / "scales" / "wall_seconds.yaml").write_text("\n".join(lines))
        extra = f", {resources}" if resources else ""
        text = f"{SWEEP}budget: {{compute: {self.budget}}}\n"
        text += f"resources: {{nodes: 4, partition: low, time_min: 10, cpus: 1, mem_gb: 4{extra}}}\n"
        self.file.write_text(text + "".join(f"{key}: {value}\n" for key, value in more.items()))

    @property
    def run(self) -> RunFolder:
        """That of the reference; the other waits for its nodes."""
        return RunFolder(self.home / "runs" / self.rows()["scalerl"]["id"])

    def begin(self) -> list[int]:
        """Submit, and let the reference take some steps; returns the processes of its job."""
        self.submit()
        self.until_trains("scalerl")
        status = self.run.read_status()
        assert [unit.node for unit in status.units] == NODES
        assert [unit.unit for unit in status.units] == ["trainer 0", "generator 0", "generator 1", "generator 2"]
        return self.processes()

    def processes(self, node: str = "") -> list[int]:
        """Those of the reference's job, on a node; agents, what they have started, and the coordinator's."""
        of_job = set(marked(f"SLURM_JOB_ID={self.slurm_id()}"))
        return sorted(of_job & set(marked(f"SLURMD_NODENAME={node}"))) if node else sorted(of_job)

    def slurm_id(self) -> str:
        """The id that the job's own processes have: of an array, that of the task."""
        said = self.cluster.run("squeue", "--noheader", "--array", "--format=%i %A").stdout.splitlines()
        return dict(line.split() for line in said)[self.job("scalerl")]

    def agent(self, node: str) -> int:
        """Slurm's own task on a node: what submitit runs."""
        found = [process for process in self.processes(node) if b"submitit.core._submit" in command_of(process)]
        return found[0]

    def until_run_is_done(self) -> None:
        """The reference has reached its budget, with every step once and every device-second booked."""
        self.until(lambda rows: rows["scalerl"]["state"] == "done", "the end of the run")
        rows = list(read_rows(self.run.metrics, kind="train"))
        assert [row["step"] for row in rows] == list(range(1, len(rows) + 1))
        for row in rows:
            spent = sum(seconds for role in row["device_s"].values() for seconds in role.values())
            assert spent == pytest.approx(3600 * row["compute_gpu_hours"], rel=0.01)


def command_of(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return b""


def gone(processes: list[int]) -> bool:
    """Whether none of them runs any more."""
    return not any(command_of(process) for process in processes)


@pytest.fixture(scope="module")
def four_nodes(tmp_path_factory):
    require()
    with SlurmCluster(folder=opened(tmp_path_factory.mktemp("slurm")) / "cluster", nodes=4) as running:
        yield running


@pytest.fixture
def study(four_nodes, tmp_path):
    yield NodesStudy(cluster=four_nodes, folder=tmp_path / "study", budget=8.0)
    four_nodes.cancel_all()


def test_a_run_over_four_nodes_is_preempted_once_and_loses_nothing(study):
    before = study.begin()
    study.cluster.run(
        *("sbatch", "--parsable", "--partition=high", "--nodes=4", "--exclusive", "--output=/dev/null"),
        *("--wrap", "sleep 3"),
    )
    seen = study.until(lambda rows: rows["scalerl"]["state"] in ("preempted", "requeued"))
    reached = seen["scalerl"]["step"]
    assert reached > 0
    wait_until(lambda: gone(before), "the end of every process", limit_s=LIMIT_S)
    study.until_run_is_done()
    assert study.rows()["scalerl"]["attempt"] == 2
    logs = {path.name for path in (study.run.path / "logs").iterdir()}
    assert logs == {
        f"attempt-{attempt}{node}.log" for attempt in (1, 2) for node in ("", ".node-1", ".node-2", ".node-3")
    }
    assert "met the coordinator" in (study.run.path / "logs" / "attempt-2.node-3.log").read_text()


def test_an_agent_and_then_a_whole_node_are_killed_and_the_run_goes_on(study):
    study.begin()
    taken = study.processes("n2")
    os.kill(study.agent("n2"), signal.SIGKILL)
    wait_until(lambda: "generator process 0 died" in news(study), "the news", limit_s=LEFT_S)
    wait_until(lambda: gone(taken), "the end of what the agent had started", limit_s=LEFT_S)
    states = wait_until(lambda: stages(study).get("n2") == "gone" and stages(study), "the status", limit_s=60.0)
    assert states == {"n1": "at work", "n2": "gone", "n3": "at work", "n4": "at work"}
    taken = [*study.processes("n4"), parent_of(study.agent("n4"))]  # the last is Slurm's own daemon of the step
    assert b"slurmstepd" in command_of(taken[-1])
    study.cluster.kill_node("n4")
    for process in taken:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    try:
        wait_until(lambda: "generator process 2 died" in news(study), "the news", limit_s=LEFT_S)
        study.until_run_is_done()
        assert study.rows()["scalerl"]["attempt"] == 1
    finally:
        study.cluster.start_node("n4")


@pytest.mark.engines
def test_a_job_over_four_nodes_that_is_cancelled_writes_its_checkpoint_and_leaves_nothing(study):
    before = study.begin()
    study.platform("cancel")
    study.until(lambda rows: rows["scalerl"]["state"] == "cancelled")
    wait_until(lambda: gone(before), "the end of every process", limit_s=LIMIT_S)
    status = study.run.read_status()
    assert (status.state, status.message) == ("cancelled", "asked to stop")


@pytest.mark.engines
def test_before_its_time_limit_a_job_over_four_nodes_goes_back_to_the_queue(study):
    study.begin()
    # As Slurm itself does before the limit: to every process of the job's step, those of agents among them.
    study.cluster.run("scancel", "--signal=USR2", study.job("scalerl"))
    study.until(lambda rows: rows["scalerl"]["attempt"] == 2, "the second attempt")
    study.until_run_is_done()
    status = study.run.read_status()
    assert not [warning for warning in status.warnings if "died" in warning]


def news(study):
    return " ".join(study.run.read_status().warnings)


def stages(study):
    """What the status says of the unit of each node."""
    return {unit.node: unit.state for unit in study.run.read_status().units}


def parent_of(process):
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
