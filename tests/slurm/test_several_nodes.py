"""A run over four nodes as one job of a real Slurm: whatever is killed, nothing is lost and nothing is left."""

import os
import signal
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from integration.conftest import SCALE
from reaper import marked
from slurm.cluster import SlurmCluster
from slurm.conftest import opened, require
from slurm.study import LIMIT_S, SlurmStudy
from waiting import wait_until

from scalerl.run.run_folder import RunFolder
from scalerl.run.run_log import read_rows

TORCH = "cluster: {type: wall, generators: 3, slots: 16}"
"""The first node trains, the others generate."""
ENGINES = "cluster: {type: wall, generators: 2, slots: 64}\nlearner: {type: deepspeed, zero: 2, ranks: 2}\n"
ENGINES += "generator: {type: vllm}"
"""Two nodes train and two generate; the coordinator, which has no device, is beside the first rank."""
EVALUATOR = "cluster: {type: wall, generators: 1, slots: 16, evaluator: true}\nlearner: {type: fsdp, ranks: 2}"
"""Two nodes train, one generates and one evaluates."""
UNITS = {
    TORCH: {"trainer 0": "n1", "generator 0": "n2", "generator 1": "n3", "generator 2": "n4"},
    ENGINES: {"trainer 0": "n1", "trainer 1": "n2", "generator 0": "n3", "generator 1": "n4"},
    EVALUATOR: {"trainer 0": "n1", "trainer 1": "n2", "evaluator": "n3", "generator 0": "n4"},
}
SWEEP = """
name: small
reference: scalerl
seeds: [0]
scale: wall_seconds
axes:
  schedule:
    ppo: {off_policy: {type: ppo_off_policy, k: 4}}
"""
LEFT_S = 10.0


@dataclass(kw_only=True)
class NodesStudy(SlurmStudy):
    """A study on the wall clock of which the reference is looked at; every unit has a node of its own."""

    shape: str = TORCH
    changes: dict[str, str] = field(default_factory=dict)
    """Lines of the scale, by their beginning."""
    every: float = 1.0
    """Units of the budget between two evaluations."""

    def write(self, *, resources: str = "", **more: str) -> None:
        kept = [
            line
            for line in SCALE.splitlines()
            if not line.startswith(("cluster", "  attention", "evaluation", "compute_unit"))
        ]
        for beginning, line in self.changes.items():
            assert any(one.startswith(beginning) for one in kept)
            kept = [line if one.startswith(beginning) else one for one in kept]
        lines = [*kept, self.shape, f"evaluation: {{every: {self.every}, samples: 2}}", "compute_unit_gpu_hours: 0.002"]
        lines += ["threads: 1", "checkpoint_every_s: 1"]
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
        assert {unit.unit: unit.node for unit in self.run.read_status().units} == UNITS[self.shape]
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


VLLM_SCALE = {
    "model": "model: {hidden: 64, layers: 2, heads: 2, mlp: 128}",
    "warm_start": "warm_start: {steps: 60, batch: 64, learning_rate: 2.5e-3, noise: 0.25}",
    "optimiser": "optimiser: {learning_rate: 3.0e-4, warmup_steps: 4, micro_batch_tokens: 1024}",
    "batch": "batch: {prompts: 16, generations: 8}",
}


@pytest.mark.engines
def test_two_vllm_generators_and_two_zero_ranks_over_four_nodes_learn_through_a_preemption(four_nodes, study):
    study = NodesStudy(
        cluster=four_nodes,
        folder=study.folder.parent / "engines",
        budget=120.0,
        shape=ENGINES,
        changes=VLLM_SCALE,
        every=10.0,
    )
    before = study.begin()
    study.cluster.run(
        *("sbatch", "--parsable", "--partition=high", "--nodes=4", "--exclusive", "--output=/dev/null"),
        *("--wrap", "sleep 3"),
    )
    study.until(lambda rows: rows["scalerl"]["state"] in ("preempted", "requeued"))
    wait_until(lambda: gone(before), "the end of every process", limit_s=LIMIT_S)
    study.until_run_is_done()
    assert study.rows()["scalerl"]["attempt"] == 2
    logs = {path.name for path in (study.run.path / "logs").iterdir()}
    assert logs == {
        f"attempt-{attempt}{node}.log" for attempt in (1, 2) for node in ("", ".node-1", ".node-2", ".node-3")
    }
    rates = [row["pass_rate"] for row in read_rows(study.run.metrics, kind="eval")]
    assert sum(rates[-3:]) / 3 > rates[0] + 0.05, rates


def test_an_agent_and_then_a_whole_node_are_killed_and_the_run_goes_on(study):
    study.begin()
    taken = study.processes("n2")
    os.kill(study.agent("n2"), signal.SIGKILL)
    wait_until(lambda: "generator 0 died" in news(study), "the news", limit_s=LEFT_S)
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
        wait_until(lambda: "generator 2 died" in news(study), "the news", limit_s=LEFT_S)
        study.until_run_is_done()
        assert study.rows()["scalerl"]["attempt"] == 1
    finally:
        study.cluster.start_node("n4")


@pytest.mark.engines
def test_a_job_whose_first_node_is_killed_goes_back_to_the_queue_and_loses_nothing(study):
    before = study.begin()
    first = study.processes("n1")
    first += [process for process in before if b"slurm_script" in command_of(process) or is_srun(process)]
    first += {parent_of(process) for process in first if b"slurmstepd" in command_of(parent_of(process))}
    study.cluster.kill_node("n1")
    for process in first:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    wait_until(lambda: gone(before), "the end of every process", limit_s=LEFT_S)
    study.cluster.start_node("n1")
    study.until(lambda rows: rows["scalerl"]["attempt"] == 2, "the second attempt")
    study.until_run_is_done()
    assert {unit.node for unit in study.run.read_status().units} == {"n1", "n2", "n3", "n4"}


@pytest.mark.studies
@pytest.mark.parametrize("first", ["", "scalerl.warden"], ids=["at once", "after the wardens"])
def test_what_hangs_on_any_node_ends_with_a_coordinator_that_is_killed(four_nodes, study, first):
    study = NodesStudy(cluster=four_nodes, folder=study.folder.parent / "hangs", budget=8.0, shape=EVALUATOR)
    study.begin()
    units = [one for one in study.processes() if any(name in command_of(one) for name in (b"spawn_main", b"started"))]
    assert len(units) == 4  # two ranks, a generator and the evaluator
    for unit in units:
        os.kill(unit, signal.SIGSTOP)
    killed = [one for one in study.processes() if first and first.encode() in command_of(one)]
    for process in killed:
        os.kill(process, signal.SIGKILL)
    wardens = wait_until(lambda: others(study, b"scalerl.warden", killed), "new wardens", limit_s=LEFT_S)
    assert len(wardens) == 4
    os.kill(study.agent("n1"), signal.SIGKILL)
    wait_until(lambda: gone([*units, *wardens]), "the end of what hangs", limit_s=LEFT_S)


def others(study, name, without):
    """The processes of this name, one a node, that are not among those; none while one is missing."""
    found = [one for one in study.processes() if name in command_of(one) and one not in without]
    return found if len(found) == 4 else []


def is_srun(process):
    return command_of(process).split(b" ")[0].endswith(b"srun")


def news(study):
    return " ".join(study.run.read_status().warnings)


def stages(study):
    """What the status says of the unit of each node."""
    return {unit.node: unit.state for unit in study.run.read_status().units}


def parent_of(process):
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
