"""A comparison in words: nothing without its interval, its baseline and its seeds."""

import dataclasses
from typing import get_args

import pytest
from fixtures_home import make_home

from ablations.fit.asymptote import VERDICT_MEANINGS, Verdict
from ablations.verdict.results import Results, read_results
from ablations.verdict.rules import Difference, Efficiency, LevelDifference
from ablations.verdict.words import (
    DIFFERENCES,
    EFFICIENCIES,
    LEVELS,
    SAID_BY_THE_PAPER_RULE,
    answers,
    line_of,
    numbers,
    sentence,
)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A finished sweep with two seeds."""
    sweep = make_home(tmp_path_factory.mktemp("home"), seeds=(0, 1))
    return read_results(sweep)


def with_line(results: Results, name: str, **changes) -> Results:
    """The same results with other numbers in one line of the comparison."""
    assert results.comparison is not None
    lines = [
        dataclasses.replace(line, **changes) if line.curve == name else line for line in results.comparison.variants
    ]
    return dataclasses.replace(results, comparison=dataclasses.replace(results.comparison, variants=tuple(lines)))


def said_of(results: Results) -> str:
    """The sentence on loo-loss."""
    variant = results.variant("loo-loss")
    return sentence(results, variant, line_of(results, variant))


def test_every_verdict_has_a_meaning():
    assert set(VERDICT_MEANINGS) == set(get_args(Verdict))
    assert set(DIFFERENCES) == set(get_args(Difference))
    assert set(LEVELS) == set(get_args(LevelDifference))
    assert set(EFFICIENCIES) == set(get_args(Efficiency))
    assert set(SAID_BY_THE_PAPER_RULE) == set(get_args(Difference))


def test_a_sentence_names_both_numbers_of_seeds(results):
    said = said_of(results)
    assert said.startswith(
        "loo-loss: lower at equal compute; ceiling down; more compute to the common target. Level 0.5"
    )
    assert ". A 0.5" in said
    assert said.count("(2 seeds)") == 2
    assert "against scalerl" in said


def test_the_question_of_the_sweep_file_is_answered_for_every_variant_but_the_reference(results):
    assert answers(with_line(results, "loo-curriculum", difference="cannot tell")) == [
        "Which choice raises the ceiling? After 2000 modelled GPU-hours per run:",
        "loo-loss, against scalerl: lower at equal compute; ceiling down; more compute to the common target.",
        "loo-curriculum, against scalerl: lower at equal compute; the ceilings cannot be told apart; "
        "more compute to the common target.",
    ]


def test_without_a_comparison_no_question_is_answered(results):
    assert answers(dataclasses.replace(results, comparison=None)) == []


def test_a_difference_without_an_end_is_written_with_an_open_one(results):
    unbounded = with_line(results, "loo-loss", delta_A=None, delta_A_hi=None, difference="cannot tell")
    low = results.compared("loo-loss").delta_A_lo
    assert f"[{low:+.3f}, …] against scalerl" in said_of(unbounded)


def test_without_a_ratio_nothing_is_said_of_compute_but_that(results):
    nothing = dict.fromkeys(("compute_ratio", "compute_ratio_lo", "compute_ratio_hi"))
    without = with_line(results, "loo-loss", **nothing, efficiency="cannot tell")
    said = said_of(without)
    assert said.startswith(
        "loo-loss: lower at equal compute; ceiling down; cannot tell which needs less compute. Level"
    )
    assert said.count("compute") == 2
    assert line_of(without, results.variant("loo-loss")).compute_ratio == ""


@pytest.mark.parametrize("changes", [{"A_hi": None, "verdict": "lower bound only"}, {"verdict": "no rise"}])
def test_without_a_ceiling_no_number_stands_for_it_nor_for_what_hangs_on_it(results, changes):
    open_ended = with_line(results, "loo-loss", **changes)
    variant = results.variant("loo-loss")
    shown = numbers(open_ended, variant)
    assert [shown[name] for name in ("A", "A_hi", "B", "C_mid")] == [None] * 4
    assert shown["A_lo"] == results.compared("loo-loss").A_lo
    assert (line_of(open_ended, variant).B, line_of(open_ended, variant).C_mid) == ("", "")
    bounded = numbers(results, variant)
    assert bounded["A"] == pytest.approx(0.54, abs=0.01)
    assert f"{bounded['B']:.2f}" == line_of(results, variant).B


@pytest.mark.parametrize(
    ("said", "cell"),
    [("ceiling up", "up"), ("ceiling down", "down"), ("no difference seen", "equal"), ("cannot tell", "cannot tell")],
)
def test_the_rule_of_the_paper_stands_beside_the_verdict(results, said, cell):
    line = line_of(with_line(results, "loo-loss", paper_rule=said), results.variant("loo-loss"))
    assert (line.ceiling, line.paper_rule) == ("ceiling down", cell)
    assert line_of(results, results.variant("scalerl")).paper_rule == ""
    assert line_of(results, results.variant("loo-loss")).paper_rule == "down"  # 0.54 against 0.61


def test_every_line_of_a_csv_file_has_the_same_columns(results):
    assert len({tuple(numbers(results, variant)) for variant in results.variants}) == 1
