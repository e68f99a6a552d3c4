"""What killed exports and imports leave behind: the next one removes it, and nothing of those at work."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fixtures_home import make_home
from waiting import wait_until

from ablations.home.home import Home
from ablations.home.started_sweep import read_sweep
from ablations.imports.from_archive import import_sweep
from ablations.running.archive import export_sweep
from ablations.running.delete import remove_sweep, what_goes
from ablations.running.leftovers import temporary_in

HEAVY_BYTES = 40_000_000


@pytest.fixture
def sweep(tmp_path):
    """A sweep whose export and import take seconds."""
    sweep = make_home(tmp_path / "here")
    work = sweep.run(sweep.plan.runs[0].id).work
    work.mkdir()
    for number in range(8):
        (work / f"weights-{number}").write_bytes(os.urandom(HEAVY_BYTES // 8))
    return sweep


def hidden(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def killed(number: signal.Signals, folder: Path, *arguments: str) -> int:
    """The exit code of a command that got a signal as soon as its temporary file was there."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ablations.cli", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),  # ignored by what `nohup` has started
    )
    try:
        wait_until(lambda: folder.exists() and hidden(folder), "its temporary file", process=process, every_s=0.005)
        process.send_signal(number)
        return process.wait(60)
    finally:
        process.kill()
        process.wait()


def test_a_killed_export_leaves_what_the_next_one_removes(sweep, tmp_path):
    archives = tmp_path / "archives"
    archives.mkdir()
    options = ("export", "loo", "--checkpoints", "--home", str(sweep.home.path), "--to", str(archives / "loo.tar.gz"))
    assert killed(signal.SIGKILL, archives, *options) == -signal.SIGKILL
    assert len(hidden(archives)) == 1
    living = temporary_in(archives, "export")  # of this process
    living.touch()
    (archives / ".notes.123.tmp").touch()  # not ours
    export_sweep(sweep, archives / "other.tar.gz")
    assert sorted(hidden(archives)) == sorted([living.name, ".notes.123.tmp"])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_an_export_that_is_asked_to_stop_cleans_up_and_says_that_it_is_not_finished(sweep, tmp_path, number):
    archives = tmp_path / "archives"
    archives.mkdir()
    options = ("export", "loo", "--checkpoints", "--home", str(sweep.home.path), "--to", str(archives / "loo.tar.gz"))
    assert killed(number, archives, *options) == 3
    assert list(archives.iterdir()) == []


@pytest.mark.parametrize("next_one", ["import", "delete"])
def test_a_killed_import_leaves_what_the_next_command_removes(sweep, tmp_path, next_one):
    archive, home = tmp_path / "loo.tar.gz", Home(tmp_path / "there")
    export_sweep(sweep, archive, with_checkpoints=True)
    make_home(home.path)
    options = ("import", str(archive), "--as", "more", "--home", str(home.path))
    assert killed(signal.SIGKILL, home.path, *options) == -signal.SIGKILL
    (home.path / ".import-abcd1234").mkdir()  # of an earlier version
    assert len(hidden(home.path)) == 2
    if next_one == "import":
        import_sweep(home, archive, name="again")
    else:
        remove_sweep(what_goes(read_sweep(home, "loo")))
    assert hidden(home.path) == []


def test_an_import_that_is_asked_to_stop_leaves_the_home_as_before(sweep, tmp_path):
    archive, home = tmp_path / "loo.tar.gz", tmp_path / "there"
    export_sweep(sweep, archive, with_checkpoints=True)
    assert killed(signal.SIGTERM, home, "import", str(archive), "--home", str(home)) == 3
    assert [path.name for path in home.rglob("*") if path.is_file()] == []
