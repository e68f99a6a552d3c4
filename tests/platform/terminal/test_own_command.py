"""Commands are printed by the name by which `platform` was called, so that a shell finds them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fixtures_home import make_home

from ablations.terminal import own_command as module
from ablations.terminal.own_command import as_called, own_command
from ablations.terminal.screen import Screen

NEXT = "Next: `platform sweep loo.yaml` continues dapo-s2; `platform` is the command, `platform.py` a file."
ELSEWHERE = "run `cd '/my runs' && platform sweep loo.yaml`"


@pytest.fixture
def called(monkeypatch, tmp_path):
    """Call `platform` by a name, in a folder, with these folders on the path."""

    def call(name: str, *path: Path) -> None:
        module._called.cache_clear()
        monkeypatch.setattr(sys, "argv", [name])
        monkeypatch.setenv("PATH", os.pathsep.join(map(str, path)))

    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "platform").touch(0o755)
    monkeypatch.chdir(tmp_path)
    yield call
    module._called.cache_clear()


def test_a_command_that_the_shell_finds_keeps_its_name(called, tmp_path):
    called(str(tmp_path / "bin" / "platform"), tmp_path / "bin")
    assert (own_command(), as_called(NEXT), as_called(ELSEWHERE)) == ("platform", NEXT, ELSEWHERE)
    called("/usr/lib/python3/pytest/__main__.py")
    assert (own_command(), as_called(NEXT)) == ("platform", NEXT)


def test_a_command_that_was_called_by_its_path_is_printed_with_it(called, tmp_path):
    called("bin/platform")
    assert own_command() == "bin/platform"
    assert as_called(NEXT) == (
        "Next: `bin/platform sweep loo.yaml` continues dapo-s2; `platform` is the command, `platform.py` a file."
    )
    assert as_called(ELSEWHERE) == f"run `cd '/my runs' && {tmp_path}/bin/platform sweep loo.yaml`"
    assert as_called(as_called(ELSEWHERE)) == as_called(ELSEWHERE)
    called("my bin/platform")
    assert as_called("`platform status`") == "`'my bin/platform' status`"


def test_the_console_prints_it(called, capsys):
    called("bin/platform")
    Screen(width=200).say(NEXT)
    Screen(width=200).print("`platform status` shows it")
    assert capsys.readouterr().out.splitlines()[0].startswith("Next: `bin/platform sweep loo.yaml` continues")


def test_advice_can_be_pasted_where_only_the_path_is_known(tmp_path):
    make_home(tmp_path / "ablation-runs")
    bin_ = Path(sys.executable).parent
    (tmp_path / "env").symlink_to(bin_)
    own = {name: value for name, value in os.environ.items() if name not in ("ABLATIONS_HOME", "PATH")}
    given = {"cwd": tmp_path, "env": own | {"PATH": "/usr/bin:/bin"}, "capture_output": True, "text": True}
    done = subprocess.run(["env/platform", "compare", "loo"], **given)
    (advice,) = [line for line in done.stdout.splitlines() if line.strip().endswith("and the method.")]
    again = advice.split("`")[1]
    assert again == "env/platform compare loo --explain"
    assert subprocess.run(["bash", "-c", again], **given).returncode == 0
