"""Machine code of sources that are gone is removed when all kernels are compiled; what a process uses stays."""

import io
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from scalerl.model import first_use
from scalerl.model.kernels.kept_code import mark_used, remove_unused

DAY_S = 86400.0
NOW = 1.7e9


def made(folder: Path, *, unused_days: float) -> Path:
    folder.mkdir(parents=True)
    (folder / "kernel.nbc").write_bytes(b"code")
    used = NOW - unused_days * DAY_S
    os.utime(folder, (used, used))
    return folder


@pytest.fixture
def own(tmp_path) -> Path:
    return made(tmp_path / ("0" * 16), unused_days=30)


def test_code_that_nobody_has_used_for_a_week_is_removed_and_nothing_else(own):
    made(own.parent / ("a" * 16), unused_days=7.1)
    recent = made(own.parent / ("b" * 16), unused_days=6.9)
    foreign = made(own.parent / "kernels_0123456789abcdef", unused_days=30)
    remove_unused(own, NOW)
    assert set(own.parent.iterdir()) == {own, recent, foreign}
    assert (recent / "kernel.nbc").read_bytes() == b"code"


def test_a_process_that_reads_kept_code_keeps_it(own):
    other = made(own.parent / ("a" * 16), unused_days=30)
    mark_used(other)
    remove_unused(own, other.stat().st_mtime + 6 * DAY_S)
    assert other.exists()


def test_what_another_process_removes_at_once_is_no_error(own, monkeypatch):
    made(own.parent / ("a" * 16), unused_days=30)
    gone = own.parent / ("b" * 16)
    monkeypatch.setattr(Path, "iterdir", lambda _: iter([gone, own.parent / ("a" * 16)]))
    remove_unused(own, NOW)
    assert not (own.parent / ("a" * 16)).exists()


@pytest.mark.parametrize(("asked", "stays"), [(b"", False), (b"one kernel", True)])
def test_the_process_that_compiles_all_kernels_removes_unused_code(own, monkeypatch, asked, stays):
    other = made(own.parent / ("a" * 16), unused_days=30)
    monkeypatch.setattr(first_use, "folder_of_code", lambda: own)
    monkeypatch.setattr(first_use, "use_every_kernel", lambda: None)
    monkeypatch.setattr(first_use.pickle, "loads", lambda _: ("scalerl.model.first_use", "compiles", None))
    monkeypatch.setattr(first_use, "compiles", SimpleNamespace(compile=lambda _: None), raising=False)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(asked)))
    first_use.main()
    assert other.exists() == stays
    assert own.exists()
