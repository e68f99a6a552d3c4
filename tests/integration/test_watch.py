"""`status -w` and `logs -f` beside a sweep that really trains: they follow it and end with it."""

import json
import os
import pty
import signal
import subprocess
import sys
from contextlib import suppress

import pytest
from fixtures_home import make_home
from integration.conftest import kill_tree, start
from waiting import wait_until

LIMIT_S = 240.0


@pytest.fixture
def following(home, tmp_path):
    """Start a command that follows something; `following("status", "-w")` gives the process and its output file."""
    started = []

    def follow(*arguments):
        output = tmp_path / f"output-{len(started)}"
        with output.open("wb") as file:
            command = [sys.executable, "-m", "ablations.cli", *arguments, "--home", str(home)]
            process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
        started.append(process)
        return process, output

    yield follow
    for process in started:
        process.kill()
        process.wait()


def test_status_and_logs_follow_a_sweep_to_its_end(platform, study, home, following):
    study.write_text(study.read_text().replace("    loss:\n", ""))  # which leaves two runs
    sweep = start(home, "sweep", str(study), "--jobs", "1", "--budget", "0.7")
    try:
        wait_until((home / "sweeps" / "small" / "plan.json").exists, "plan.json", process=sweep)
        os.killpg(sweep.pid, signal.SIGSTOP)  # starts no run before both follow
        watch, watched = following("status", "-w")
        # The last run to be started: it is pending now, and the sweep will begin it.
        log, logged = following("logs", "loo-off_policy", "-f")
        wait_until(lambda: "waiting for its first line" in logged.read_text(), "its wait", process=log)
        wait_until(lambda: "small: " in watched.read_text(), "the table", process=watch)
        os.killpg(sweep.pid, signal.SIGCONT)
        assert sweep.wait(timeout=LIMIT_S) == 0
        assert log.wait(timeout=LIMIT_S) == 0, logged.read_text()
        assert watch.wait(timeout=LIMIT_S) == 0, watched.read_text()
    finally:
        kill_tree(sweep)
    lines = watched.read_text()
    assert "small: 1 running, 1 pending" in lines or "small: 1 done, 1 running" in lines
    assert "min left, until" in lines
    assert "2 done; 100% of the compute" in lines
    said = logged.read_text()
    assert "waiting for its first line" in said
    assert said.count("pass rate") >= 7
    assert " is done" in said.splitlines()[-1]
    data = json.loads(platform("status", "--json").stdout)
    assert data["seconds_left"] is None
    assert data["compute_gpu_hours"] == sum(run["compute_gpu_hours"] for run in data["runs"]) >= 2 * 0.7 * 8.0
    assert all(run["wall_s"] > 0 for run in data["runs"])


def test_ctrl_c_leaves_the_watch_quietly(home, following):
    make_home(home, fraction=0.5, state="running")
    watch, output = following("status", "-w")
    wait_until(lambda: "3 running" in output.read_text(), "the table", process=watch, shown=output.read_text)
    watch.send_signal(signal.SIGINT)
    assert watch.wait(timeout=LIMIT_S) == 3
    assert "Traceback" not in output.read_text()
    assert output.read_text().count("loo-curriculum") == 1  # the table, once, as it was left


def test_in_a_terminal_the_watch_is_a_live_table(home):
    make_home(home, fraction=0.5, state="running")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "ablations.cli", "status", "-w", "--home", str(home)]
    watch = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=os.environ | {"TERM": "xterm"},
    )
    os.close(theirs)
    try:
        seen = b""
        while seen.count(b"loo-curriculum") < 2:  # drawn, and drawn again
            seen += os.read(ours, 4096)
        watch.send_signal(signal.SIGINT)
        with suppress(OSError):  # the terminal's other end is closed
            while True:
                seen += os.read(ours, 4096)
        assert watch.wait(timeout=LIMIT_S) == 3
    finally:
        watch.kill()
        watch.wait()
        os.close(ours)
    assert b"Traceback" not in seen
