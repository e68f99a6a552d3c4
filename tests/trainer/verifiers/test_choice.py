"""Letters by the written rule, on answers as models give them."""

import time

import pytest
from trainer.verifiers.outcomes import verify_choice


@pytest.mark.parametrize(
    "answer",
    [
        "B",
        "b",
        "B.",
        "(B)",
        "[B]",
        "**B**",
        " B) Paris",
        "B. Paris",
        "B: Paris",
        "The answer is (B)",
        "The answer is B",
        "The answer is B because plants need light.",
        "the answer is b.",
        "The correct answer is: **B**",
        "**Answer:** B",
        "Answer: B. Paris",
        "The best choice is option B.",
        "I would pick (B) here.",
        "\\boxed{B}",
        "$\\boxed{\\text{B}}$",
        "\\boxed{\\textbf{(B)}}",
        "\\boxed{B. Paris}",
        "A bird flies, so it is no fish.\nB",
        "The answer is A. No, wait: the lake is frozen.\nThe answer is B.",
        "The answer is (A).\nSo \\boxed{B}",
        "(A) is too hot and (C) too cold.\nB",
    ],
)
def test_the_answer_is_b(answer):
    assert verify_choice(answer, "B", num_choices=4) == "right"
    assert verify_choice(answer, "C", num_choices=4) == "wrong"


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "I do not know.",
        "The answer is a bird.",
        "A bird.",
        "Because it is warm.",
        "The answer is E.",
        "\\boxed{E}",
        "\\boxed{}",
        "\\boxed{B",
        "\\boxed{Paris}",
        "(A) or (B)",
        "B) or C)",
        "The answer is (B) or (C).",
        "The answer is B/C",
        "\\boxed{B, C}",
        "\\boxed{B} or \\boxed{C}",
        "The answer is I'd say unknown.",
        "2",
    ],
)
def test_without_a_letter_of_a_choice_the_answer_is_unparsable(answer):
    assert verify_choice(answer, "B", num_choices=4) == "unparsable"


def test_more_choices_admit_more_letters():
    assert verify_choice("The answer is E.", "E", num_choices=5) == "right"
    assert verify_choice("E", "A", num_choices=5) == "wrong"


PIECES = [
    *"\n\t\r\x0b\u2028 (*_'$`{[)].:,/&Bbi1\\", "B ", "B\n", "B,", "B, ", "(B", "(B)", "answer is ", "answer:",
    "answer ", "answer\n", "option: ", "\\text{", "\\text ", "\\boxed{", "\\boxed ", "\\boxed{B", "\\boxed{B}", "or B ",
    ",\n", "* ", "\n*",
]  # fmt: skip


@pytest.mark.parametrize("before", ["", "answer is ", "B"])
def test_the_time_for_100_000_characters_is_a_moment(before):
    # What takes quadratic time in the number of pieces takes minutes here; what is linear takes milliseconds.
    for piece in PIECES:
        text = before + piece * (100_000 // len(piece))
        start = time.process_time()
        verify_choice(text, "B", num_choices=4)
        assert verify_choice(text + "}\nThe answer is B.", "B", num_choices=4) in ("right", "unparsable")
        assert time.process_time() - start < 2.0, piece


@pytest.mark.parametrize("text", ["B " * 50_000, "(" * 100_000, "answer is " * 10_000, "*" * 100_000, "\n" * 300_000])
def test_long_answers_end_in_their_letter(text):
    assert verify_choice(text + "\nThe answer is B.", "B", num_choices=4) == "right"


@pytest.mark.parametrize("gold", ["E", "b", "", "AB", "1"])
def test_a_gold_letter_that_is_no_choice_is_refused(gold):
    with pytest.raises(ValueError, match=r"expected one of the letters A to D"):
        verify_choice("A", gold, num_choices=4)
