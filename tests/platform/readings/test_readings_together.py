"""Readings of many runs: the same whoever makes them, and made by somebody whatever happens to a worker."""

import os
import signal

import pytest
from fixtures_home import make_home

from ablations.findings.results import read_results
from ablations.fit.options import FitSettings
from ablations.readings import readings_together
from ablations.readings.readings_together import FEWEST, readings_of_runs
from ablations.readings.run_reading import read_log, reading_bytes
from ablations.readings.wanted import WantedRun

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


def test_only_the_run_that_has_grown_is_read_again(wanted, monkeypatch):
    readings_of_runs(wanted, workers=1)
    grown = wanted[3].folder.metrics
    lines = grown.read_text().splitlines(keepends=True)
    with grown.open("a") as file:
        file.write(lines[-1].replace('"compute_gpu_hours": 2000.0', '"compute_gpu_hours": 2050.0'))
    told = []
    found = readings_of_runs(wanted, done=lambda count, of: told.append((count, of)))
    assert told == [(1, 1)]
    assert [one.curve.compute[-1] for one in found] == [2050.0 if n == 3 else 2000.0 for n in range(FEWEST)]


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


def test_results_are_in_the_order_of_the_plan_whoever_fits_first(tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1, 2, 3))
    told = []
    results = read_results(sweep, alone=True, done=lambda count, of: told.append(count))
    assert [(run.variant, run.seed, run.id) for run in results.runs] == [
        (variant.name, run.seed, run.id) for variant in sweep.plan.variants for run in variant.runs
    ]
    assert all(run.curve.name == f"{run.variant}-s{run.seed}" for run in results.runs)
    assert told == list(range(1, 13))


def test_a_worker_says_why_a_reading_is_not_kept(wanted, started):
    (wanted[3].folder.path / "readings").touch()
    found = readings_of_runs(wanted, workers=2)
    assert len(started) == 2
    assert [reading.unkept for reading in found] == ["File exists" if n == 3 else "" for n in range(FEWEST)]
