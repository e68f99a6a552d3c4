"""`platform reproduce` on a study that trains for real, from the claim to the card."""

import json
from collections import Counter
from typing import get_args

import pytest
from integration.conftest import read_metrics, write_study
from typer.testing import CliRunner

from ablations.cli import app
from ablations.findings.claim_card import ClaimOutcome

STUDY = """
name: fig0
doc: Does a larger learning rate train faster?
reference: scalerl
scale: seconds
variants:
  faster: {optimiser.learning_rate: {times: 4}}
seeds: [0, 1]
claims:
  - {variant: faster, of: level, says: up, by: 0.1, source: figure 0}
  - {variant: faster, of: ceiling, says: same, source: figure 0}
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the study in `sweeps/paper/`, in which commands are run."""
    write_study(tmp_path)
    (tmp_path / "sweeps/paper").mkdir()
    (tmp_path / "sweeps/paper/fig0.yaml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.studies
def test_a_study_is_trained_judged_and_judged_alike_by_the_same_command(here, platform, home):
    first = platform("reproduce", "fig0", "--as-written")
    assert "faster: level up by 0.1" in first.stdout
    assert "Different from the paper: The model has" in first.stdout
    folder = home / "sweeps/fig0"
    card = json.loads((folder / "card.json").read_text())
    assert (card["num_seeds"], len(card["claims"]), card["scale"]) == (2, 2, "seconds")
    assert card["claims"][0]["outcome"] in get_args(ClaimOutcome)
    counts = Counter(one["outcome"] for one in card["claims"])
    said = (folder / "card.md").read_text().splitlines()[0]
    assert all(f"{count} {outcome}" in said for outcome, count in counts.items())
    assert (folder / "curves.svg").read_text().startswith("<?xml")
    rows = read_metrics(home)
    # The study keeps the design that it was begun with, so nothing is designed and nothing trained.
    again = json.loads(platform("reproduce", "fig0", "--json").stdout)
    assert again == card
    assert read_metrics(home) == rows
    listed = json.loads(platform("reproduce", "--list", "--json").stdout)["studies"]
    assert f"# fig0: {next(line['outcome'] for line in listed if line['study'] == 'fig0')}" == said
    # A larger budget extends the runs, and the study keeps it.
    longer = json.loads(platform("reproduce", "fig0", "--budget", "2x", "--json").stdout)
    assert longer["budget_gpu_hours"] == 2 * card["budget_gpu_hours"]
    assert longer["num_seeds"] == card["num_seeds"]
    extended = read_metrics(home)
    assert extended.keys() == rows.keys()
    assert all(extended[run][: len(rows[run])] == rows[run] for run in rows)
    assert json.loads(platform("reproduce", "fig0", "--json").stdout) == longer
    refused = platform("reproduce", "fig0", "--budget", "1x", code=2).stderr
    assert "--budget 1 is below the 2 units per run" in refused
    assert json.loads((folder / "card.json").read_text()) == longer


def invoke(home, *arguments):
    """A command in this process."""
    return CliRunner().invoke(app, ["reproduce", *arguments, "--home", str(home)], env={"COLUMNS": "160"})


def test_a_design_says_what_it_rests_on_before_anything_trains(here, home, monkeypatch):
    monkeypatch.setattr("ablations.answers.simulated_runs.NUM_CURVES", 2)
    said = invoke(home, "fig0", "--dry-run").stdout
    assert "No earlier run of scale seconds in this home folder has a fit" in said
    assert "faster: same ceiling within 0.02" in said
    plan = json.loads(invoke(home, "fig0", "--dry-run", "--json").stdout)
    assert (plan["study"], plan["scale"], len(plan["claims"])) == ("fig0", "seconds", 2)
    assert plan["num_runs"] == 2 * plan["num_seeds"]
    refused = invoke(home, "fig0", "--yes", "--as-written").exception
    assert "--yes: no effect without --executor slurm" in str(refused)
    assert not (home / "runs").exists()
