"""What is read of a run log is kept, used while nothing has changed, and never shown when something has."""

import errno
import json
import os
import resource
import shutil
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
from fixtures_home import make_home

from ablations.files.trees import tree_bytes
from ablations.fit.options import FitSettings
from ablations.readings import run_reading
from ablations.readings.kept import SECONDS_OF_A_WRITE
from ablations.readings.run_reading import (
    MOST_KEPT,
    counts_of,
    kept_reading,
    read_log,
)
from scalerl.run.run_folder import RunFolder


@pytest.fixture
def folder(tmp_path):
    """A run whose log is at rest."""
    sweep = make_home(tmp_path)
    folder = sweep.run(sweep.plan.runs[0].id)
    rested(folder)
    return folder


@pytest.fixture
def logs_read(monkeypatch):
    """The names of readings that were made of a log."""
    made, real = [], run_reading.read_log
    monkeypatch.setattr(run_reading, "read_log", lambda *given: made.append(given[1]) or real(*given))
    return made


def rested(folder, seconds_ago=10.0):
    then = os.stat(folder.metrics).st_mtime - seconds_ago
    os.utime(folder.metrics, (then, then))


def equal(ours, theirs) -> bool:
    """The same numbers to the bit, all the way down."""
    if is_dataclass(ours):
        return type(ours) is type(theirs) and all(
            equal(getattr(ours, field.name), getattr(theirs, field.name)) for field in fields(ours)
        )
    if isinstance(ours, np.ndarray):
        return ours.dtype == theirs.dtype and np.array_equal(ours, theirs, equal_nan=True)
    if isinstance(ours, tuple | list):
        return len(ours) == len(theirs) and all(map(equal, ours, theirs))
    if isinstance(ours, dict):
        return list(ours) == list(theirs) and all(equal(ours[key], theirs[key]) for key in ours)
    return ours == theirs


SETTINGS = FitSettings(fit_to=2000.0)


def test_a_second_reading_is_the_first_to_the_bit_and_fits_nothing(folder, logs_read):
    first = kept_reading(folder, "a", SETTINGS)
    again = kept_reading(folder, "a", SETTINGS)
    assert logs_read == ["a"]
    assert first.fit is not None
    assert equal(first, again)
    assert equal(first, read_log(folder, "a", SETTINGS))


def test_another_log_other_settings_another_name_and_other_code_are_read_anew(folder, logs_read, monkeypatch):
    kept_reading(folder, "a", SETTINGS)
    kept_reading(folder, "b", SETTINGS)
    kept_reading(folder, "a", replace(SETTINGS, fit_from=100.0))
    monkeypatch.setattr(run_reading, "code_of_readings", lambda: "of tomorrow")
    kept_reading(folder, "a", SETTINGS)
    monkeypatch.undo()
    assert len(logs_read) == 4


def test_a_log_that_has_changed_is_read_again(folder):
    before = kept_reading(folder, "a", SETTINGS)
    lines = folder.metrics.read_text().splitlines(keepends=True)
    folder.metrics.write_text("".join(lines[:-2]))
    rested(folder)
    after = kept_reading(folder, "a", SETTINGS)
    assert after.curve.compute.size < before.curve.compute.size


def test_a_log_that_was_written_this_moment_is_not_kept(folder):
    soon = time.time() + 60  # however long this machine pauses, the log is not older than a moment
    os.utime(folder.metrics, (soon, soon))
    kept_reading(folder, "a", SETTINGS)
    assert not (folder.path / "readings").exists()


@pytest.mark.parametrize("damage", ["torn", "one byte", "another class", "a folder"])
def test_a_damaged_or_foreign_file_is_made_again(folder, logs_read, damage):
    first = kept_reading(folder, "a", SETTINGS)
    (path,) = (folder.path / "readings").iterdir()
    whole = path.read_bytes()
    match damage:
        case "torn":
            path.write_bytes(whole[: len(whole) // 2])
        case "one byte":
            at = whole.index(np.asarray(first.curve.score).tobytes())
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        case "another class":
            path.write_bytes(tree_bytes(first.curve))
        case "a folder":
            path.unlink()
            path.mkdir()
            assert equal(kept_reading(folder, "a", SETTINGS), replace(first, unkept=os.strerror(errno.EISDIR)))
            path.rmdir()
    assert equal(kept_reading(folder, "a", SETTINGS), first)
    assert equal(kept_reading(folder, "a", SETTINGS), first)
    assert logs_read == (["a", "a", "a"] if damage == "a folder" else ["a", "a"])


def test_a_damaged_log_is_read_each_time_and_nothing_of_it_is_kept(folder, logs_read):
    kept_reading(folder, "a", SETTINGS)
    lines = folder.metrics.read_text().splitlines(keepends=True)
    folder.metrics.write_text("".join([*lines[:4], "torn\n", *lines[4:]]))
    rested(folder)
    for _ in range(2):
        found = kept_reading(folder, "a", SETTINGS)
        assert (found.fit, found.is_sound) == (None, False)
        assert f"{folder.metrics}:5: not a metrics row" in found.reason
    assert logs_read == ["a", "a", "a"]
    assert len(list((folder.path / "readings").iterdir())) == 1


def test_of_several_that_read_at_once_one_makes_the_reading(folder, logs_read):
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: kept_reading(folder, "a", SETTINGS), range(4)))
    assert logs_read == ["a"]
    assert all(equal(one, found[0]) for one in found)
    assert equal(kept_reading(folder, "a", SETTINGS), found[0])


def test_a_run_that_is_deleted_meanwhile_stays_deleted(folder, monkeypatch):
    real = run_reading.is_at_rest

    def deleted(log):
        answer = real(log)
        shutil.rmtree(folder.path)
        return answer

    monkeypatch.setattr(run_reading, "is_at_rest", deleted)
    found = kept_reading(folder, "a", SETTINGS)
    assert found.fit is not None
    assert found.unkept == ""
    assert not folder.path.exists()


def test_what_a_killed_write_left_is_taken_away_later(folder):
    readings = folder.path / "readings"
    readings.mkdir()
    old, new = readings / ".ab.msgpack.17.tmp", readings / ".cd.msgpack.18.tmp"
    for path in (old, new):
        path.write_bytes(b"half")
    then = time.time() - 2 * SECONDS_OF_A_WRITE
    os.utime(old, (then, then))
    kept_reading(folder, "a", SETTINGS)
    assert (old.exists(), new.exists()) == (False, True)


def test_a_reason_is_kept_too_and_old_readings_are_forgotten(folder, logs_read):
    short = FitSettings(fit_to=100.0)
    assert kept_reading(folder, "a", short).reason == kept_reading(folder, "a", short).reason != ""
    assert logs_read == ["a"]
    for number in range(MOST_KEPT + 3):
        kept_reading(folder, f"name {number}", short)
    assert len(list((folder.path / "readings").iterdir())) == MOST_KEPT


@pytest.mark.parametrize("fault", ["half a write", "full when it is synced", "read-only"])
def test_a_disk_that_takes_nothing_breaks_no_reading_and_is_left_without_a_half_file(folder, monkeypatch, fault):
    expected = tree_bytes(read_log(folder, "a", SETTINGS))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def refused(*_, **__):
        number = errno.EROFS if fault == "read-only" else errno.ENOSPC
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as broken:
        if fault == "half a write":  # the kernel takes the first bytes of a file and refuses the rest
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
        elif fault == "read-only":
            broken.setattr("ablations.readings.kept.Path.mkdir", refused)
        else:
            broken.setattr("scalerl.run.run_folder.os.fsync", refused)
        try:
            found = kept_reading(folder, "a", SETTINGS)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    number = {"half a write": errno.EFBIG, "read-only": errno.EROFS}.get(fault, errno.ENOSPC)
    assert found.unkept == os.strerror(number)
    assert tree_bytes(replace(found, unkept="")) == expected
    left = [path.name for path in folder.path.glob("readings/*")] + [
        path.name for path in folder.path.glob("readings/.*")
    ]
    assert left == []
    assert tree_bytes(kept_reading(folder, "a", SETTINGS)) == expected
    assert len(list((folder.path / "readings").glob("*.msgpack"))) == 1


def test_a_reading_has_what_evaluations_counted_where_all_of_them_say():
    def evaluation(compute, step, **more):
        return {"kind": "eval", "step": step, "compute_gpu_hours": compute, "task": "a", "pass_rate": 0.5, **more}

    rows = [
        evaluation(0.0, 0, tokens=0, wall_s=0.0),
        {"kind": "train", "step": 1, "compute_gpu_hours": 25.0, "tokens": 100, "wall_s": 2.0},
        evaluation(50.0, 2, tokens=200, wall_s=4.0, flops=1e15),
        evaluation(50.0, 2, tokens=200, wall_s=4.5, flops=1e15) | {"task": "b"},
        evaluation(100.0, 4, tokens=410, wall_s=8.0, flops=2e15),
    ]
    expected = {"compute_gpu_hours": [0, 50, 100], "step": [0, 2, 4], "wall_s": [0, 4, 8], "tokens": [0, 200, 410]}
    assert {name: column.tolist() for name, column in counts_of(rows).items()} == expected
    assert counts_of(rows[1:2]) == {}


def test_a_long_log_is_read_in_less_memory_than_it_takes_on_disk(tmp_path):
    folder = RunFolder(tmp_path / "3f0c9a1b2d4e")
    folder.path.mkdir()
    right = "8" * 500
    with folder.metrics.open("w") as file:
        for step in range(2000):
            of_step = {"step": step, "compute_gpu_hours": step / 10}
            counted = {"num_samples": 4000, "num_prompts": 500, "prompt_counts": f"8:{right}"}
            file.write(json.dumps({"kind": "eval", "task": "a", "pass_rate": 0.5, **of_step, **counted}) + "\n")
            file.write(json.dumps({"kind": "train", **of_step} | {f"metric_{n}": n / 7 for n in range(40)}) + "\n")
    tracemalloc.start()
    reading = read_log(folder, "long", FitSettings(fit_to=0.3))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert reading.curve is not None
    assert reading.curve.score.size == reading.counts["step"].size == 2000
    assert most < 0.75 * folder.metrics.stat().st_size
