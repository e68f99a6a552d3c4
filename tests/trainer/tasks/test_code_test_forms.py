"""Tests of programs as five data sets write them."""

import json
from typing import Any, cast

import pytest

from scalerl.tasks.code_test_forms import written_tests
from scalerl.tasks.paired_tests import joined_columns
from scalerl.tasks.python_test_code import PythonSource
from scalerl.tasks.text_task import UnusableError
from scalerl.verifiers.programs.code_tests import CallTest, StdioTest
from scalerl.verifiers.programs.python_tests import PythonTest

NOTHING = PythonSource()

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
        ({"language": "python", "test_cases": [{"type": "stdin_stdout", "input": "2 3", "output": "5"}]}, (ECHO,)),
        ([{"type": "function_call", "fn_name": "add", "input": [2, 3], "output": [5]}], (ADD,)),
        ({"inputs": ["2 3"], "outputs": ["5"], "fn_name": None}, (ECHO,)),
        ({"inputs": [[2, 3]], "outputs": [[5]], "fn_name": "add"}, (ADD,)),
        ({"inputs": [[2]], "outputs": [[[5]]], "fn_name": "f"}, (CallTest(call="f", args=(2,), expected=[5]),)),
        ({"inputs": [[2], [3]], "outputs": [[5], []], "fn_name": "f"},
         (CallTest(call="f", args=(2,), expected=[5]), CallTest(call="f", args=(3,), expected=[]))),
        ({"inputs": [[{"1": "a", "-2": "b"}]], "outputs": [1], "fn_name": "f"},
         (CallTest(call="f", args=({1: "a", -2: "b"},), expected=1),)),
        ({"inputs": [[{"1": 2, "a": 3}]], "outputs": [1], "fn_name": "f"},
         (CallTest(call="f", args=({"1": 2, "a": 3},), expected=1),)),
        ({"inputs": [['"ab"', 2]], "outputs": ['"ba"'], "fn_name": "f"},
         (CallTest(call="f", args=("ab", 2), expected="ba"),)),
        ({"inputs": [['"ab"', "c"]], "outputs": ["ba"], "fn_name": "f"},
         (CallTest(call="f", args=('"ab"', "c"), expected="ba"),)),
        ({"input": ["2 3"], "output": ["5"]}, (ECHO,)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("as_text", [False, True])
def test_each_form_gives_the_tests_it_means(written, tests, as_text):
    assert written_tests(json.dumps(written) if as_text else written, "here", NOTHING) == tests


def test_humaneval_names_its_function_apart():
    text = "METADATA = {}\n\ndef check(candidate):\n    assert candidate(2, 3) == 5\n"
    assert written_tests(text, "here", PythonSource(entry_point="add")) == (ADD,)


@pytest.mark.parametrize(
    "assertion",
    [
        "assert abs(f(1) - 0.5) < 1e-6",
        "assert f(2 + 3) == 1",
        "assert f(n=1) == 1",
        "assert set(f(1)) == {1}",
        "assert f(1) == 1 == 1",
        "assert f((1, 2)) == 3",  # a tuple would arrive as a list
        "assert f({1: 2}) == 3",  # and a key as text
        "assert f({1, 2}) == 3",
        "assert f(1)",
        "assert not f(1)",
        "for x in range(3):\n    assert f(x) == x",
        "import math\nassert math.isclose(f(1), 1)",
    ],
)
def test_tests_that_do_more_than_compare_a_call_with_literals_run_as_they_are_written(assertion):
    text = f"assert f(0) == 0\n{assertion}"
    assert written_tests(text, "here", NOTHING) == PythonTest(code=text, names=("f",))


def test_names_that_nobody_else_defines_are_those_of_the_program():
    text = "import math\ndef near(a, b): return abs(a - b) < 1\n"
    text += "for x in [1]:\n    assert near(f(x), g.h(math.pi))\nswap(x)"
    assert written_tests(text, "here", NOTHING) == PythonTest(code=text, names=("f", "g", "swap"))


@pytest.mark.parametrize("solution", [None, "def sum(a, b): return a + b"])
def test_a_program_may_be_called_as_a_function_of_python(solution):
    text = "assert sum(1, (2)) == int(3.0)"
    expected = PythonTest(code=text, names=("sum",))
    assert written_tests(text, "here", PythonSource(solution=solution)) == expected


def test_what_stands_before_the_tests_belongs_to_neither_program_nor_tests():
    text = "def check(candidate):\n    assert candidate(helper(1)) == 1"
    source = PythonSource(entry_point="f", before="def helper(x): return x\ndef f(x): ...", runs_as_written=True)
    assert written_tests(text, "here", source) == PythonTest(
        code=f"{text}\n\ncheck(f)\n", names=("f",), before=source.before
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "import scipy\nassert scipy.special.expit(f(1)) < 1",
            "import scipy, but the sandbox has only the standard library and numpy",
        ),
        ("assert len([1]) == 1 and True", "tests use nothing from the program"),
        ("assert f(made(1)) != 2", "tests use made, which neither they nor the written solution define"),
    ],
)
def test_python_that_cannot_judge_makes_the_problem_unusable(text, message):
    with pytest.raises(UnusableError, match=f"here: .*{message}"):
        written_tests(text, "here", PythonSource(solution="def f(x): return x", runs_as_written=True))


def test_a_functional_test_calls_what_its_metadata_or_the_row_names():
    row = {"input": "2\n3", "output": "5", "testtype": "functional"}
    with pytest.raises(UnusableError, match="neither metadata nor entry_point names a function"):
        written_tests([row], "here", NOTHING)
    assert written_tests([row], "here", PythonSource(entry_point="add")) == (ADD,)
    assert written_tests([row | {"metadata": {"func_name": "add"}}], "here", NOTHING) == (ADD,)
    in_class = PythonSource(entry_point="add", starter_code="class Solution:\n    def add(self, a, b):")
    assert written_tests([row], "here", in_class) == (CallTest(call="Solution.add", args=(2, 3), expected=5),)


@pytest.mark.parametrize(
    "written", [[], 3, {"inputs": [1], "outputs": []}, "x = 1", "assert (", [{"call": "f"}], '{"inputs": ["1"]']
)
def test_what_has_no_form_is_an_error_with_its_place(written):
    with pytest.raises(ValueError, match=r"^here: "):
        written_tests(written, "here", NOTHING)


def test_what_is_called_already_is_called_once():
    for text in ("def test_f():\n    assert f(1) != 2\ntest_f()", "def near(x):\n    assert f(x) != x\nnear(f(1))"):
        assert written_tests(text, "here", NOTHING) == PythonTest(code=text, names=("f",))


def test_the_module_of_the_program_is_not_missing():
    text = "from solution import f, g as h\n\ndef test_f():\n    assert f(1) != h(2)"
    written = written_tests(text, "here", NOTHING)
    assert isinstance(written, PythonTest)
    assert written.names == ("f", "g")
    assert "import" not in written.code
    other = written_tests("from area import f\nassert f(1) != 2", "here", PythonSource(solution="def f(n): return n"))
    assert isinstance(other, PythonTest)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "def test_f(tmp_path):\n    assert f(tmp_path) != 2",
            "the tests in 'test_f' are never called; it needs tmp_path",
        ),
        ("def check(candidate):\n    assert candidate(1) != 2", "the tests in 'check' are never called"),
        (
            "class Odd:\n    def look(self):\n        assert f(1) == 2",
            "the class 'Odd' contains an assertion but is never used",
        ),
        ("def test():\n    assert f(1)\ndef test():\n    assert f(2)", "define 'test' 2 times"),
        ("import pytest\n@pytest.mark.parametrize('n', [1])\ndef test_f(n):\n    assert f(n)", "needs n|import pytest"),
        ("from area import f\nassert f(1) != 2", "import area"),
    ],
)
def test_tests_that_would_not_run_make_the_problem_unusable(text, message):
    with pytest.raises(UnusableError, match=f"here: .*({message})"):
        written_tests(text, "here", NOTHING)


def test_outputs_of_a_function_that_returns_a_list_are_not_wrapped():
    written = {"inputs": [[2]], "outputs": [[5]], "fn_name": "f"}
    for code in ("class Solution:\n    def f(self, n: int) -> List[int]:\n", "def f(n) -> list[int]:\n"):
        (test,) = cast(Any, written_tests(written, "here", PythonSource(starter_code=code)))
        assert test.expected == [5]
    source = PythonSource(starter_code="class Solution:\n    def f(self, n) -> int:\n")
    (test,) = cast(Any, written_tests(written, "here", source))
    assert (test.call, test.expected) == ("Solution.f", 5)


@pytest.mark.parametrize(
    "written", ["", "  ", "{}", {}, {"inputs": [], "outputs": []}, {"inputs": ["1"], "outputs": ["1", "2"]}]
)
def test_a_published_row_without_tests_is_unusable(written):
    with pytest.raises(UnusableError, match=r"^here: "):
        written_tests(written, "here", NOTHING)


def test_the_three_columns_of_codecontests_are_read_together():
    row = {"public_tests": {"input": ["1"], "output": ["2"]}, "private_tests": {"input": [], "output": []}}
    row["generated_tests"] = {"input": ["3"], "output": ["4"]}
    assert joined_columns(row) == {"inputs": ["1", "3"], "outputs": ["2", "4"]}
    assert joined_columns({name: json.dumps(column) for name, column in row.items()}) == joined_columns(row)
    assert joined_columns({"tests": []}) is None


def test_two_columns_of_lists_are_tests_as_in_rstar_coder():
    row = {"inputs": '["1", "3"]', "outputs": '["2", "4"]', "func_name": ""}
    assert written_tests(joined_columns(row), "here", NOTHING) == (
        StdioTest(stdin="1", stdout="2"),
        StdioTest(stdin="3", stdout="4"),
    )
    called = {"inputs": "[[2, 3]]", "outputs": "[5]", "func_name": "add"}
    assert written_tests(joined_columns(called), "here", NOTHING) == (ADD,)
    assert joined_columns(row | {"tests": []}) is None


@pytest.mark.parametrize(
    ("written", "tests"),
    [
        ("['assert f(1) == 2']", (CallTest(call="f", args=(1,), expected=2),)),
        (
            str({"language": "python", "test_cases": [{"input": "1", "output": "2"}]}),
            (StdioTest(stdin="1", stdout="2"),),
        ),
        ([{"input": ["1", "5"], "output": 2}], (StdioTest(stdin="1\n5", stdout="2"),)),
    ],
)
def test_lists_of_lines_and_what_python_printed_are_read(written, tests):
    assert written_tests(written, "here", NOTHING) == tests


def test_a_test_without_output_is_refused_and_a_number_that_is_too_long_is_unusable():
    for written in ([{"input": "1", "output": None}], {"inputs": ["1"], "outputs": [None]}):
        with pytest.raises(ValueError, match=r"here: (an )?output.* is None; expected text, or a list of lines"):
            written_tests(written, "here", NOTHING)
    with pytest.raises(UnusableError, match="a number that is too long"):
        written_tests('{"fn_name": "f", "inputs": [[1' + 5000 * "0" + ']], "outputs": [1]}', "here", NOTHING)
    with pytest.raises(UnusableError, match="tests import pytest"):
        written_tests("import pytest\nwith pytest.raises(ValueError):\n    f(1)", "here", NOTHING)
