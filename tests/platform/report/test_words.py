"""A comparison in words: nothing without its interval, its baseline and its seeds."""

from dataclasses import replace
from typing import get_args

import pytest
from fixtures_answers import asymptote, with_line

from ablations.answers.answer import PROVISIONAL, REFERENCE
from ablations.answers.interval import Interval, only_estimate
from ablations.answers.questions import CEILING, COMPUTE, QUESTIONS
from ablations.findings.results import Results
from ablations.fit.asymptote import VERDICT_MEANINGS, Verdict
from ablations.report.documents.comparison_words import answers, sentence
from ablations.report.documents.variant_row import SAID_BY_THE_PAPER_RULE, VariantRow

ENDS = (None, -9.0, -0.001, 0.001, 0.999, 1.001, 9.0)


def row_of(results: Results) -> VariantRow:
    return VariantRow(results=results, variant=results.variant("loo-loss"))


def test_every_verdict_has_a_meaning():
    assert set(VERDICT_MEANINGS) == set(get_args(Verdict))
    for question in QUESTIONS:
        assert {question.verdict(Interval(estimate=0.0, lo=lo, hi=hi)) for lo in ENDS for hi in ENDS} < set(
            question.meanings
        )
        assert question.verdict(only_estimate(0.1, num_seeds=1)) in question.meanings
    assert set(SAID_BY_THE_PAPER_RULE) - {REFERENCE} == set(CEILING.meanings) - {PROVISIONAL}


def test_the_question_of_the_sweep_file_is_answered_for_every_variant_but_the_reference(decided):
    assert answers(with_line(decided, "loo-curriculum", answers={"ceiling": {"verdict": "cannot tell"}})) == [
        "Which choice raises the ceiling? After 2000 modelled GPU-hours per run:",
        "loo-loss, against scalerl: lower at equal compute; ceiling down; more compute to the common target.",
        "loo-curriculum, against scalerl: lower at equal compute; the ceilings cannot be told apart; "
        "more compute to the common target.",
    ]
    assert answers(replace(decided, comparison=None)) == []


def test_a_difference_without_an_end_is_written_with_an_open_one(decided):
    unbounded = with_line(decided, "loo-loss", answers={"ceiling": {"estimate": None, "hi": None}})
    low = decided.compared("loo-loss").answers["ceiling"].lo
    assert f"[{low:+.3f}, …] in A against scalerl" in sentence(row_of(unbounded))


def test_without_a_ratio_nothing_is_said_of_compute_but_that(decided):
    nothing = {"estimate": None, "lo": None, "hi": None, "verdict": "cannot tell"}
    without = with_line(decided, "loo-loss", answers={"compute": nothing})
    said = sentence(row_of(without))
    assert said.startswith("loo-loss: lower at equal compute; ceiling down; cannot tell which needs less compute. A ")
    assert said.count("compute") == 2
    assert row_of(without).number(COMPUTE) == ""


@pytest.mark.parametrize("changes", [{}, {"verdict": "no rise"}])
def test_without_a_ceiling_no_number_stands_for_it_nor_for_what_hangs_on_it(decided, changes):
    line = decided.compared("loo-loss")
    open_ended = with_line(decided, "loo-loss", **asymptote(line, A=None, hi=None, **changes))
    shown = open_ended.compared("loo-loss").to_json()
    assert [shown[name] for name in ("A", "A_hi", "B", "C_mid")] == [None] * 4
    assert shown["A_lo"] == line.asymptote.lo
    assert [row_of(open_ended).lone(key, str).text for key in ("B", "C_mid")] == ["", ""]
    assert line.to_json()["A"] == pytest.approx(0.54, abs=0.01)
    assert row_of(decided).lone("B", "{:.2f}".format).text == f"{line.B:.2f}"


@pytest.mark.parametrize(("said", "cell"), [("ceiling up", "up"), ("no difference seen", "equal")])
def test_the_rule_of_the_paper_stands_beside_the_verdict(decided, said, cell):
    row = row_of(with_line(decided, "loo-loss", paper_rule=said))
    assert (row.verdict(CEILING), row.paper_rule) == ("ceiling down", cell)
    assert row_of(decided).paper_rule == "down"  # 0.54 against 0.61
