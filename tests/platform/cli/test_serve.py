"""The servers of pages start in any folder, whatever files lie in it."""

import subprocess

import pytest

from ablations.cli import serve


@pytest.mark.parametrize("name", ["dashboard", "mlflow"])
def test_a_file_named_like_a_library_does_not_stand_in_for_it(name, monkeypatch, tmp_path):
    """pandas imports dateutil, which imports six."""
    (tmp_path / "six.py").write_text("raise SystemExit('imported from the folder of the user')")
    started = []
    monkeypatch.setattr(serve, "become", started.append)
    monkeypatch.setattr(serve, "QUIET_MLFLOW", {})  # the environment is that of the other tests too
    monkeypatch.setenv("ABLATIONS_HOME", "")
    monkeypatch.setenv(serve.TOKEN_VARIABLE, "word")
    getattr(serve, name)(home=tmp_path)
    (command,) = started
    interpreter = command[: command.index("-m")]
    done = subprocess.run(
        [*interpreter, "-c", "import pandas"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
