"""A machine without Slurm lacks nothing, as long as nobody asks for a cluster."""

from pathlib import Path

import pytest
from places import ODD_NAMES
from typer.testing import CliRunner

from ablations.cli import app
from ablations.errors import AblationsError
from ablations.files.database import sqlite_url
from ablations.home.cancellation import Cancellation
from ablations.home.home import Home
from ablations.slurm import commands
from ablations.slurm.doctor.here import absolute
from ablations.slurm.doctor.probe import look_at_tracking
from ablations.slurm.pool import SlurmPool
from ablations.study.resources import Resources


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
    return [line for line in text.splitlines() if line.startswith("  error")]


def test_without_slurm_nothing_is_wrong_and_the_rest_is_looked_at(doctor):
    code, said = doctor()
    assert (code, errors(said)) == (0, [])
    assert "no Slurm here, so `platform sweep` trains on this machine" in " ".join(said.split())
    assert "home folder" in said
    assert max(map(len, said.splitlines())) <= 100


def test_who_asks_for_a_partition_is_told_that_there_is_no_slurm(doctor):
    code, said = doctor("--partition", "long")
    assert code == 1
    assert len(errors(said)) == 1
    assert "not in PATH: sbatch" in said
    assert "login node" in said


def test_half_of_slurm_is_an_error(doctor, programs):
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


def test_a_scale_without_a_study_is_refused(doctor):
    with pytest.raises(AblationsError, match="--scale belongs to --for"):
        doctor("--scale", "8b")


def test_a_store_in_a_folder_with_an_odd_name_can_be_used(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ODD_NAMES:
        Path(name).mkdir()
        assert look_at_tracking(sqlite_url(Path(name) / "mlflow.db")) == ""
        assert look_at_tracking((tmp_path / name / "mlruns").as_uri()) == ""
        assert look_at_tracking(str(tmp_path / name / "mlruns")) == ""
    assert "NotADirectoryError" in look_at_tracking(f"sqlite:///{Path(__file__)}/what%3F/mlflow.db")


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_relative_store_is_meant_from_the_current_folder_whatever_its_name(tmp_path, monkeypatch, name):
    (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / name)
    assert absolute("sqlite:///mlflow.db") == sqlite_url(tmp_path / name / "mlflow.db")
    assert absolute("mlruns") == f"{tmp_path}/{name}/mlruns"
    assert absolute("sqlite:////srv/mlflow.db?timeout=5") == "sqlite:////srv/mlflow.db?timeout=5"


def test_slurm_is_refused_a_home_folder_with_a_sign_that_it_replaces(tmp_path):
    with pytest.raises(AblationsError, match=r"home folder .*/runs%20a: Slurm replaces what follows % in the path"):
        SlurmPool(
            home=Home(tmp_path / "runs%20a"),
            sweep="loo",
            resources=Resources(),
            threads=1,
            cancelled=Cancellation(tmp_path / "cancelled"),
        )
