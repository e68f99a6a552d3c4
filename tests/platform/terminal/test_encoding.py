"""Output that is not UTF-8: every command says what it has to say, in ASCII where it must."""

import os
import subprocess
import sys

import pytest
from fixtures_home import make_home

from ablations.terminal.encoding import ASCII_SIGNS, HANDLER


def test_a_sign_stands_for_a_sign_of_the_same_width():
    assert all(len(ascii_sign) == 1 and ascii_sign.isascii() for ascii_sign in ASCII_SIGNS.values())
    assert "A − B ≥ 0.5 …".encode("ascii", HANDLER) == b"A - B > 0.5 ?"
    assert "÷ ± ≥".encode("latin-1", HANDLER) == "÷ ± >".encode("latin-1")
    assert "日本".encode("ascii", HANDLER) == b"??"


@pytest.mark.parametrize(
    ("command", "encoding"), [(["compare", "--explain"], "latin-1"), (["compare", "nosuch−sweep"], "ascii")]
)
def test_no_command_ends_with_a_traceback(tmp_path, encoding, command):
    make_home(tmp_path).write_plan()
    done = subprocess.run(
        [sys.executable, "-m", "ablations.cli", *command, "--home", str(tmp_path)],
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": encoding},
        timeout=550,
    )
    assert b"Traceback" not in done.stderr
    assert done.returncode == (2 if "nosuch−sweep" in command else 0), done.stderr
    assert (done.stdout + done.stderr).decode(encoding)
