"""Expressions over columns have the value that a loop over rows gives, and what is no expression is refused."""

import math
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ablations.errors import AblationsError
from ablations.logs.expression import calls_of, columns_of, evaluate, parse

NAN, INF = math.nan, math.inf
COLUMNS = {"a": [1.0, NAN, 3.0, -2.0], "b": [2.0, 2.0, 0.0, 4.0], "perf/time": [NAN, 90.0, NAN, 60.0], "a b": [0.0] * 4}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        # Products bind before sums and both from the left; comparisons come last. Worked out by hand.
        ("a - b - 1", [-2, NAN, 2, -7]),
        ("a - (b - 1)", [0, NAN, 4, -5]),
        ("12 / b / 2 * a", [3, NAN, INF, -3]),
        ("a + 2 * b < 6 - 1", [0, 0, 1, 0]),
        ("-a * 2", [-2, NAN, -6, 4]),
        ("a / b", [0.5, NAN, INF, -0.5]),
        # A comparison with a missing value is false, arithmetic with it is missing.
        ("a == a", [1, 0, 1, 1]),
        ("a != b", [1, 0, 1, 1]),
        ("a <= 1", [1, 0, 0, 1]),
        ("a >= 3", [0, 0, 1, 0]),
        ("a > b", [0, 0, 1, 0]),
        ("min(a, b)", [1, NAN, 0, -2]),
        ("max(a, 2.5e0)", [2.5, NAN, 3, 2.5]),
        # A missing value adds nothing to a sum, and an increase is since the value before it.
        ("cumsum(a)", [1, 1, 4, 2]),
        ("cumsum(perf/time) * 64 / 3600", [0, 1.6, 1.6, 150 * 64 / 3600]),
        ("diff(a)", [1, NAN, 2, -5]),
        ("cumsum(diff(a))", [1, 1, 3, -2]),
        ("where(a, b)", [2, NAN, 0, 4]),
        ("where(b - 2, a, .5)", [0.5, 0.5, 3, -2]),
        ("where(a, b, `a b`)", [2, 0, 0, 4]),
        # The next value there is; after the last, the last.
        ("next(perf/time)", [90, 90, 60, 60]),
        ("next(where(a > 2, a))", [3, 3, 3, 3]),
        ("next(where(a > 9, a))", [NAN] * 4),
    ],
)
def test_an_expression_has_the_value_worked_out_by_hand(text, values):
    columns = {name: np.array(column) for name, column in COLUMNS.items()}
    found = evaluate(parse(text, columns, option="--compute"), columns, 4)
    np.testing.assert_allclose(found, values, rtol=1e-15)


@settings(max_examples=500, deadline=None)
@given(st.text(st.sampled_from("ab@/`()+-*<=>!,. 019_cumsumwhere"), max_size=30))
def test_any_text_is_an_expression_or_is_refused_in_words(text):
    columns = ["a", "a/b", "cumsum"]
    with suppress(AblationsError):
        assert {*columns_of(parse(text, columns, option="--score"))} <= {*columns}


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("perf/time", ["perf/time"]),
        ("perf / time", ["perf", "time"]),
        ("perf/(time)", ["perf", "time"]),
        ("`perf`/`time`", ["perf", "time"]),
        ("min-max", ["min-max"]),
        ("min(a, max)", ["a", "max"]),
        ("`2nd`*2", ["2nd"]),
    ],
)
def test_the_longest_column_is_meant_unless_spaces_or_backticks_part_it(text, columns):
    known = ["perf", "time", "times", "perf/time", "min", "max", "min-max", "a", "2nd"]
    assert list(columns_of(parse(text, known, option="--score"))) == columns


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "--score '', character 1: the expression ends; write a column, a number or a function here"),
        ("acc +", "character 6: the expression ends; write a column, a number or a function here"),
        ("acc acc", "character 5: found 'acc'; write an operator such as + or *, or end here"),
        ("`acc", "character 1: a backtick without a second one; put backticks on both sides of a column"),
        ("mean(acc)", "character 1: no function 'mean'; functions are: cumsum, diff, min, max, where"),
        ("min(acc)", "character 9: min with 1 arguments; min takes 2"),
        ("val/ac", "--score: no column 'val/ac'; did you mean 'val/acc'? columns are: val/acc, acc"),
        ("__import__('os')", "no function '__import__'"),
        ("acc < 1 < 2", "character 9: found '< 2'"),
        ("-" * 60 + "acc", "more than 50 parentheses or signs inside each other"),
    ],
)
def test_what_is_no_expression_is_refused_with_its_place(text, said):
    with pytest.raises(AblationsError) as raised:
        parse(text, ["val/acc", "acc"], option="--score")
    assert said in str(raised.value)


def test_calls_of_a_function_are_found_wherever_they_stand():
    found = parse("2 * cumsum(a + cumsum(b)) - cumsum(a)", ["a", "b"], option="--compute")
    assert [list(columns_of(call)) for call in calls_of(found, "cumsum")] == [["a", "b"], ["a"]]


def test_a_chain_of_too_many_operators_is_refused_before_it_is_evaluated():
    with pytest.raises(AblationsError, match="more than 200 operators; write fewer"):
        parse("+".join(["a"] * 5000), ["a"], option="--score")
    longest = parse("+".join(["a"] * 201), ["a"], option="--score")
    assert evaluate(longest, {"a": np.ones(1)}, 1) == 201
