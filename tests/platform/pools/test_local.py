"""The pool's bookkeeping; that it trains, stops and extends runs for real is tests/integration/test_sweep.py."""

import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from filelock import FileLock
from fixtures_home import BUDGET, make_home, write_state
from fixtures_steering import steered
from rich.console import Console
from typer.testing import CliRunner
from waiting import wait_until

from ablations.cli import app
from ablations.home.cancellation import Cancellation
from ablations.home.home import Home
from ablations.pools import command_pool
from ablations.pools.command_pool import CommandPool
from ablations.pools.local import ThisMachine, dealt, gpus_here
from ablations.running import executor
from ablations.status.progress import run_rows
from ablations.study.sweep import Stop
from ablations.tracking.beside_a_sweep import Tracker


def pool_of(home: Home, folder: Path) -> CommandPool:
    site = ThisMachine(home=home, folder=folder / "local", threads=1)
    return CommandPool(home=home, site=site, jobs=2, cancelled=Cancellation(folder / "cancelled"))


@pytest.fixture
def paused(tmp_path):
    """A sweep whose runs have half of the budget and are cancelled."""
    return make_home(tmp_path, fraction=0.5, state="cancelled")


def test_a_run_that_only_waits_is_forgotten_when_it_is_stopped(tmp_path, paused):
    pool, run_id = pool_of(paused.home, tmp_path), paused.plan.variants[0].runs[0].id
    pool.add(run_id, BUDGET)
    assert pool.is_busy(run_id)
    pool.stop(run_id)
    assert not pool.is_busy(run_id)
    assert list(pool.work()) == []


def test_runs_that_ended_early_are_pending_until_the_pool_resumes_them(tmp_path):
    sweep = make_home(tmp_path)
    pool, runs = pool_of(sweep.home, tmp_path), sweep.plan.runs
    for run, state in zip(runs, ("failed", "running", "done"), strict=True):
        write_state(sweep.home, run.id, state, compute=BUDGET if state == "done" else 0.4 * BUDGET, message="why")
    killed = sweep.run(runs[1].id)
    killed.write_status(replace(killed.read_status(), host=socket.gethostname()))
    assert [row.state.state for row in run_rows(sweep)] == ["failed", "stale", "done"]
    for run in runs:
        pool.add(run.id, BUDGET)
    rows = [row.state for row in run_rows(sweep)]
    assert [state.state for state in rows] == ["pending", "pending", "done"]
    assert [state.message for state in rows] == ["", "", "why"]
    assert [state.compute_gpu_hours for state in rows] == [0.4 * BUDGET, 0.4 * BUDGET, BUDGET]


def test_runs_that_are_done_by_their_budget_or_cancelled_are_not_started(tmp_path):
    sweep = make_home(tmp_path, fraction=0.5, state="done")
    pool, runs = pool_of(sweep.home, tmp_path), sweep.plan.runs
    for run, budget in zip(runs, (0.5 * BUDGET, 0.4 * BUDGET, 0.5 * BUDGET), strict=True):
        pool.add(run.id, budget)
    assert list(pool.work()) == [None]
    Cancellation(tmp_path / "cancelled").add(None)
    pool = pool_of(sweep.home, tmp_path)
    pool.add(runs[0].id, BUDGET)
    assert list(pool.work()) == [None]
    assert not (tmp_path / "local").exists()


def test_a_run_that_another_sweep_trains_is_waited_for_until_it_is_stopped(tmp_path):
    sweep = make_home(tmp_path, fraction=0.5, state="running")
    pool, run_id = pool_of(sweep.home, tmp_path), sweep.plan.variants[0].runs[0].id
    pool.add(run_id, BUDGET)
    events = pool.work()
    assert [next(events), next(events)] == [None, None]
    assert pool.is_busy(run_id)
    pool.stop(run_id)
    assert list(events) == []
    assert not (tmp_path / "local").exists()


def test_a_run_that_does_not_end_in_time_is_named(tmp_path, paused, monkeypatch):
    said: list[str] = []
    pool, run_id = replace(pool_of(paused.home, tmp_path), say=said.append), paused.plan.variants[0].runs[0].id
    monkeypatch.setattr(command_pool, "STOP_LIMIT_S", 0.0)
    monkeypatch.setattr(pool.site, "start", lambda *_: SimpleNamespace(done=lambda: False))
    pool.add(run_id, BUDGET)
    events = pool.work()
    next(events)
    events.close()
    assert [text.partition(".")[0] for text in said] == [f"Run {run_id} is still finishing a step"]


@contextmanager
def left_behind(home: Home, run_id: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that trains a run for a sweep that was killed."""
    folder = home.run(run_id)
    with subprocess.Popen(["sleep", "60"]) as process, FileLock(folder.lock):
        status = folder.read_status()
        folder.write_status(replace(status, state="running", pid=process.pid, host=socket.gethostname()))
        try:
            yield process
        finally:
            process.kill()


def test_a_run_that_a_killed_sweep_left_training_is_asked_to_stop_too(tmp_path, paused):
    run_id = paused.plan.variants[1].runs[0].id
    with left_behind(paused.home, run_id) as process:
        pool_of(paused.home, tmp_path).stop(run_id)
        assert process.wait(timeout=10) == -signal.SIGTERM


def test_a_run_that_a_killed_sweep_left_training_takes_one_of_the_places(tmp_path, paused, monkeypatch):
    left, *others = (variant.runs[0].id for variant in paused.plan.variants)
    pool, begun = replace(pool_of(paused.home, tmp_path), jobs=1), []
    job = SimpleNamespace(done=lambda: True, is_lost=False, why="")
    monkeypatch.setattr(pool.site, "start", lambda run_id, _: begun.append(run_id) or job)
    for run_id in (*others, left):
        pool.add(run_id, BUDGET)
    events = pool.work()
    with left_behind(paused.home, left):
        next(events)
        assert begun == []
    next(events)
    assert begun == others[:1]
    events.close()


def test_a_sweep_that_starts_again_asks_the_runs_it_had_stopped(tmp_path, monkeypatch):
    home = make_home(tmp_path, fraction=0.9, state="cancelled").home
    steering, sweep = steered(home, Stop(gain_below=0.05))
    (reference,) = steering.begin()
    write_state(home, reference, "done")
    stopped = sweep.plan.variants[1].runs[0].id
    with left_behind(home, stopped) as process:
        row = next(row for row in run_rows(sweep) if row.id == stopped)
        assert (row.state.state, row.state.pid) == ("stopped", process.pid)
        assert row.state.message.endswith("; still training")
        console = Console(quiet=True)
        # Nothing is missing.
        monkeypatch.setattr(Tracker, "begin_last", lambda _: None)
        tracker = Tracker(sweep, None)
        executor.train_missing(steering._study, sweep, pool_of(home, tmp_path), tracker, console)
        assert process.wait(timeout=10) == -signal.SIGTERM


def test_cancel_reaches_a_stopped_run_that_still_trains(tmp_path):
    home = make_home(tmp_path, fraction=0.9, state="cancelled").home
    steering, sweep = steered(home, Stop(gain_below=0.05))
    steering.begin()
    with left_behind(home, sweep.plan.variants[1].runs[0].id) as process:
        result = CliRunner().invoke(app, ["cancel", "loo", "--home", str(tmp_path)], catch_exceptions=False)
        assert "loo: asked 1 running run to stop" in result.stdout
        assert process.wait(timeout=10) == -signal.SIGTERM


def test_runs_share_out_the_gpus_of_this_machine():
    four = ("0", "1", "2", "3")
    assert dealt(four, 1, []) == ("0",)
    assert dealt(four, 1, ["0", "1"]) == ("2",)
    assert dealt(four, 2, ["0", "3"]) == ("1", "2")
    assert dealt(four, 2, ["1", "2", "3"]) == ("0", "1")
    assert dealt(("GPU-a",), 2, ["GPU-a"]) == ("GPU-a",)  # shared, if there are more runs than GPUs
    assert dealt((), 1, []) == ()


def test_the_gpus_of_this_machine_are_those_that_this_process_may_use(tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'GPU 0: NVIDIA H200 (UUID: GPU-1)'\necho 'GPU 1: NVIDIA H200 (UUID: GPU-2)'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert gpus_here() == ("0", "1")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,GPU-7")
    assert gpus_here() == ("5", "GPU-7")
    for none in ("", "-1", "-1,0"):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", none)
        assert gpus_here() == ()


def test_a_job_sees_the_gpus_of_its_run(tmp_path, paused, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6")
    # A job imports the module by name; its environment is what it would train with.
    (tmp_path / "sitecustomize.py").write_text(
        "import os, ablations.pools.job as job\n"
        "job.train_run = lambda run, *_: (run / 'seen').open('x').write(os.environ['CUDA_VISIBLE_DEVICES'])\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    runs = [run.id for run in paused.plan.runs]
    site = ThisMachine(home=paused.home, folder=tmp_path / "local", threads=1, gpus=("4", "5", "6"))
    pool = replace(pool_of(paused.home, tmp_path), site=site, jobs=len(runs))
    for run_id in runs:
        pool.add(run_id, BUDGET)
    events = pool.work()
    seen = [paused.home.run(run_id).path / "seen" for run_id in runs]
    wait_until(lambda: next(events) and all(one.is_file() and one.read_text() for one in seen), "three jobs")
    for run_id in runs:
        pool.stop(run_id)
    assert [one.read_text() for one in seen] == ["4", "5", "6"]


def test_cancel_leaves_runs_on_other_machines_to_the_command_that_has_started_them(tmp_path):
    sweep = make_home(tmp_path, fraction=0.5, state="running")
    with FileLock(sweep.lock):  # as that command holds it
        result = CliRunner().invoke(app, ["cancel", "loo", "--home", str(tmp_path)], catch_exceptions=False)
    assert "asked the command of loo to stop 3 runs on other machines" in result.stdout
    assert sweep.cancellation.is_whole
    result = CliRunner().invoke(app, ["cancel", "loo", "--home", str(tmp_path)], catch_exceptions=False)
    assert "3 runs not cancelled: training on another machine" in result.stdout
