"""`platform compare FOLDER...`: runs that scripts have logged by themselves."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ablations import start
from ablations.cli import app
from ablations.errors import AblationsError
from ablations.imports.from_scripts import script_runs


def log_runs(folder: Path, *, top: float, seeds: int = 2) -> None:
    """Runs whose pass rate rises from 0.2 to `top` as eq. 1 with B 2 and C_mid 20, a little higher for seed 1."""
    for seed in range(seeds):
        run = start(folder / f"run-{seed}", seed=seed)
        for step in range(41):
            rise = 1 / (1 + (20 / step) ** 2) if step else 0.0
            run.log(step=step, compute=step, right=round(4000 * (0.2 + (top - 0.2) * rise)) + 4 * seed, of=4000)


def test_two_folders_are_two_variants_with_the_seeds_of_their_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log_runs(Path("own-runs/first"), top=0.8)
    log_runs(Path("own-runs/second"), top=0.6)
    result = CliRunner().invoke(app, ["compare", "own-runs/first", "own-runs/second", "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["reference"] == "first"
    assert [(one["curve"], one["num_seeds"]) for one in found["variants"]] == [("first", 2), ("second", 2)]
    assert [one["A"] for one in found["variants"]] == pytest.approx([0.8, 0.6], abs=0.002)
    assert found["variants"][1]["level_verdict"] == "level down"


def test_two_runs_with_one_seed_are_refused(tmp_path):
    log_runs(tmp_path / "a", top=0.8, seeds=1)
    start(tmp_path / "a" / "again", seed=0)
    with pytest.raises(AblationsError, match=r"again and .*run-0 both have seed 0; pass another seed"):
        script_runs([tmp_path / "a"])


def test_a_folder_without_a_seed_says_how_to_compare_the_runs_of_a_sweep(tmp_path):
    log_runs(tmp_path / "a", top=0.8, seeds=1)
    (tmp_path / "a" / "run-0" / "run.json").unlink()
    with pytest.raises(AblationsError, match=r"run.json: no seed .*Compare the runs of a sweep by the name of"):
        script_runs([tmp_path / "a"])
