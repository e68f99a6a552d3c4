"""What ends a command from outside: Ctrl-C gives 3, and the end of a terminal stops a sweep with its runs."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from fixtures_home import make_home
from own_programs import HELD, write_study
from waiting import wait_until

from ablations import cli
from ablations.home.home import Home
from ablations.home.started_sweep import read_sweep
from ablations.home.state import State, read_state


def command(*arguments: str, **options) -> subprocess.Popen:
    line = [sys.executable, "-m", "ablations.cli", *arguments]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


def test_ctrl_c_gives_3_also_where_typer_makes_130_of_it(monkeypatch, capsys):
    monkeypatch.setattr(cli, "app", lambda **_: 130)
    monkeypatch.setattr(sys, "argv", ["platform", "report"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 3
    assert capsys.readouterr().err == "stopped: interrupted\n"


def test_ctrl_c_ends_a_push_to_a_server_that_does_not_answer_with_3(tmp_path):
    make_home(tmp_path / "home")
    with socket.create_server(("127.0.0.1", 0)) as server:
        uri = f"http://127.0.0.1:{server.getsockname()[1]}"
        process = command("sync", "loo", "--home", str(tmp_path / "home"), "--tracking-uri", uri)
        server.settimeout(120)
        connection, _ = server.accept()
        with connection:
            process.send_signal(signal.SIGINT)
            output, _ = process.communicate(timeout=250)
    assert process.returncode == 3, output
    assert "stopped: interrupted" in output
    assert "Traceback" not in output


def wall_home(folder: Path, store: Path) -> tuple[Home, Path, Path]:
    finish = folder / "finish"
    study = write_study(
        folder / "study", HELD.format(finish=str(finish), last=30), seeds="[0]", budget="{compute: 300}"
    )
    (folder / "home").mkdir()
    (folder / "home" / "mlflow.db").write_bytes(store.read_bytes())
    return Home(folder / "home"), study, finish


@pytest.mark.studies
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_signal_to_the_command_alone_ends_its_runs_too(tmp_path, empty_store, number):
    home, study, _ = wall_home(tmp_path, empty_store)
    process = command("sweep", str(study), "--home", str(home.path), start_new_session=True)
    try:
        folders = wait_until(lambda: [*home.path.glob("runs/*/work")], "a run", process=process)
        wait_until(lambda: all(read_state(home.run(one.parent.name), 300).step > 0 for one in folders), "a step")
        os.kill(process.pid, number)
        output, _ = process.communicate(timeout=250)
    finally:
        process.kill()
    assert process.returncode == 3, output
    states = [read_state(home.run(run.id), 300) for run in read_sweep(home, "own").plan.runs]
    assert {one.state for one in states} <= {State.CANCELLED, State.PENDING}
    assert all(one.pid is None for one in states)


@pytest.mark.studies
def test_a_command_that_ignores_the_end_of_its_terminal_goes_on(tmp_path, empty_store):
    home, study, finish = wall_home(tmp_path, empty_store)
    process = command(
        "sweep", str(study), "--home", str(home.path), preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
    )
    try:
        wait_until(lambda: [*home.path.glob("runs/*/work")], "a run", process=process)
        process.send_signal(signal.SIGHUP)
        finish.touch()
        output, _ = process.communicate(timeout=200)
    finally:
        process.kill()
    assert process.returncode == 0, output
