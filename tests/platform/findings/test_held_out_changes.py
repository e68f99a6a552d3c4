"""A held-out set that changes in the middle of a run is said; curves that rise fast, or by chance, are left alone."""

import numpy as np
import pytest
from unfitted_runs import unfitted_run

from ablations.findings.held_out_changes import remarks_on_held_out_changes

AT = np.arange(40.0)


def scores(seed: int, *, half: float = 10, answers: int = 500, start: float = 0.2) -> np.ndarray:
    return np.random.default_rng(seed).binomial(answers, start + 0.4 * AT / (AT + half)) / answers


def said(*curves, samples=None) -> list[str]:
    runs = [unfitted_run("new", seed, compute=AT, score=one, samples=samples) for seed, one in enumerate(curves)]
    return [one.text for one in remarks_on_held_out_changes(runs, "GPU-hours")]


def test_a_score_that_jumps_and_stays_is_named_with_both_scores():
    before = scores(1, answers=5000)
    easier = before + np.where(AT >= 20, 0.2, 0.0)
    (text,) = said(scores(2), easier)
    assert text.startswith(
        "new: the held-out set of 1 of 2 seeds may have changed during the run (seed 1: from "
        f"{before[19]:.3f} to {easier[20]:.3f} between 19 and 20 GPU-hours)"
    )


def test_another_number_of_answers_is_named_without_a_jump():
    (text,) = said(scores(1), samples=np.where(AT < 15, 400, 100))
    assert "(seed 0: from 400 to 100 answers between 14 and 15 GPU-hours)" in text
    assert not said(scores(1), samples=400 - AT % 3)  # answers that were cut off are not judged


@pytest.mark.parametrize(("half", "start"), [(0.3, 0.0), (2, 0.0), (10, 0.2), (100, 0.5)])
def test_curves_of_training_are_left_alone(half, start):
    for answers in (20, 30, 100, 500, 5000):
        assert not said(*(scores(seed, half=half, start=start, answers=answers) for seed in range(100)))


def test_a_fast_rise_over_several_evaluations_is_left_alone():
    late = 0.1 + 0.5 / (1 + np.exp(-(AT - 20) / 1.5))
    assert not said(late + np.random.default_rng(0).normal(0, 0.01, AT.size))
