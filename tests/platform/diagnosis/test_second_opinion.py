"""The second reading of kept answers, on cases judged by hand."""

import pytest

from ablations.diagnosis.diagnose import diagnose
from ablations.diagnosis.history import History
from ablations.diagnosis.second_opinion import audit_rollouts, second_opinion, second_reading


@pytest.mark.parametrize(
    ("answer", "right_answer", "opinion"),
    [
        ("\\boxed{0.5}", "1/2", "right"),
        ("so \\boxed{\\frac{1}{2}}", "0.5", "right"),
        ("first \\boxed{3}, no: \\boxed{4}", "4", "right"),
        ("\\boxed{12,345}", "12345", "right"),
        ("The answer is 33", "-28", "wrong"),
        ("15 - 43 = −28", "-28", "right"),
        ("15 - 43 = 28", "-28", "wrong"),
        ("B", "B", "right"),
        ("(C)", "B", "wrong"),
        ("29a", "29a", "right"),
        ("2a9", "29a", "wrong"),
        ("x + x", "x + x", "right"),
        # The second reading leaves to others what it does not know.
        ("\\boxed{2x}", "x + x", None),
        ("so it is 2\\sqrt{3}", "2", None),
        ("5cm", "50", None),
        ("between 3 and 5", "4", None),
        ("I choose the letter B", "C", None),
        ("", "4", None),
        ("1/0", "4", None),
    ],
)
def test_opinions_are_those_of_a_person(answer, right_answer, opinion):
    assert second_opinion(answer, right_answer) == opinion


def test_the_stated_answer_is_the_last_box_then_the_last_statement_then_the_last_line():
    assert second_reading("The answer is 3.\n\\boxed{\\frac{1}{2}} is it") == "\\frac{1}{2}"
    assert second_reading("The answer is 3.\nThe answer: 4\nor so") == "4"
    assert second_reading("one\n\ntwo\n") == "two"
    assert second_reading("\n") == ""


def kept(answer, right_answer, verdict, *, step=10, **more):
    return {
        "kind": "held_out", "step": step, "task": "sums", "prompt_id": f"p{step}", "verdict": verdict,
        "truncated": False, "answer": [{"text": answer, "tokens": 3, "version": 1}], "right_answer": right_answer,
        **more,
    }  # fmt: skip


def test_only_whole_answers_with_a_verdict_and_a_written_right_answer_are_judged():
    rows = [
        kept("7", "8", "right"),
        kept("8", "8", "unparsable"),
        kept("8", "8", "right"),
        kept("7", "8", "wrong"),
        kept("7", "8", "right", truncated=True),
        kept("7", "8", "timed_out"),
        kept("7", None, "right"),
        kept("7", "8", "right") | {"answer": [{"text": "7", "tokens": 1}, {"left_out": 900}]},
    ]
    found = audit_rollouts("scalerl-s0", rows)
    assert (found.num_kept, found.num_judged) == (8, 4)
    assert [(one.verdict, one.second, one.stated) for one in found.disagreements] == [
        ("right", "wrong", "7"),
        ("unparsable", "right", "8"),
    ]


def test_the_doctor_doubts_a_verifier_that_calls_wrong_answers_right():
    fooled = [kept("I am sure.\nThe answer is 9", "8", "right", step=step) for step in (10, 20, 30)]
    strict = [kept("8", "8", "wrong", step=step) for step in (10, 20, 30)]
    (finding,) = diagnose(History(name="run", steps=(), rollouts=fooled))
    assert finding.rule == "verifier contradicted"
    assert "calls 3 of 3 kept answers right" in finding.text
    assert "`9` for `8`" in finding.text
    assert diagnose(History(name="run", steps=(), rollouts=strict)) == []
    assert diagnose(History(name="run", steps=(), rollouts=fooled[:2])) == []
