"""Commands that messages name: given as written in another folder, they train the same runs."""

import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from fixtures_home import TRUTH, make_plan, write_run
from places import REPOSITORY

from ablations.cli.output import command_given
from ablations.home.home import Home
from ablations.home.plan import Plan
from ablations.home.start_command import (
    check_command,
    design_command,
    folder_given,
    longer_command,
    more_seeds_command,
    start_command,
)
from ablations.home.started_sweep import StartedSweep
from ablations.running.make_plan import make_plan as plan_of_study
from ablations.study.expand import expand

SMALL = """\
name: small
reference: scalerl
scales: [scales/tiny.yaml, bench]
axes: {loss.type: [dapo]}
seeds: [0, 1]
budget: {compute: 3}
"""


def started(home: Path, command: str, **changes) -> StartedSweep:
    """A sweep in this home folder, started by this command."""
    return StartedSweep(home=Home(home), plan=replace(make_plan(), command=command, **changes))


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    """A project whose sweep file names a scale by its path; the current folder is another."""
    folder = tmp_path / "my project"
    (folder / "sweeps" / "scales").mkdir(parents=True)
    (folder / "sweeps" / "small.yaml").write_text(SMALL)
    tiny = (REPOSITORY / "recipes" / "scales" / "smoke.yaml").read_text()
    (folder / "sweeps" / "scales" / "tiny.yaml").write_text(tiny)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.delenv("ABLATIONS_HOME", raising=False)
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("home", ["ablation-runs", "kept/runs"])
def test_an_advised_command_given_as_written_in_another_folder_trains_the_runs_of_the_sweep(
    project, home, tmp_path, monkeypatch
):
    file, scale = Path("sweeps/small.yaml"), "scales/tiny.yaml"
    where = Home(project / home)
    monkeypatch.setattr(sys, "argv", ["platform", "sweep", str(file), "--set", "batch.prompts=8", "--home", home])
    study = expand(file, scale=scale, sets=["batch.prompts=8"])
    plan = plan_of_study(
        study, "small@tiny", budget=None, command=command_given(where, scale=scale), folder=folder_given(where)
    )
    sweep = StartedSweep(home=where, plan=plan)
    write_run(where, study.runs[0].id, TRUTH["scalerl"], state="failed")
    monkeypatch.chdir(tmp_path)
    for command in (start_command(sweep), more_seeds_command(sweep), longer_command(sweep, 2 * plan.budget_gpu_hours)):
        done = subprocess.run(
            ["bash", "-c", f"{command} --dry-run --json"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert {run["id"] for run in found["runs"]} == {run.id for run in study.runs}, command
        assert found["runs"][0]["state"] == "failed"  # read from the home folder of the sweep


def test_the_folder_is_the_one_of_the_plan_if_it_still_has_the_file(project, tmp_path, monkeypatch):
    home = project / "ablation-runs"
    sweep = started(home, "platform sweep sweeps/small.yaml", folder="..")
    assert start_command(sweep) == "platform sweep sweeps/small.yaml"
    monkeypatch.chdir(tmp_path)
    assert start_command(sweep) == f"cd {shlex.quote(str(project))} && platform sweep sweeps/small.yaml"
    (project / "sweeps" / "small.yaml").unlink()
    assert start_command(sweep) == f"platform sweep sweeps/small.yaml --home {shlex.quote(str(home))}"


def test_a_command_names_its_home_folder_unless_it_finds_it(project, tmp_path, monkeypatch):
    sweep = started(project / "ablation-runs", "platform sweep sweeps/small.yaml")
    assert start_command(sweep) == "platform sweep sweeps/small.yaml"
    monkeypatch.setenv("ABLATIONS_HOME", str(tmp_path / "other"))
    assert start_command(sweep) == f"platform sweep sweeps/small.yaml --home {shlex.quote(str(sweep.home.path))}"
    moved = started(tmp_path / "moved", "platform sweep sweeps/small.yaml --home=ablation-runs --jobs 2")
    assert start_command(moved) == f"platform sweep sweeps/small.yaml --jobs 2 --home {tmp_path / 'moved'}"


def test_a_job_that_has_ended_is_not_waited_for_again(project):
    sweep = started(project / "ablation-runs", "platform sweep a.yaml --executor slurm --after 17 --yes")
    assert start_command(sweep) == "platform sweep a.yaml --executor slurm --yes"


def test_a_plan_of_earlier_versions_names_no_scale_so_its_own_is_added(tmp_path):
    path = tmp_path / "plan.json"
    one = replace(make_plan(), sweep="steps@smoke", scale="smoke")
    for given, found in (
        ("platform sweep steps.yaml", "platform sweep steps.yaml --scale smoke"),
        ("platform sweep steps.yaml --scale=smoke", "platform sweep steps.yaml --scale=smoke"),
        ("", ""),
    ):
        replace(one, command=given).write(path)
        assert Plan.read(path).command == found
    replace(one, sweep="steps", command="platform sweep steps.yaml").write(path)
    assert Plan.read(path).command == "platform sweep steps.yaml"


def test_a_reproduction_keeps_its_seeds_so_more_of_them_are_a_sweep_of_its_file(tmp_path, monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    home = tmp_path / "runs"
    for given in ("fig4a --scale smoke --as-written --yes", "--all --scale smoke"):
        sweep = started(home, f"platform reproduce {given} --home {home}", sweep="fig4a@smoke")
        trained = f"platform sweep sweeps/paper/fig4a.yaml --scale smoke --home {home} --budget 2000h"
        assert more_seeds_command(sweep) == trained
        assert design_command(sweep) == trained.replace("sweep", "design", 1)
        assert check_command(sweep) == "platform check sweeps/paper/fig4a.yaml --scale smoke"


@pytest.mark.parametrize(
    ("command", "found"),
    [
        (
            "platform sweep 'my study.yaml' --scale smoke --set a=1 --jobs 2 --home h --yes --executor slurm",
            "platform design 'my study.yaml' --scale smoke --set a=1 --home h",
        ),
        (
            "platform sweep loo.yaml --budget=2 --dry-run --json --home=h",
            "platform design loo.yaml --budget=2 --home=h",
        ),
        ("platform sweep --home h --budget 2 loo.yaml", "platform design --home h --budget 2 loo.yaml"),
    ],
)
def test_the_command_keeps_what_makes_the_study(tmp_path, monkeypatch, command, found):
    monkeypatch.chdir(tmp_path)
    assert design_command(started(tmp_path / "h", command)) == found


@pytest.mark.parametrize("given", ["--budget 1x --jobs 2", "--budget=1x --jobs 2", "--jobs 2"])
def test_a_longer_budget_is_exact_and_takes_the_place_of_the_one_given(tmp_path, monkeypatch, given):
    monkeypatch.chdir(tmp_path)
    sweep = started(tmp_path / "ablation-runs", f"platform sweep loo.yaml {given}")
    assert longer_command(sweep, 12345.625) == "platform sweep loo.yaml --jobs 2 --budget 12345.625h"
