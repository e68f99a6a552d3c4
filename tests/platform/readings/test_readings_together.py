"""Readings of many runs: the same whoever makes them, and made by somebody whatever happens to a worker."""

import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from fixtures_home import make_home

from ablations.files.trees import tree_bytes
from ablations.fit.options import FitSettings
from ablations.readings.readings_together import FEWEST, WantedRun, readings_of_runs
from ablations.readings.run_reading import read_log

SETTINGS = FitSettings(fit_to=2000.0)


@pytest.fixture
def wanted(tmp_path):
    """As many runs as are worth a process, their logs at rest."""
    sweep = make_home(tmp_path, seeds=tuple(range(FEWEST // 3)))
    for run in sweep.plan.runs:
        os.utime(sweep.run(run.id).metrics, (1e9, 1e9))
    return [WantedRun(folder=sweep.run(run.id), name=run.id, settings=SETTINGS) for run in sweep.plan.runs]


@dataclass(frozen=True, kw_only=True)
class Watched(WantedRun):
    """A run whose reading says which process made it, and kills that one if it is a worker that is to die."""

    by: Path
    command: int
    is_deadly: bool = False

    def read(self):
        if self.is_deadly and os.getpid() != self.command:
            os.kill(os.getpid(), signal.SIGKILL)
        (self.by / self.name).write_text(str(os.getpid()))
        return super().read()


@pytest.fixture
def watched(wanted, tmp_path):
    """`watched(is_deadly=True)` are the runs, and the number of workers that have read some of them."""
    (by := tmp_path / "by").mkdir()

    def watched(**settings):
        made = [Watched(**vars(one), by=by, command=os.getpid(), **settings) for one in wanted]
        return made, lambda: len({path.read_text() for path in by.iterdir()} - {str(os.getpid())})

    return watched


ALONE = "ABLATIONS_TEST_ALONE"
"""Set where the tests run in a process without other threads."""


@pytest.fixture(params=["alone", "with a thread"])
def threads(request):
    """This process, alone or with another thread, which makes it start workers in another way."""
    done = threading.Event()
    if request.param == "alone" and ALONE not in os.environ:
        pytest.skip("other tests may have left threads: test_without_other_threads runs it in a process of its own")
    assert request.param != "alone" or threading.active_count() == 1
    if request.param != "alone":
        threading.Thread(target=done.wait, daemon=True).start()
    yield
    done.set()


@pytest.mark.skipif(ALONE in os.environ, reason="this is the process of its own")
def test_without_other_threads():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", "-k", "alone", __file__]
    done = subprocess.run(command, env={**os.environ, ALONE: "1"}, timeout=550, capture_output=True, text=True)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.usefixtures("threads")
def test_two_processes_find_to_the_bit_what_one_finds_and_keep_it(watched):
    wanted, num_workers = watched()
    before = set(psutil.Process().children())
    told = []
    found = readings_of_runs(wanted, workers=2, done=lambda count, of: told.append((count, of)))
    assert told == [(count, FEWEST) for count in range(1, FEWEST + 1)]
    expected = [tree_bytes(read_log(one.folder, one.name, one.settings)) for one in wanted]
    assert [tree_bytes(one) for one in found] == expected
    assert num_workers() == 2
    left = set(psutil.Process().children()) - before
    assert [one for one in left if "resource_tracker" not in " ".join(one.cmdline())] == []

    again = readings_of_runs(wanted, workers=2, done=lambda count, of: told.append((count, of)))
    assert [tree_bytes(one) for one in again] == expected
    assert len(told) == FEWEST


@pytest.mark.usefixtures("threads")
def test_what_workers_that_die_had_in_hand_is_done_here(watched):
    wanted, num_workers = watched(is_deadly=True)
    found = readings_of_runs(wanted, workers=2)
    assert [one.fit is not None for one in found] == [True] * FEWEST
    assert num_workers() == 0


def test_few_runs_start_no_process(watched):
    wanted, num_workers = watched()
    readings_of_runs(wanted[:-1])
    assert num_workers() == 0


def test_a_worker_whose_parent_is_gone_ends_by_itself():
    program = "from ablations.readings.readings_together import _begin; import time; _begin(2**30); time.sleep(500)"
    assert subprocess.run([sys.executable, "-c", program], timeout=550).returncode == 1
