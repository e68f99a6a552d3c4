"""What holds of every answer: a verdict within the limit, the gold answer right, and form without influence on it."""

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trainer.verifiers.outcomes import verify_choice, verify_math, verify_qa

from scalerl.sandbox import Limits, Sandbox
from scalerl.verifiers.judge_worker import wall_limit_s
from scalerl.verifiers.programs.code_tests import CallTest, StdioTest, judge_code

VERDICTS = {"right", "wrong", "unparsable"}
LIMIT_S = 0.5
LIMITS = Limits(wall_s=20.0, cpu_s=1.0, memory_mb=256, output_kb=256)


def some(number: int) -> settings:
    """The same examples in every run, as many as given."""
    return settings(
        max_examples=number,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )


WRITTEN = r"""
\boxed{ \fbox{ \frac{ \frac12 \sqrt{ \int \sum_{ \lim \left( \right) \begin{pmatrix} \end{pmatrix} \text{ \{ \} \( \)
$ #### { } ( ) [ ] | % ^ _ = < , ; : . ! - + * / 0 1 9 10 1e400 9^{9^9} 99! 2^{20000} 1/0 x y i e π ∞ 中 🙂
answer is option (B) B. \infty \cup 1,234 2 cm 50\% or and the def return import while lambda True None ``` """
FRAGMENTS = st.sampled_from(WRITTEN.split())
PIECES = st.one_of(FRAGMENTS, st.sampled_from(" \n\t\0\x07\x1b\u2028\ufeff\ud800"), st.text(max_size=5))
RUNS = st.builds(lambda piece, times: piece * times, PIECES, st.sampled_from([1, 1, 1, 2, 20, 1000, 20_000]))


def texts(*right: str) -> st.SearchStrategy[str]:
    """Texts of up to 100,000 characters, some with a right answer between what breaks parsers."""
    parts = st.lists(st.one_of(RUNS, RUNS, st.sampled_from(right)), max_size=12)
    return parts.map(lambda some: "".join(some)[:100_000])


@given(
    text=texts(r"\boxed{\frac{1}{2}}", "The answer is 0.5", "#### 1/2"), gold=st.sampled_from(["1/2", "[0,1)", "even"])
)
@some(70)
def test_any_text_has_a_verdict_in_mathematics(text, gold):
    verify_math("1", "1", time_limit_s=LIMIT_S)  # the first answer starts the verifier's process
    start = time.monotonic()
    assert verify_math(text, gold, time_limit_s=LIMIT_S) in VERDICTS
    assert time.monotonic() - start < wall_limit_s(LIMIT_S)


@given(text=texts("The answer is B", "(B)", r"\boxed{B}", "\nB\n", "Paris"))
@some(150)
def test_any_text_has_a_verdict_as_a_choice_and_as_a_short_answer(text):
    start = time.thread_time()
    assert verify_choice(text, "B", num_choices=4) in VERDICTS
    assert verify_qa(text, ["Paris", "City of Light"], min_f1=0.5) in VERDICTS
    assert time.thread_time() - start < 4.0


@pytest.fixture(scope="module")
def sandbox():
    return Sandbox()


@given(program=texts("def f(x):\n    return x\n", "import sys\n", "print(input())\n", "f = lambda x: x\n"))
@some(25)
def test_any_text_has_a_verdict_as_a_program(sandbox, program):
    tests = [CallTest(call="f", args=(1,), expected=1), StdioTest(stdin="1\n", stdout="1\n")]
    start = time.monotonic()
    assert judge_code(program, tests, sandbox=sandbox, limits=LIMITS) in VERDICTS
    assert time.monotonic() - start < LIMITS.wall_s + 10.0


# Right answers.

WHOLE = st.integers(-(10**12), 10**12)
SMALL = st.integers(1, 99)
NUMBERS = st.one_of(
    WHOLE.map(str),
    st.builds("{}.{}".format, st.integers(-999, 999), st.integers(0, 9999)),
    st.builds(r"\frac{{{}}}{{{}}}".format, st.integers(-99, 99), SMALL),
    st.builds(r"{}\sqrt{{{}}}".format, SMALL, st.integers(2, 50)),
    st.builds(r"\frac{{{}\pi}}{{{}}}".format, SMALL, SMALL),
    st.builds(r"{}^{{{}}}".format, st.integers(2, 20), st.integers(2, 2000)),
)
EXPRESSIONS = st.one_of(
    st.builds("{}x^2+{}x-{}".format, SMALL, SMALL, SMALL),
    st.builds(r"\sin({}x)+{}".format, SMALL, SMALL),
    st.builds("{}+{}i".format, SMALL, SMALL),
    st.builds("x={}".format, NUMBERS),
    st.builds(r"x\le {}".format, WHOLE),
    st.builds(r"\begin{{pmatrix}}{}&{}\\{}&{}\end{{pmatrix}}".format, SMALL, SMALL, SMALL, SMALL),
)
LISTS = st.one_of(
    st.builds("({},{},{})".format, NUMBERS, NUMBERS, NUMBERS),
    st.lists(WHOLE, min_size=1, max_size=5, unique=True).map(lambda members: rf"\{{{','.join(map(str, members))}\}}"),
    st.builds("{}{},{}{}".format, st.sampled_from("[("), st.integers(-99, 0), SMALL, st.sampled_from("])")),
)
MEASURES = st.builds(
    "{}{}".format,
    SMALL,
    st.sampled_from([r"\text{ cm}", r"\%", r"^\circ", r"\text{ hours}", r"\text{ m}^2", r"\text{ apples}"]),
)
WORDS = st.sampled_from([r"\text{even}", r"\text{Paris}", "no solution", r"\text{Alice and Bob}", r"\text{(B)}"])
GOLDS = st.one_of(NUMBERS, EXPRESSIONS, LISTS, MEASURES, WORDS)

BOXES = [
    r"\boxed{{{}}}", r"\fbox{{{}}}", r"$\boxed{{{}}}$.", r"So\[\boxed{{{}}}\]", r"\boxed{{ {} }}", "\\boxed\n{{{}}}",
    r"\boxed{{{}}} is what was asked for, since \frac{{1}}{{2}} of 7 is more than 3.",
    r"First \boxed{{7777}}. No: it is \boxed{{{}}}.",
]  # fmt: skip


@given(gold=GOLDS, form=st.sampled_from([*BOXES, "All in all:\n#### {}", "#### {} \n\n"]))
@some(250)
def test_the_gold_answer_is_right_in_any_box_with_any_spaces_and_prose_around_it(gold, form):
    assert verify_math(form.format(gold), rf"\boxed{{{gold}}}", time_limit_s=5.0) == "right"


@given(
    gold=NUMBERS,
    form=st.sampled_from(["The answer is ${}$.", "**Answer:** ${}$", "It follows that it is ${}$", "${}$"]),
)
@some(100)
def test_a_number_is_right_where_it_is_only_said(gold, form):
    assert verify_math(form.format(gold), rf"\boxed{{{gold}}}", time_limit_s=5.0) == "right"


@given(number=st.integers(10**4, 10**40), places=st.integers(1, 8))
@some(60)
def test_an_integer_is_no_decimal_beside_it(number, places):
    beside = f"{number}.{1:0{places}d}"
    assert verify_math(rf"\boxed{{{beside}}}", rf"\boxed{{{number}}}", time_limit_s=5.0) == "wrong"
    assert verify_math(rf"\boxed{{{number}}}", rf"\boxed{{{beside}}}", time_limit_s=5.0) == "wrong"
    assert verify_math(rf"\boxed{{{number}.{0:0{places}d}}}", str(number), time_limit_s=5.0) == "right"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.integers(10**4000, 10**5000),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=8,
)


@given(values=st.lists(VALUES, min_size=1, max_size=20))
@some(15)
def test_the_gold_value_is_right_whatever_it_is(sandbox, values):
    tests = [CallTest(call="f", args=(value,), expected=value) for value in values]
    assert judge_code("def f(x): return x", tests, sandbox=sandbox, limits=LIMITS) == "right"
