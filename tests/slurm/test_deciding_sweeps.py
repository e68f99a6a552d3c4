"""Sweeps that decide while their jobs train: a stop rule and a search stay beside Slurm until the end."""

import re

import pytest

SEARCH = "{space: {optimiser.learning_rate: {low: 2.0e-4, high: 5.0e-3, log: true}}, trials: 6}"
TRAINS = "status.beat(threads=self.recipe.threads)"


def test_a_sweep_that_stops_runs_decides_while_its_jobs_train(study):
    study.budget = 3.0
    study.write(stop="{gain_below: 0.9, probability: 0.6}")
    said = study.submit()
    states = study.states()
    assert states["scalerl"] == "done"  # the reference is never stopped
    assert set(states.values()) <= {"done", "stopped"}
    assert "report" in said


@pytest.mark.studies
def test_a_search_whose_trials_all_fail_alike_is_held_and_goes_on_when_that_is_mended(study, source):
    path = source / "scalerl" / "run" / "loop.py"
    whole = path.read_text()
    assert TRAINS in whole
    path.write_text(whole.replace(TRAINS, 'raise RuntimeError("no such device")'))
    study.write(resources="at_once: 2", search=SEARCH)
    study.file.write_text(re.sub("leave_one_out:.*?(?=budget)", "", study.file.read_text(), flags=re.DOTALL))
    sweep = ("sweep", str(study.file), "--executor", "slurm", "--yes")
    environment = {"PYTHONPATH": str(source)}
    assert "7 jobs" in study.platform(*sweep, "--dry-run", **environment)
    said = study.platform(*sweep, code=2, **environment)
    assert "3 runs in a row failed: RuntimeError: no such device" in said
    # Three that failed, and what was in flight beside the third: not the reference and all six trials.
    assert 3 <= sum(len(one.runs) for one in study.submissions()) <= 5
    path.write_text(whole)
    study.platform(*sweep, code=None, **environment)
    assert [row["state"] for row in study.runs()] == ["done"] * 7
