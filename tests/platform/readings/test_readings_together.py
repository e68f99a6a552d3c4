"""Readings of many runs: the same whoever makes them, and made by somebody whatever happens to a worker."""

import os
import signal

import numpy as np
import pytest
from fixtures_home import make_home

from ablations.findings.results import read_results
from ablations.fit.curve import Curve
from ablations.fit.options import FitSettings
from ablations.readings import readings_together
from ablations.readings import wanted as wanted_room
from ablations.readings.readings_together import FEWEST, readings_of_runs
from ablations.readings.run_reading import read_log, reading_bytes
from ablations.readings.wanted import WantedCurve, WantedRun, forget_old_fits

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


def test_the_oldest_kept_files_are_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr(wanted_room, "MOST_FILES", 3)
    for age in range(6):
        (path := tmp_path / f"fit-{age}.npz").write_text("")
        os.utime(path, (1e9 - age, 1e9 - age))
    forget_old_fits(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fit-0.npz", "fit-1.npz", "fit-2.npz"]
