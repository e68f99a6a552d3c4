"""Falls of short curves, and what must not be taken for one."""

import tracemalloc

import numpy as np
import pytest

from ablations.errors import AblationsError
from ablations.fit.curve import Curve
from ablations.fit.fall import Fall, change_of, end_below_their_start, find_fall
from ablations.fit.fitting import fit_curve
from ablations.fit.words import in_words

TOUR = [0.959, 0.949, 0.770, 0.587, 0.418, 0.367, 0.360, 0.375, 0.360, 0.370, 0.367]
"""A run that lost what its warm start knew within ten evaluations."""


def curve(score: list[float], answers: int | None = 128) -> Curve:
    samples = None if answers is None else np.full(len(score), float(answers))
    return Curve(name="run", compute=np.arange(float(len(score))), score=np.array(score), samples=samples)


@pytest.mark.parametrize("answers", [None, 20, 128, 4000])
@pytest.mark.parametrize("num", [5, 6, 7, 9, 11])
def test_a_short_run_that_falls_from_its_start_has_fallen(num, answers):
    found = find_fall(curve(TOUR[:num], answers))
    assert found == Fall(peak=0, last=num - 1)


def test_four_readings_are_enough_if_their_answers_are_counted():
    assert find_fall(curve([0.96, 0.94, 0.58, 0.42])) == Fall(peak=0, last=3)
    assert find_fall(curve([0.96, 0.94, 0.42])) is None


@pytest.mark.parametrize("answers", [None, 200])
@pytest.mark.parametrize(("before", "after"), [(8, 3), (20, 4), (60, 3), (5, 5), (30, 30)])
def test_a_score_that_is_gone_at_once_has_fallen_however_long_the_run_was(before, after, answers):
    noise = 0.02 * np.random.default_rng(3).standard_normal(before + after)
    score = np.array([0.9] * before + [0.3] * after) + noise
    found = find_fall(curve(score.tolist(), answers))
    assert found is not None
    assert found.peak < before


@pytest.mark.parametrize("num", [8, 9, 10, 11, 12])
@pytest.mark.parametrize("end", [[0.37, 0.37], [0.66, 0.37], [0.70, 0.50, 0.37]])
def test_a_short_run_that_falls_only_at_its_end_has_fallen(num, end):
    noise = 0.01 * np.random.default_rng(1000 + num).standard_normal(num)
    score = np.array([0.96] * (num - len(end)) + end) + np.minimum(noise, 0.04)
    found = find_fall(curve(score.tolist(), None))
    assert found is not None
    assert score[found.peak] > 0.9
    assert fit_curve(curve(score.tolist(), None)).verdict == "fell"


def test_one_evaluation_at_the_end_of_a_short_run_is_no_fall_yet():
    assert find_fall(curve([0.96, 0.95, 0.96, 0.95, 0.96, 0.95, 0.96, 0.95, 0.96, 0.37], None)) is None


@pytest.mark.parametrize("sd", [0.01, 0.03, 0.05])
def test_few_short_runs_that_stay_or_rise_are_said_to_have_fallen(sd):
    alarms, runs = 0, 0
    for seed in range(1000, 1050):
        rng = np.random.default_rng(seed)
        for num in (6, 8, 10, 12):
            share = np.arange(num) / (num - 1)
            laws = [np.full(num, 0.6), 0.3 + 0.3 * share, 0.3 + 0.3 / (1 + (0.1 / np.maximum(share, 1e-9)) ** 1.9)]
            runs += len(laws)
            alarms += sum(find_fall(curve(list(law + sd * rng.standard_normal(num)), None)) is not None for law in laws)
    assert alarms <= 0.005 * runs


def test_a_short_rise_and_fall_ends_at_the_reading_that_is_due():
    score = [0.30, 0.50, 0.62, 0.60, 0.42, 0.33, 0.30, 0.75]
    assert find_fall(curve(score), fit_to=6.0) == Fall(peak=2, last=6)


@pytest.mark.parametrize("answers", [None, 100])
@pytest.mark.parametrize(
    "score",
    [
        [0.6, 0.6, 0.3, 0.3, 0.6, 0.6],  # has recovered
        [0.6, 0.61, 0.6, 0.3, 0.2, 0.3, 0.4, 0.5, 0.58, 0.6],  # recovers
        [0.6, 0.61, 0.6, 0.62, 0.6, 0.0],  # one failed evaluation
        [0.60, 0.55, 0.65, 0.50, 0.55, 0.50],  # three of 20 prompts
        [0.05, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],  # one of 20 prompts, once
        [0.96, 0.96, 0.95, 0.96, 0.95, 0.95, 0.95],
        [0.0] * 12,
        [1.0] * 12,
    ],
)
def test_what_recovers_or_is_noise_is_no_fall(score, answers):
    assert find_fall(curve(score, 20 if answers else None)) is None


def test_near_the_ceiling_where_noise_is_small_a_fall_of_a_few_hundredths_is_seen():
    # One evaluation of 4,000 answers has a standard error of .003 at .96, and the run itself at least .01.
    assert find_fall(curve([0.96, 0.958, 0.961, 0.95, 0.93, 0.915, 0.90, 0.89], 4000)) is not None


@pytest.mark.parametrize("answers", [20, 200, 4000])
@pytest.mark.parametrize("is_counted", [True, False])
def test_one_healthy_run_in_a_hundred_at_most_is_said_to_have_fallen(answers, is_counted):
    rng = np.random.default_rng(46)
    share = np.arange(11) / 10
    laws = [np.full(11, p) for p in (0.02, 0.3, 0.6, 0.88, 0.96)]
    laws += [start + 0.3 / (1 + (0.2 / np.maximum(share, 1e-9)) ** 1.9) for start in (0.0, 0.3, 0.6)]
    runs = [rng.binomial(answers, law) / answers for law in laws for _ in range(100)]
    alarms = sum(find_fall(curve(run.tolist(), answers if is_counted else None)) is not None for run in runs)
    assert alarms <= 0.01 * len(runs)


def test_a_fit_says_that_the_run_fell_and_one_that_is_too_short_gives_it_as_part_of_the_reason():
    fit = fit_curve(curve(TOUR))
    assert (fit.verdict, str(fit.asymptote), fit.A) == ("fell", "fell", None)
    assert "10 evaluations from 1 to 10 fall: the last ones lie below the highest before them" in in_words(fit)
    with pytest.raises(AblationsError, match=r"5 evaluations .*, which fell from 0.959 to 0.367; a fit needs"):
        fit_curve(curve(TOUR[:6]))


def test_runs_that_end_below_their_start_do_so_together_where_one_alone_could_be_noise():
    # From 77 to 68 of 100 answers: 1.5 standard errors of one run, and 3.3 of five together.
    falls = curve([0.77, 0.74, 0.75, 0.71, 0.69, 0.68, 0.66, 0.69, 0.68, 0.68], 100)
    assert find_fall(falls) is None
    change = change_of(falls)
    assert change is not None
    assert change.start == 0.77
    assert change.end == pytest.approx((0.69 + 0.68 + 0.68) / 3)
    assert not end_below_their_start([change])
    assert end_below_their_start([change] * 5)
    risen = change_of(curve([0.66, 0.7, 0.7, 0.7, 0.72, 0.7], 100))
    assert risen is not None
    assert not end_below_their_start([change] * 5 + [risen])
    assert not end_below_their_start([])


def test_the_change_of_a_long_run_takes_no_memory_for_pairs_of_readings():
    long = curve([0.5, 0.6] * 10_000)
    tracemalloc.start()
    change = change_of(long)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert change is not None
    assert change.end == pytest.approx(0.55, abs=1e-4)
    assert most < 100 * long.score.nbytes  # a matrix of all pairs of its last third is 2,200 times as large


def test_two_evaluations_of_a_failed_evaluator_at_the_end_of_a_long_run_are_no_fall():
    assert find_fall(curve([0.9] * 14 + [0.0] * 2, None)) is None
    assert find_fall(curve([0.9] * 13 + [0.0] * 2, None)) is not None
