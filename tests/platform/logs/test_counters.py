"""Compute of each step and compute so far are told apart, and neither passes for the other."""

import json

import numpy as np
import pytest
from imported import study_of_logs

from ablations.errors import AblationsError
from ablations.logs.meaning import LogMeaning

COUNTER = "cumsum(where(diff(h) > 0, diff(h), h))"
EACH = 0.1 + 0.01 * np.random.default_rng(0).random(60) + 0.001 * np.arange(60)
"""GPU-hours of each of 60 steps, which grow with the answers."""


def run_of(tmp_path, hours, compute: str, *, first: int = 1):
    rows = [
        {"step": step, "h": float(one)} | ({"acc": 0.2 + step / 1000} if step % 5 == 0 else {})
        for step, one in enumerate(hours, start=first)
    ]
    (path := tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (run,) = study_of_logs([path], LogMeaning(score="acc", compute=compute)).runs
    return run


def refused(tmp_path, hours, compute: str) -> str:
    with pytest.raises(AblationsError) as caught:
        run_of(tmp_path, hours, compute)
    return str(caught.value)


def test_the_right_expression_of_each_is_read_without_a_note(tmp_path):
    resumed = np.concatenate([np.cumsum(EACH[:30]), np.cumsum(EACH[30:])])
    for hours, compute in ((EACH, "cumsum(h)"), (np.cumsum(EACH), "h"), (resumed, COUNTER)):
        run = run_of(tmp_path, hours, compute)
        assert run.curve.compute == pytest.approx(np.cumsum(EACH)[4::5], rel=1e-12)
        assert run.warnings == ()


def test_a_value_of_each_step_is_not_taken_for_a_counter(tmp_path):
    falls = int(np.sum(np.diff(EACH) < 0))
    said = refused(tmp_path, EACH, COUNTER)
    right = (
        f"h falls at {falls} of 60 steps, as a value of each step does and a counter does not; the total is cumsum(h)"
    )
    assert said.endswith(right)
    assert refused(tmp_path, EACH, "h").endswith(right)
    assert "compute falls at" in refused(tmp_path, EACH, "h * 8")


def test_a_counter_is_not_summed(tmp_path):
    said = refused(tmp_path, np.cumsum(EACH), "cumsum(h)")
    assert "h never falls over 60 steps, from 0.1" in said
    assert "so it is a sum already; leave out cumsum" in said


def test_a_value_of_each_step_that_rises_is_said(tmp_path):
    run = run_of(tmp_path, 0.1 + 0.0001 * np.arange(60), "h")
    assert run.warnings == (
        "compute is 0.1 at step 1 already, and rises by 0.0001 a step; if h is the compute of each step, write "
        "cumsum(h); if it counts from before training, subtract its first value",
    )


def test_a_run_that_continues_another_with_compute_from_0_is_said(tmp_path):
    run = run_of(tmp_path, np.cumsum(EACH), "h", first=41)
    assert run.warnings == (
        f"the log begins at step 41 with compute {EACH[0]:g}, so that of the steps before is missing; if this run "
        "continues another, add what that one took, or join both logs",
    )
    assert run_of(tmp_path, 4.2 + np.cumsum(EACH), "h", first=41).warnings == ()


def test_equal_and_few_times_say_nothing(tmp_path):
    run_of(tmp_path, np.full(60, 0.1), "cumsum(h)")
    run_of(tmp_path, np.arange(1.0, 16.0), "cumsum(h)")
