"""A machine without Slurm lacks nothing, as long as nobody asks for a cluster."""

from pathlib import Path

import pytest
from places import ODD_NAMES
from typer.testing import CliRunner

from ablations.cli import app
from ablations.files.database import sqlite_url
from ablations.slurm import commands
from ablations.slurm.doctor.here import absolute, look_at_tracking


@pytest.fixture
def doctor(tmp_path, monkeypatch):
    """`doctor("--partition", "long")` gives exit code and output, where PATH is a folder of programs."""
    monkeypatch.setenv("PATH", str(tmp_path / "programs"))
    monkeypatch.delenv("SLURM_CONF", raising=False)

    def doctor(*arguments):
        home = str(tmp_path / "home")
        result = CliRunner().invoke(app, ["doctor", "--home", home, *arguments], catch_exceptions=False)
        return result.exit_code, result.stdout

    return doctor


@pytest.fixture
def programs(tmp_path):
    """`programs("sbatch")` puts programs of these names into PATH."""

    def programs(*names):
        for name in names:
            path = tmp_path / "programs" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text("#!/bin/sh\nexit 1\n")
            path.chmod(0o755)

    return programs


def errors(text):
    return [line for line in text.splitlines() if line.startswith("error")]


def test_without_slurm_nothing_is_wrong_and_the_rest_is_looked_at(doctor):
    code, said = doctor()
    assert (code, errors(said)) == (0, [])
    assert "no Slurm here, so `platform sweep` trains on this machine" in " ".join(said.split())
    assert "home folder" in said
    assert max(map(len, said.splitlines())) <= 160


def test_a_home_folder_that_cannot_be_made_is_an_error(doctor, tmp_path):
    (tmp_path / "file").touch()
    code, said = doctor("--home", str(tmp_path / "file" / "home"))
    assert (code, len(errors(said))) == (1, 1)
    assert "Not a directory" in said


def test_half_of_slurm_and_a_partition_without_slurm_are_errors(doctor, programs):
    code, said = doctor("--partition", "long")
    assert (code, len(errors(said))) == (1, 1)
    assert "not in PATH: sbatch" in said
    assert "login node" in said
    programs("sbatch", "squeue")
    code, said = doctor()
    assert code == 1
    assert "not in PATH: srun, scancel, scontrol, sinfo" in said


@pytest.mark.parametrize(
    ("asked", "conf", "message", "code"),
    [
        ([], None, "Could not establish a configuration source", 0),
        (["--partition", "long"], None, "Could not establish a configuration source", 1),
        ([], "/nowhere/slurm.conf", "Could not establish a configuration source", 1),
        ([], None, "Connection refused", 1),
    ],
)
def test_commands_without_a_cluster_are_a_warning_where_none_was_asked_for(
    asked, conf, message, code, doctor, programs, monkeypatch
):
    def ping():
        raise commands.SlurmSilent(f"scontrol: {message}")

    programs(*commands.NEEDED)
    monkeypatch.setattr(commands, "ping", ping)
    if conf:
        monkeypatch.setenv("SLURM_CONF", conf)
    found, said = doctor(*asked)
    assert found == code
    assert ("no cluster is configured" in said) == (code == 0)


def test_a_study_is_examined_without_slurm_too(doctor):
    code, said = doctor("--for", "fig7")
    assert (code, errors(said)) == (0, [])
    assert "27 runs of 9 variants at scale bench" in said
    code, said = doctor("--for", "fig7", "--scale", "8b")
    assert (code, len(errors(said))) == (1, 1)
    assert "models/Llama-3.1-8B is not a folder" in " ".join(said.split())


def test_a_store_in_a_folder_with_an_odd_name_can_be_used(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ODD_NAMES:
        Path(name).mkdir()
        assert look_at_tracking(sqlite_url(Path(name) / "mlflow.db")) == ""
        assert look_at_tracking((tmp_path / name / "mlruns").as_uri()) == ""
        assert look_at_tracking(str(tmp_path / name / "mlruns")) == ""
    assert "NotADirectoryError" in look_at_tracking(f"sqlite:///{Path(__file__)}/what%3F/mlflow.db")


def test_a_relative_store_is_meant_from_the_current_folder(tmp_path, monkeypatch):
    (folder := tmp_path / ODD_NAMES[1]).mkdir()
    monkeypatch.chdir(folder)
    assert absolute("sqlite:///mlflow.db") == sqlite_url(folder / "mlflow.db")
    assert absolute("mlruns") == f"{folder}/mlruns"
    assert absolute("sqlite:////srv/mlflow.db?timeout=5") == "sqlite:////srv/mlflow.db?timeout=5"
