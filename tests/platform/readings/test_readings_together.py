"""Readings of many runs: the same whoever makes them, and made by somebody whatever happens to a worker."""

import os
import signal

import numpy as np
import pytest
from fixtures_home import make_home

from ablations.fit.curve import Curve
from ablations.fit.options import FitSettings
from ablations.readings import readings_together
from ablations.readings.readings_together import FEWEST, WantedCurve, WantedRun, readings_of_runs
from ablations.readings.run_reading import read_log, reading_bytes

SETTINGS = FitSettings(fit_to=2000.0)


@pytest.fixture
def wanted(tmp_path):
    """As many runs as are worth a process, their logs at rest."""
    sweep = make_home(tmp_path, seeds=tuple(range(FEWEST // 3)))
    for run in sweep.plan.runs:
        os.utime(sweep.run(run.id).metrics, (1e9, 1e9))
    return [WantedRun(folder=sweep.run(run.id), name=run.id, settings=SETTINGS) for run in sweep.plan.runs]


@pytest.fixture
def started(monkeypatch):
    """The processes that were started."""
    made, start = [], readings_together._start
    monkeypatch.setattr(readings_together, "_start", lambda: made.append(start()) or made[-1])
    return made


def test_two_processes_find_to_the_bit_what_one_finds_and_keep_it(wanted, started):
    told = []
    found = readings_of_runs(wanted, workers=2, done=lambda count, of: told.append((count, of)))
    assert told == [(count, FEWEST) for count in range(1, FEWEST + 1)]
    expected = [reading_bytes(read_log(one.folder, one.name, one.settings)) for one in wanted]
    assert [reading_bytes(one) for one in found] == expected
    assert len(started) == 2
    assert all(process.poll() is not None for process in started)

    again = readings_of_runs(wanted, workers=2, done=lambda count, of: told.append((count, of)))
    assert [reading_bytes(one) for one in again] == expected
    assert (len(started), len(told)) == (2, FEWEST)


def test_what_a_worker_that_dies_had_in_hand_is_done_here(wanted, monkeypatch):
    start = readings_together._start

    def killed():
        process = start()
        os.kill(process.pid, signal.SIGKILL)
        return process

    monkeypatch.setattr(readings_together, "_start", killed)
    found = readings_of_runs(wanted, workers=2)
    assert [one.fit is not None for one in found] == [True] * FEWEST


def test_a_worker_that_answers_nonsense_is_not_believed(wanted, monkeypatch):
    nonsense = ["-c", "import sys; sys.stdout.write('x' * 4000); sys.stdout.flush(); sys.stdin.read()"]
    monkeypatch.setattr(readings_together, "WORKER", nonsense)
    found = readings_of_runs(wanted, workers=1 + 1)
    assert [one.fit is not None for one in found] == [True] * FEWEST


def test_few_runs_start_no_process(wanted, started):
    readings_of_runs(wanted[:-1])
    assert started == []


def curves(num):
    """Curves of a law, each with its own ceiling."""
    compute = np.arange(50.0, 1050.0, 50.0)
    laws = [0.2 + (0.4 + 0.01 * number) / (1 + (200 / compute) ** 1.3) for number in range(num)]
    return [
        Curve(name=f"c{number}", compute=compute, score=law + 0.003 * np.sin(compute), start="seed 0")
        for number, law in enumerate(laws)
    ]


def test_curves_are_fitted_by_workers_as_by_this_process_and_kept(tmp_path):
    wanted = [WantedCurve(curve=one, settings=FitSettings(), kept_in=tmp_path / "new") for one in curves(FEWEST)]
    done = []
    of_workers = readings_of_runs(wanted, workers=2, done=lambda *numbers: done.append(numbers))
    assert done == [(number + 1, FEWEST) for number in range(FEWEST)]
    assert [reading_bytes(one) for one in of_workers] == [reading_bytes(one.read()) for one in wanted]
    kept = readings_of_runs(wanted, done=lambda *_: pytest.fail("all are kept"))
    assert [reading_bytes(one) for one in kept] == [reading_bytes(one) for one in of_workers]
    assert of_workers[3].fit.curve.start == "seed 0"
    other = WantedCurve(curve=curves(1)[0], settings=FitSettings(loss="huber"), kept_in=tmp_path / "new")
    assert other.kept() is None


def test_a_kept_fit_that_is_damaged_is_made_again_and_a_folder_that_cannot_be_written_holds_none(tmp_path):
    one = WantedCurve(curve=curves(1)[0], settings=FitSettings(), kept_in=tmp_path)
    first = reading_bytes(one.read())
    (file,) = tmp_path.glob("fit-*.npz")
    file.write_bytes(file.read_bytes()[:100])
    assert one.kept() is None
    assert reading_bytes(one.read()) == first
    (blocked := tmp_path / "blocked").write_text("")
    assert WantedCurve(curve=one.curve, settings=one.settings, kept_in=blocked).read().fit is not None
