"""Variants of one problem have one normal form, and other problems another."""

import time

import pytest

from scalerl.tasks.same_problem import problem_key

TOLD = "Tom's box holds 3 apples, 2.5 pears and 1,000 nuts. How many two-digit numbers are there?"


@pytest.mark.parametrize(
    "variant",
    [
        TOLD.upper(),
        TOLD.lower(),
        TOLD.replace(" ", "  ").replace("nuts.", "nuts.\n\n"),
        TOLD.replace(" ", "\u00a0"),
        TOLD.replace(" ", ""),
        TOLD.rstrip("?"),
        TOLD.replace("?", "!!"),
        TOLD.replace("?", " ?"),
        TOLD.replace("Tom's", "Tom’s"),
        TOLD.replace(", ", " , "),
        TOLD.replace("apples,", "apples"),
        TOLD.replace("nuts. How", "nuts; how"),
        TOLD.replace("1,000", "1000"),
        TOLD.replace("two-digit", "two–digit"),
        TOLD.replace("two-digit", "two digit"),
        f'"{TOLD}"',
        f"“{TOLD}”",
        TOLD.replace("o", "o\u200b"),
        "".join(chr(ord(c) + 0xFEE0) if "!" < c <= "~" and c not in "'," else c for c in TOLD),
    ],
)
def test_case_space_and_prose_punctuation_do_not_tell_problems_apart(variant):
    assert problem_key(variant) == problem_key(TOLD)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What is 2 - 3?", "what is 2−3"),
        ("$x^{2}$", "x^2"),
        ("x²", r"\(x^{2}\)"),
        (r"all $x \in \mathbb{R}$ with $\sqrt{x} \ge 1$", r"all $x\in\mathbb R$ with $\sqrt x \geqslant 1$"),
        (r"$|x| = 30^\circ$", r"\(\lvert x \rvert = 30°\)"),
        ("10⁻³", "10^{-3}"),
        (r"Find $\dfrac{1}{2}+\,x$.", r"find \(\frac{1}{2} + x\)"),
        (r"f\left( x \right)", "f(x)"),
        ("f′(x)", "f'(x)"),
        ("3½ cups", "3 1/2 cups"),
        (r"11,\! 111", "11,111"),
        (r"It costs \$5", "it costs $5"),
        ("2×3", r"$2 \times 3$"),
        (r"5\text{ cm}", "5 cm"),
        ("apples — how many", "apples, how many"),
        ("the letter 'x'.", 'the letter "x"'),
        ("1, 2, 3", "1,2,3"),
        ("f(x, y)", "f(x,y)"),
        ("CAFE\u0301", "café"),
        ("a\r\nb", "a b"),
    ],
)
def test_typographic_variants_are_one_problem(one, other):
    assert problem_key(one) == problem_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2 + 3", "2 - 3"), ("2 - 3", "23"), ("2 3", "23"), ("2 + 3", "2 + 4"), ("16", "61"), ("3.5", "35"),
        (".5", "5"), ("is .5", "is 5"), ("3,5", "3.5"), ("1,00", "100"), ("1.2.3", "1.23"), ("-5", "5"),
        ("x = -1", "x = 1"), ("2--3", "2-3"), ("ab-cd", "abcd"), ("3/4", "34"), ("3:4", "34"), ("5 ÷ 2", "52"),
        ("2*3", "2**3"), ("5%", "5"), ("x^2", "x2"), ("x²", "x2"), ("x^{12}", "x^12"), ("x^{-2}", "x^2"),
        ("10^{3}0", "10^{30}"), ("x_2", "x2"), ("log_2 8", "log 28"), ("5!", "5"), ("n!", "n"), ("f'(2)", "f(2)"),
        ("f''(2)", "f'(2)"), ("f(x,y)", "f(xy)"), ("f(1,2)", "f(12)"), ("f(2,x)", "f(2x)"), ("a, b", "ab"),
        (r"\alpha,\beta", r"\alpha\beta"), ("x < 5", "x > 5"), ("x ≤ 5", "x < 5"), ("x ≥ 2", "x ≤ 2"),
        ("(a+b)c", "a+bc"), ("|x|", "x"), ("{1,2}", "(1,2)"), ("(1,2)(3)", "(1)(2,3)"), ("[1 2; 3 4]", "[1 2 3 4]"),
        ("1, 2, ..., 10", "1, 2, 10"), ("5!?", "5?"), ("3½", "31/2"), ("√2", "2"), (r"\sin x", r"\cos x"),
    ],
)  # fmt: skip
def test_a_digit_a_sign_or_an_operator_makes_another_problem(one, other):
    assert problem_key(f"What is {one}?") != problem_key(f"What is {other}?")
    assert problem_key(one) != problem_key(other)


@pytest.mark.parametrize("part", ["'", ",", "!", "a'", "\\", "{", "{ ", "\\text{", " ", "1,", "``", "-", "²", "a. "])
def test_a_long_question_takes_time_in_proportion(part):
    text = "a" + (part * 100_000)[:100_000] + "a"
    start = time.thread_time()
    problem_key(text)
    assert time.thread_time() - start < 5  # quadratic would be minutes
