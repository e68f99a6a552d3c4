"""Whole runs over several ranks: equal to those of one process, stopped, killed, resumed on another number of ranks."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from trainer.tiny import tiny_recipe
from waiting import wait_until

from scalerl.learner.deepspeed_engine import imported_deepspeed
from scalerl.run.run_folder import RunFolder
from scalerl.run.run_log import read_rows

PROGRAM = Path(__file__).with_name("rank_run.py")
BUDGET = 0.9
LIMIT_S = 240.0
LEARNERS = {
    "torch": {"type": "torch"},
    "zero2": {"type": "deepspeed", "zero": 2, "ranks": 2},
    "zero3": {"type": "deepspeed", "zero": 3, "ranks": 2},
    "fsdp": {"type": "fsdp", "ranks": 2},
}


def virtual_recipe(learner):
    return tiny_recipe(
        off_policy={"type": "pipeline", "k": 8},
        warm_start={"steps": 200},
        zero_variance="keep",
        kl={"coefficient": 0.05},
        checkpoint_every_s=0.0,
        learner=learner,
    )


def start(path, budget, learner, recipe_of=None):
    """Begin or resume a run over these ranks, in a session of its own."""
    folder = RunFolder(path)
    if not path.exists():
        folder.create((recipe_of or virtual_recipe)(learner), 0)
    else:
        written = json.loads((path / "recipe.json").read_text())
        written["recipe"]["learner"] = learner
        (path / "recipe.json").write_text(json.dumps(written))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(PROGRAM), str(path), str(budget), str(path.parent / "warm_starts")]
    with (path / "out.txt").open("a") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=environment, start_new_session=True)
    return folder, process


def run(path, budget, learner):
    folder, process = start(path, budget, learner)
    try:
        code = process.wait(LIMIT_S)
    finally:
        end(process)
    assert code == 0, (path / "out.txt").read_text()[-3000:]
    return folder


def end(process):
    """Of a failed test too, nothing stays."""
    for pid in living(process):
        os.kill(pid, signal.SIGKILL)
    process.wait()


def living(process):
    """Processes of the run that are no zombies, the run's own first."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, rest = stat.parent.name, stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(rest[3]) == process.pid and rest[0] != "Z":
            found.append(int(pid))
    return sorted(found, key=lambda pid: (pid != process.pid, pid))


def children(process):
    """Process ids of the run's trainer ranks and generators, in the order in which they were started."""
    return sorted(pid for pid in living(process) if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes())


def losses(folder):
    return [row["loss"] for row in read_rows(folder.metrics, kind="train")]


def is_training(folder, steps):
    def condition():
        return folder.metrics.exists() and len(losses(folder)) >= steps and folder.checkpoint.exists()

    return condition


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    pytest.importorskip("deepspeed", reason="DeepSpeed is not installed; `make engines` installs it")
    return tmp_path_factory.mktemp("ranks")


@pytest.fixture(scope="module")
def undisturbed(place):
    return losses(run(place / "torch", BUDGET, LEARNERS["torch"]))


def assert_same_losses(ours, expected):
    assert len(ours) == len(expected) >= 12
    assert max(abs(one - other) for one, other in zip(ours, expected, strict=True)) < 1e-5
    assert len({round(loss, 4) for loss in ours}) > 6


def test_a_learner_without_deepspeed_is_refused_with_the_command_that_installs_it(monkeypatch):
    import torch

    monkeypatch.setitem(sys.modules, "deepspeed", None)
    with pytest.raises(ValueError, match=r"pip install 'ablations\[deepspeed\]'.*or use learner 'fsdp'"):
        imported_deepspeed(torch.device("cpu"))


@pytest.mark.engines
@pytest.mark.parametrize("kind", ["zero2", "zero3", "fsdp"])
def test_every_step_of_a_run_over_two_ranks_has_the_loss_of_one_process(place, undisturbed, kind):
    assert_same_losses(losses(run(place / kind, BUDGET, LEARNERS[kind])), undisturbed)


@pytest.mark.engines
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (LEARNERS["zero2"], {**LEARNERS["zero2"], "ranks": 1}),
        ({**LEARNERS["zero3"], "ranks": 1}, LEARNERS["zero3"]),
    ],
    ids=["zero2 2 to 1", "zero3 1 to 2"],
)
def test_a_run_resumes_on_another_number_of_ranks(place, undisturbed, before, after, request):
    path = place / request.node.callspec.id.replace(" ", "_")
    run(path, BUDGET / 2, before)
    assert_same_losses(losses(run(path, BUDGET, after)), undisturbed)


@pytest.mark.engines
def test_a_run_that_is_asked_to_stop_saves_ends_all_ranks_and_resumes(place, undisturbed):
    path = place / "stopped"
    folder, process = start(path, BUDGET, LEARNERS["zero2"])
    try:
        wait_until(is_training(folder, 3), "three steps", process=process, limit_s=LIMIT_S)
        assert len(children(process)) == 2
        for pid in living(process):  # as Slurm and Ctrl-C do, to all processes
            os.kill(pid, signal.SIGTERM)
        assert process.wait(60) == 7
        wait_until(lambda: living(process) == [], "no process of the run", limit_s=10)
        assert folder.read_status().state == "cancelled"
    finally:
        end(process)
    assert_same_losses(losses(run(path, BUDGET, LEARNERS["zero2"])), undisturbed)


@pytest.mark.engines
def test_a_rank_that_dies_ends_the_attempt_with_its_name_and_the_run_resumes(place, undisturbed):
    path = place / "died"
    folder, process = start(path, BUDGET, LEARNERS["zero3"])
    try:
        wait_until(is_training(folder, 3), "three steps", process=process, limit_s=LIMIT_S)
        _, second = children(process)
        os.kill(second, signal.SIGKILL)
        killed = time.monotonic()
        assert process.wait(60) == 1
        assert time.monotonic() - killed < 10
        wait_until(lambda: living(process) == [], "no process of the run", limit_s=10)
        status = folder.read_status()
        assert status.state == "failed"
        assert status.message == "rank 1 of the learner's 2 died (signal 9)"
    finally:
        end(process)
    assert_same_losses(losses(run(path, BUDGET, LEARNERS["zero3"])), undisturbed)


@pytest.mark.engines
def test_when_the_run_is_killed_its_ranks_end(place):
    folder, process = start(place / "orphaned", BUDGET, LEARNERS["fsdp"])
    try:
        wait_until(is_training(folder, 2), "two steps", process=process, limit_s=LIMIT_S)
        assert len(children(process)) == 2
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        wait_until(lambda: living(process) == [], "no process of the run", limit_s=10)
    finally:
        end(process)
