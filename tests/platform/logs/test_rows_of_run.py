"""A program's own log becomes rows of the run log."""

import json

import pytest

from ablations.logs.rows_of_run import rows_of_run
from scalerl.recipe.command import ProgramOwnLog


def settings(**given) -> ProgramOwnLog:
    return ProgramOwnLog.model_validate({"path": "{folder}/log.jsonl", **given})


def test_scores_and_compute_are_those_worked_out_by_hand(tmp_path):
    path = tmp_path / "log.jsonl"
    rows = [{"step": 1, "ms": 1800.0}, {"step": 2, "ms": 5400.0, "acc": 25.0, "n": 64}, {"step": 3, "ms": 3600.0}]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in [*rows, {"step": 4, "ms": 7200.0, "acc": 50.0, "n": 32}]))
    found = rows_of_run(path, settings(score="acc / 100", compute="cumsum(ms) / 3600", samples="n"))
    assert found == [
        {"kind": "eval", "step": 2, "compute_gpu_hours": 2.0, "task": "score", "pass_rate": 0.25, "num_samples": 64},
        {"kind": "eval", "step": 4, "compute_gpu_hours": 5.0, "task": "score", "pass_rate": 0.5, "num_samples": 32},
    ]  # fmt: skip


def test_a_missing_column_is_named_with_the_key_of_the_sweep_file(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"step": 1, "loss": 0.5}\n')
    with pytest.raises(ValueError, match=r"log\.score"):
        rows_of_run(path, settings(score="acc", compute="step"))
