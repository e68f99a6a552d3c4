"""SQuAD's normal form, exact match and F1 by hand."""

import pytest
from trainer.verifiers.outcomes import verify_qa

from scalerl.verifiers.short_answers.qa import exact_match, f1, normalise


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The  U.S.A., an ally", "usa ally"),
        ("a cat", "cat"),
        ("Another theory", "another theory"),
        ("Rock 'n' Roll", "rock n roll"),
        ("14 December 1972 UTC", "14 december 1972 utc"),
        ("The", ""),
        ("...", ""),
        ("twenty-one", "twentyone"),
    ],
)
def test_the_normal_form_drops_case_punctuation_and_articles(text, normal):
    assert normalise(text) == normal


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [
        ("Paris", ["Paris"], 1.0),
        ("the city of Paris", ["Paris"], 0.5),  # p = 1/3, r = 1: 2/3 / (4/3)
        ("Wilhelm Conrad Roentgen", ["Wilhelm Conrad Röntgen"], 2 / 3),  # p = r = 2/3
        ("red red blue", ["red blue blue"], 2 / 3),  # each word counts as often as both have it
        ("London", ["Paris"], 0.0),
        ("December 1972", ["14 December 1972 UTC", "December 1972"], 1.0),
        ("1972", ["14 December 1972 UTC", "December 1972"], 2 / 3),  # 2/5 and 2/3
        ("the", ["a"], 1.0),
        ("the", ["Paris"], 0.0),
    ],
)
def test_f1_is_the_largest_over_the_gold_answers(answer, gold, expected):
    assert f1(answer, gold) == pytest.approx(expected, abs=1e-12)


def test_an_exact_match_with_any_gold_answer_is_enough():
    assert exact_match("the Eiffel tower!", ["La Tour Eiffel", "Eiffel Tower"])
    assert not exact_match("Tower Eiffel", ["La Tour Eiffel", "Eiffel Tower"])


def test_f1_makes_an_answer_right_only_where_asked():
    answer, gold = "the city of Paris", ["Paris"]
    assert verify_qa(answer, gold) == "wrong"
    assert verify_qa(answer, gold, min_f1=0.5) == "right"
    assert verify_qa(answer, gold, min_f1=0.51) == "wrong"


@pytest.mark.parametrize("answer", ["", "...", "the", "\\boxed{Paris", "Paris " * 20_000])
def test_no_words_or_too_many_are_unparsable(answer):
    assert verify_qa(answer, ["Paris"], min_f1=0.1) == "unparsable"


@pytest.mark.parametrize(
    ("gold", "min_f1", "message"),
    [((), 1.0, "at least one"), ("Paris", 1.0, "a sequence"), (("x",), 0.0, "min_f1 is 0.0")],
)
def test_gold_answers_and_threshold_are_checked(gold, min_f1, message):
    with pytest.raises(ValueError, match=message):
        verify_qa("Paris", gold, min_f1=min_f1)
