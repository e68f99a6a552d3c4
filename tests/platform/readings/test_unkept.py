"""A home folder that cannot be written is read, and it is said once that each command fits again."""

import os

import pytest
from fixtures_home import make_home
from typer.testing import CliRunner

from ablations.cli import app
from ablations.home.started_sweep import StartedSweep


@pytest.fixture
def blocked(tmp_path) -> StartedSweep:
    """A sweep with a file where the readings of each run go, which stops root too; its logs are at rest."""
    sweep = make_home(tmp_path)
    for run in sweep.plan.runs:
        folder = sweep.run(run.id)
        os.utime(folder.metrics, (1e9, 1e9))
        (folder.path / "readings").touch()
    return sweep


def said_of(sweep: StartedSweep) -> str:
    return f"Fits are not cached because {sweep.home.path} is not writable (File exists); every command fits again."


@pytest.mark.parametrize(
    "command",
    [["compare"], ["compare", "--json"], ["paper"], ["fit", "loo"], ["forecast"], ["report"]],
    ids=" ".join,
)
def test_every_command_that_fits_says_it_once_on_standard_error(blocked, command):
    result = CliRunner().invoke(app, [*command, "--home", str(blocked.home.path)])
    assert result.exit_code == 0, result.output
    assert result.stderr == f"warning: {said_of(blocked)}\n"
    assert "not kept" not in result.stdout


def test_a_report_of_a_home_that_cannot_be_written_goes_elsewhere(tmp_path):
    sweep = make_home(tmp_path / "home")
    (sweep.folder / "report-csv").touch()
    refused = CliRunner().invoke(app, ["report", "--format", "csv", "--home", str(sweep.home.path)])
    assert f"{sweep.folder} is not writable (File exists); choose another folder with --to FOLDER" in str(
        refused.exception
    )
    told = ["report", "--format", "csv", "--home", str(sweep.home.path), "--to", str(tmp_path / "out" / "here")]
    result = CliRunner().invoke(app, told)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{tmp_path / 'out' / 'here' / 'report-csv'}\n"
    assert (tmp_path / "out" / "here" / "report-csv" / "curves.csv").stat().st_size > 0
