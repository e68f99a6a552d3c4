"""Mathematical answers: which part of a response is judged, golds, and answers at which SymPy raises."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from trainer.verifiers.outcomes import verify_math

from scalerl.verifiers import judge_worker
from scalerl.verifiers.mathematics.answer import final_answer, gold_answer, last_boxed
from scalerl.verifiers.mathematics.reading import read
from scalerl.verifiers.mathematics.units import COUNT_WORDS, UNITS

RAISE = [
    r"\boxed{\int x dx}",
    r"\boxed{\frac{d}{dx}x^2}",
    r"\boxed{\begin{pmatrix}1&2\\2&4\end{pmatrix}^{-1}}",
    r"\boxed{\lim_{x\to 0}\frac{1}{x}}",
    r"\boxed{\sum_{n=1}^{\infty} n}",
    r"\boxed{\int_0^1 x dx}",
    r"\boxed{\frac{d}{dx}}",
    r"\boxed{\prod_{n=1}^{\infty} 2}",
    r"\boxed{\log_1 5}",
    r"\boxed{\frac{0}{0}}",
    r"\boxed{\int}",
    r"\boxed{\det\begin{pmatrix}1&2\end{pmatrix}}",
]
"""SymPy raises at these, finds no value, or finds one that is not 18."""


@pytest.mark.parametrize("answer", RAISE)
def test_an_answer_without_a_value_is_judged_and_not_right(answer):
    assert verify_math(answer, "18", time_limit_s=1.0) in ("wrong", "unparsable")
    assert verify_math(answer, answer, time_limit_s=1.0) == "right"
    assert verify_math(r"\boxed{18}", answer, time_limit_s=1.0) == "wrong"


def test_neither_torch_nor_sympy_is_loaded_by_the_judges():
    code = (
        "import sys\n"
        "from scalerl.verifiers.mathematics import answer; from scalerl.verifiers.short_answers import choice, qa\n"
        "sys.exit(' '.join({'torch', 'sympy', 'math_verify'} & set(sys.modules)) or 0)"
    )
    process = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(Path(judge_worker.__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("She sold 48/2 = <<48/2=24>>24 clips.\n#### 72", "72"),
        ("#### 1,234 ", "1,234"),
        ("So $x=\\boxed{\\frac{1}{2}}$.", "\\frac{1}{2}"),
        ("First \\boxed{3}; after all that is not what was asked for, so \\boxed{4}.", "4"),
        ("\\boxed{1} and \\boxed{2}", "1,2"),
        ("\\boxed{\\left\\{x \\mid x > 0\\right.}", "\\left\\{x \\mid x > 0\\right."),
        ("204", "204"),
    ],
)
def test_gold_answers_are_read_from_gsm8k_math_and_plain_columns(text, answer):
    assert gold_answer(text) == answer


@pytest.mark.parametrize(
    "text", ["", "####", "#### ", "\\boxed{}", "\\boxed{1", "\\boxed{" + "x+" * 501 + "}", "1" * 20_001]
)
def test_an_empty_or_endless_gold_answer_is_refused(text):
    with pytest.raises(ValueError, match="gold answer: "):
        verify_math("1", text, time_limit_s=1.0)


def test_a_limit_of_no_time_is_refused():
    with pytest.raises(ValueError, match="time_limit_s is 0"):
        verify_math("\\boxed{1}", "1", time_limit_s=0)


def test_a_box_that_never_closes_is_no_answer():
    assert last_boxed("no box") is None
    assert last_boxed("\\boxed{1} then \\boxed{2") == ""
    assert last_boxed("\\boxed{{1}") == ""
    assert final_answer("\\boxed{2") == ("", "marked")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"Destinam. 42 + 20 = 62"', ("62", "said")),  # SmolLM2-135M after 7 steps of sweeps/smollm.yaml
        ("“42 + 20 = 62”.", ("62", "said")),
        ("'The answer is 62.'", ("62.", "said")),
        ("'it's 5'", ("'it's 5'", "prose")),
        ('"5" or "6"', ('"5" or "6"', "prose")),
    ],
)
def test_quotation_marks_around_all_of_a_response_are_no_part_of_it(text, expected):
    assert final_answer(text) == expected


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("So she pays \\boxed{5} in all.", "5"),
        ("She pays 2 + 3 = 5.\n#### 5", "5"),
        ("<answer>5</answer> in all", "5"),
        ("2 + 3 = 5.\n**Answer:** 5", "5"),
        ("2 + 3 = 5.\n\n**Final answer:**\n\n5", "5"),
        ("The answer is 5.", "5."),
        ("答案：5", "5"),
        ("$5$", "5"),
        ("even", "even"),
        ("So she pays 5.", ""),
        ("She pays\n2 + 3 = 5", ""),
        ("The answer is clear.\nShe pays 5.", ""),
    ],
)
def test_without_prose_only_a_marked_answer_counts(text, stated):
    assert final_answer(text, reads_prose=False)[0] == stated


def test_units_have_their_defined_sizes():
    # The international inch is 25.4 mm and the avoirdupois pound 453.59237 g, both exactly (agreement of 1959).
    assert float(read("1 inch").unit.size) == 0.0254
    assert float(read("1 mile").unit.size) == 1609.344
    assert float(read("16 oz").unit.size * 16) == 453.59237
    assert float(read("2 gallons").unit.size) == 0.003785411784
    assert float(read("3 acres").unit.size) == 4046.8564224
    assert float(read("60 mph").unit.size) == 0.44704
    assert read("3\\text{ square feet}").unit.size == read("1 ft").unit.size ** 2
    assert not UNITS.keys() & COUNT_WORDS.keys()


@pytest.mark.parametrize(
    ("gold", "misread", "right"),
    [
        (r"1\,000", "0", "1000"),
        (r"12\,345", "357", "12345"),
        (r"2\sqrt{3}", "2", r"\sqrt{12}"),
        ("10^{-3}", "10", "0.001"),
        ("x^2", "x^3", r"x \cdot x"),
        (r"\text{silent}", r"\text{listen}", "silent"),
        ("2024-05-01", "2018", "May 1, 2024"),
    ],
)
def test_what_math_verify_misreads_is_read_here(gold, misread, right):
    """math-verify 0.9.0 alone: 1\\,000 equals 0, 12\\,345 equals 357, words are products of their letters, dates
    differences; TRL 1.16.0 reads the plain gold 2\\sqrt{3} as 2 and 10^{-3} as 10."""
    assert verify_math(rf"\boxed{{{misread}}}", gold, time_limit_s=5.0) == "wrong"
    assert verify_math(rf"\boxed{{{right}}}", gold, time_limit_s=5.0) == "right"
    assert verify_math(rf"\boxed{{{gold}}}", gold, time_limit_s=5.0) == "right"
