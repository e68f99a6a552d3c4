"""Writes that fail for a moment are tried again, and what fails for good names its file."""

import errno
import os
from pathlib import Path

import pytest

from scalerl import durable
from scalerl.durable import error_text, write_atomically, write_part


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(durable, "PAUSES_S", (0.0,) * len(durable.PAUSES_S))


def failing(monkeypatch, code, times):
    """Let so many renames fail; returns the list of those that were tried."""
    replace, tried = Path.replace, []

    def renamed(self, target):
        tried.append(self)
        if len(tried) <= times:
            raise OSError(code, os.strerror(code))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", renamed)
    return tried


def test_a_rename_that_fails_for_a_moment_is_tried_again(tmp_path, monkeypatch):
    tried = failing(monkeypatch, errno.ESTALE, 3)
    write_atomically(tmp_path / "state", b"new")
    assert (tmp_path / "state").read_bytes() == b"new"
    assert len(tried) == 4
    part = write_part(tmp_path, "state", ".json", lambda path: path.write_bytes(b"{}"))
    assert (tmp_path / part["file"]).read_bytes() == b"{}"


def test_a_write_that_keeps_failing_ends_with_the_name_of_its_file(tmp_path, monkeypatch):
    tried = failing(monkeypatch, errno.EIO, 1000)
    with pytest.raises(OSError, match="Input/output error") as failed:
        write_atomically(tmp_path / "state", b"new")
    assert error_text(failed.value) == f"{tmp_path / 'state'}: Input/output error"
    assert len(tried) == len(durable.PAUSES_S) + 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("code", [errno.EROFS, errno.ENOSPC])
def test_what_no_other_try_can_mend_fails_soon(tmp_path, monkeypatch, code):
    tried = failing(monkeypatch, code, 1000)
    with pytest.raises(OSError, match=os.strerror(code)):
        write_atomically(tmp_path / "state", b"new")
    assert len(tried) == 2
