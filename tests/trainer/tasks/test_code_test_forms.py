"""Tests of programs as five data sets write them."""

import json

import pytest

from scalerl.tasks.code_test_forms import written_tests
from scalerl.tasks.file_task import UnusableError
from scalerl.verifiers.code_tests import CallTest, StdioTest

ADD = CallTest(call="add", args=(2, 3), expected=5)
NEGATIVE = CallTest(call="add", args=(-1, 0.5), expected=-0.5)
ECHO = StdioTest(stdin="2 3", stdout="5")


@pytest.mark.parametrize(
    ("written", "tests"),
    [
        ([{"call": "add", "args": [2, 3], "expected": 5}, {"stdin": "2 3", "stdout": "5"}], (ADD, ECHO)),
        # Parquet gives every row of a list the columns of all.
        ([{"call": None, "args": None, "expected": None, "stdin": "2 3", "stdout": "5"}], (ECHO,)),
        (["assert add(2, 3) == 5", "assert add(-1, 0.5) == -0.5"], (ADD, NEGATIVE)),
        (["assert f([1], {'a': None}) == {1, 2}"], (CallTest(call="f", args=([1], {"a": None}), expected={1, 2}),)),
        ({"inputs": [[2, 3]], "outputs": [5], "fn_name": "add"}, (ADD,)),
        ({"inputs": ["2 3"], "outputs": ["5"]}, (ECHO,)),
        ({"inputs": [["2", "3"]], "outputs": [["5"]]}, (StdioTest(stdin="2\n3", stdout="5"),)),
        ([{"input": "2 3", "output": "5", "testtype": "stdin"}], (ECHO,)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("as_text", [False, True])
def test_each_form_gives_the_tests_it_means(written, tests, as_text):
    assert written_tests(json.dumps(written) if as_text else written, "here") == tests


def test_humaneval_names_its_function_apart():
    text = "METADATA = {}\n\ndef check(candidate):\n    assert candidate(2, 3) == 5\n"
    assert written_tests(text, "here", entry_point="add") == (ADD,)


@pytest.mark.parametrize(
    "assertion",
    [
        "assert abs(f(1) - 0.5) < 1e-6",
        "assert f(x) == 1",
        "assert f(1) == g(1)",
        "assert f(n=1) == 1",
        "assert set(f(1)) == {1}",
        "assert f(1) == 1 == 1",
        "assert f((1, 2)) == 3",  # a tuple would arrive as a list
        "assert f({1: 2}) == 3",  # and a key as text
        "assert f({1, 2}) == 3",
        "assert f(1)",
    ],
)
def test_an_assertion_that_cannot_leave_the_sandbox_makes_the_problem_unusable(assertion):
    with pytest.raises(UnusableError, match="compares more than a call with literals"):
        written_tests(["assert f(0) == 0", assertion], "here")


def test_a_functional_test_of_livecodebench_is_unusable():
    with pytest.raises(UnusableError, match="only stdin"):
        written_tests([{"input": "1", "output": "1", "testtype": "functional"}], "here")


@pytest.mark.parametrize("written", [[], 3, {"inputs": [1], "outputs": []}, "x = 1", "assert (", [{"call": "f"}]])
def test_what_has_no_form_is_an_error_with_its_place(written):
    with pytest.raises(ValueError, match=r"^here: "):
        written_tests(written, "here")
