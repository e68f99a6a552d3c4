"""Expressions over columns have the value that a loop over rows gives, and what is no expression is refused."""

import math
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ablations.errors import AblationsError
from ablations.logs.expression import calls_of, columns_of, evaluate, parse

COLUMNS = ["step", "perf/time_per_step", "perf", "eval@4", "val-core/x.y/acc/mean@4", "a b"]
SIGNS = {"<": 0, "<=": 0, ">": 0, ">=": 0, "==": 0, "!=": 0, "+": 1, "-": 1, "*": 2, "/": 2}
"""How tightly each operator binds."""

values = st.one_of(st.just(math.nan), st.sampled_from([0.0, 1.0, -2.0, 0.5]), st.floats(-1e6, 1e6))
leaves = st.one_of(st.sampled_from(COLUMNS), st.sampled_from([0.0, 1.0, 2.5, 3600.0, 3.6e6]))


def grown(inner):
    return st.one_of(
        st.tuples(st.sampled_from([*SIGNS]), inner, inner),
        st.tuples(st.sampled_from(["cumsum", "diff", "negative"]), inner),
        st.tuples(st.sampled_from(["min", "max", "where"]), inner, inner),
        st.tuples(st.just("where"), inner, inner, inner),
    )


trees = st.recursive(leaves, grown, max_leaves=12)


def written(tree, above=-1, is_right=False):
    """The tree as a person writes it, with no more parentheses than are needed."""
    if isinstance(tree, float):
        return f"{tree:g}"
    if isinstance(tree, str):
        return f"`{tree}`" if " " in tree else tree
    name, *arguments = tree
    if name == "negative":
        return f"-{written(arguments[0], 3)}"
    if name not in SIGNS:
        return f"{name}({', '.join(map(written, arguments))})"
    own = SIGNS[name]
    text = f"{written(arguments[0], own, own == 0)} {name} {written(arguments[1], own, True)}"
    return f"({text})" if own < above or (own == above and is_right) else text


def by_row(tree, rows):
    """The value at every row, by a loop over Python's own floats."""
    if isinstance(tree, float):
        return [tree] * len(rows)
    if isinstance(tree, str):
        return [row[tree] for row in rows]
    name, *arguments = tree
    first, *others = [by_row(argument, rows) for argument in arguments]
    if name == "cumsum":
        found, total = [], 0.0
        for value in first:
            total += 0.0 if math.isnan(value) else value
            found.append(total)
        return found
    if name == "diff":
        found, before = [], 0.0
        for value in first:
            found.append(value - before)
            before = before if math.isnan(value) else value
        return found
    return [at_row(name, *at) for at in zip(first, *others, strict=True)]


def at_row(name, a, b=math.nan, c=math.nan):
    if name == "negative":
        return 0.0 - a
    if name == "where":
        return b if a != 0 and not math.isnan(a) else c
    if name in ("min", "max"):
        return math.nan if math.isnan(a) or math.isnan(b) else (min if name == "min" else max)(a, b)
    if name == "/":
        return (
            a / b if b else (math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b))
        )
    found = {"+": a + b, "-": a - b, "*": a * b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}
    if name in ("==", "!="):
        return float(not (math.isnan(a) or math.isnan(b)) and (a == b) == (name == "=="))
    return float(found[name])


@settings(max_examples=200, deadline=None)
@given(trees, st.lists(st.tuples(*[values] * len(COLUMNS)), min_size=1, max_size=6))
@example(("-", "step", ("-", "perf", 1.0)), [(5.0, 0.0, 2.0, 0.0, 0.0, 0.0)])
@example(("/", ("*", "step", 2.5), ("/", "perf", 2.5)), [(5.0, 0.0, 2.0, 0.0, 0.0, 0.0)])
def test_every_expression_has_the_value_of_a_loop_over_rows(tree, rows):
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
    columns = {name: np.array([row[name] for row in rows]) for name in COLUMNS}
    expression = parse(written(tree), COLUMNS, option="--compute")
    np.testing.assert_array_equal(evaluate(expression, columns, len(rows)), np.array(by_row(tree, rows)))


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
        ("val/ac", "--score: no column 'val/ac'; did you mean 'val/acc'? columns are: acc, val/acc"),
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
