"""A comparison in words: nothing without its interval, its baseline and its seeds."""

import dataclasses
from typing import get_args

import pytest
from fixtures_home import make_home

from ablations.compare import Difference, Efficiency
from ablations.fit import Verdict
from ablations.results import Results, read_results
from ablations.summary import DIFFERENCES, EFFICIENCIES, FIT_VERDICTS, columns, interval_text, numbers, sentence


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A finished sweep with two seeds."""
    home, plan = make_home(tmp_path_factory.mktemp("home"), seeds=(0, 1))
    return read_results(home, plan)


def with_line(results: Results, name: str, **changes) -> Results:
    """The same results with other numbers in one line of the comparison."""
    lines = [
        dataclasses.replace(line, **changes) if line.curve == name else line for line in results.comparison.variants
    ]
    return dataclasses.replace(results, comparison=dataclasses.replace(results.comparison, variants=tuple(lines)))


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((0.61, 0.59, 0.633), "0.610 [0.590, 0.633]"),
        ((None, -0.1, None), "[-0.100, …]"),
        ((0.5, None, None), "0.500"),
        ((None, None, None), ""),
    ],
)
def test_an_interval_shows_which_ends_it_has(numbers, text):
    assert interval_text(*numbers, ".3f") == text


def test_every_verdict_has_a_meaning():
    assert set(FIT_VERDICTS) == set(get_args(Verdict))
    assert set(DIFFERENCES) == set(get_args(Difference))
    assert set(EFFICIENCIES) == set(get_args(Efficiency))


def test_a_sentence_names_both_numbers_of_seeds(results):
    said = sentence(results, results.variant("loo-loss"))
    assert said.startswith("loo-loss: ceiling down; more compute to the common target. A 0.5")
    assert said.count("(2 seeds)") == 2
    assert "against scalerl" in said


def test_a_difference_without_an_end_is_written_with_an_open_one(results):
    unbounded = with_line(results, "loo-loss", delta_A=None, delta_A_hi=None, difference="cannot tell")
    low = results.compared("loo-loss").delta_A_lo
    assert f"[{low:+.3f}, …] against scalerl" in sentence(unbounded, results.variant("loo-loss"))


def test_without_a_ratio_nothing_is_said_of_compute_but_that(results):
    nothing = dict.fromkeys(("compute_ratio", "compute_ratio_lo", "compute_ratio_hi"))
    without = with_line(results, "loo-loss", **nothing, efficiency="cannot tell")
    said = sentence(without, results.variant("loo-loss"))
    assert said.startswith("loo-loss: ceiling down; compute cannot be told apart. A 0.5")
    assert said.count("compute") == 1
    assert columns(without, results.variant("loo-loss"))["compute over scalerl's"] == ""


def test_every_line_has_the_same_columns(results):
    assert len({tuple(columns(results, variant)) for variant in results.variants}) == 1
    assert len({tuple(numbers(results, variant)) for variant in results.variants}) == 1
