"""A score that is the best so far is said; scores of each evaluation, rounded or coarse, are left alone."""

import numpy as np
import pytest
from unfitted_runs import unfitted_run

from ablations.findings.best_so_far import remarks_on_best_so_far

AT = np.arange(40.0)


def scores(seed: int, *, half: float = 40, answers: int = 1319) -> np.ndarray:
    return np.random.default_rng(seed).binomial(answers, 0.2 + 0.4 * AT / (AT + half)) / answers


def said(*curves) -> list[str]:
    runs = [unfitted_run("new", seed, compute=np.arange(one.size), score=one) for seed, one in enumerate(curves)]
    return [one.text for one in remarks_on_best_so_far(runs)]


def test_a_score_that_is_the_best_so_far_is_said_with_its_seed():
    assert said(scores(1), np.maximum.accumulate(scores(2))) == [
        "new: the score of 1 of 2 seeds may be the best so far (seed 1: it repeats and never falls). The best of many "
        "scores flatters a run, and the more evaluations, the more; read the score of each."
    ]


@pytest.mark.parametrize("answers", [30, 100, 300, 1319, 5000])
@pytest.mark.parametrize("half", [0.3, 2, 10, 40, 400])
def test_scores_of_each_evaluation_are_left_alone(answers, half):
    assert not said(*(scores(seed, half=half, answers=answers) for seed in range(100)))


@pytest.mark.parametrize("digits", [2, 3, 4])
@pytest.mark.parametrize("steepness", [0.7, 1, 4])
def test_smooth_curves_that_are_rounded_are_left_alone(digits, steepness):
    for half in (1, 10, 40, 400):
        power = AT**steepness
        assert not said(np.round(0.2 + 0.4 * power / (power + half**steepness), digits))


def test_scores_at_their_ends_and_short_runs_are_left_alone():
    rise = np.linspace(0.1, 0.9, 8)
    assert not said(np.concatenate([np.zeros(10), rise, np.ones(10)]))
    assert not said(np.maximum.accumulate(scores(2))[:15])
    assert not said(np.full(40, 0.3))
