"""Started processes see the devices of their unit, and what they start ends with them."""

import os
import pickle
import subprocess
import sys
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path

import pytest
from waiting import wait_until

from scalerl.cluster.placement import PlacedUnit
from scalerl.processes.launch import LocalLauncher, end_group, visible_devices


@pytest.mark.parametrize(
    ("devices", "outer", "expected"),
    [
        ((0, 1), None, "0,1"),
        ((1, 2), "4,5,6", "5,6"),
        ((0,), "GPU-8f3e,GPU-77aa", "GPU-8f3e"),
        ((3,), "4,5", ""),
        ((), "4,5", ""),
    ],
)
def test_devices_are_counted_among_those_that_are_visible_to_the_coordinator(devices, outer, expected):
    assert visible_devices(devices, outer) == expected


def fail(connection):
    """As `fetch` or an engine might, with an error that a closed connection gives too."""
    connection.recv_bytes()
    raise TimeoutError("no answer from the engine")


@pytest.mark.parametrize(("is_there", "code"), [(True, 1), (False, -9)])
def test_an_error_is_told_unless_it_says_that_the_coordinator_is_gone(capfd, is_there, code):
    launcher = LocalLauncher()
    body = launcher.start(PlacedUnit(role="generator", index=3, node=0, devices=()), pickle.dumps(fail))
    try:
        if is_there:
            body.connect().send_bytes(b"go")
        else:
            body.connect().close()
        wait_until(lambda: body.bury() == code, "the end of the process", shown=body.bury)
        told = capfd.readouterr().err
        assert told.startswith("generator 3:\nTraceback") == is_there
        assert told.endswith("TimeoutError: no answer from the engine\n") == is_there
    finally:
        body.kill()


def test_a_killed_unit_leaves_no_shared_memory_and_its_run_ends_without_a_word_about_it():
    ended = subprocess.run(
        [sys.executable, "-m", "trainer.processes.unit_with_names"],
        capture_output=True,
        text=True,
        timeout=550,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert ended.stdout.splitlines() == ["held held", "gone gone"]
    assert ended.stderr == ""


def test_nothing_is_taken_from_other_groups():
    block = SharedMemory(create=True, size=2**10)
    other = subprocess.Popen(["sleep", "600"], process_group=0)
    try:
        end_group(other.pid)
        assert other.wait(60) == -9
        assert Path("/dev/shm", block.name.strip("/")).exists()
    finally:
        other.kill()
        other.wait()
        block.close()
        block.unlink()
