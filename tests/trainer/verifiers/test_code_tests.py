"""Judging code: what counts as the expected value, and that nothing but computing it helps."""

import json
import os

import pytest
from places import DATA

from scalerl.sandbox import Limits, Sandbox, SandboxFailed, SandboxTimedOut
from scalerl.verifiers.programs import code_tests
from scalerl.verifiers.programs.code_tests import (
    CallTest,
    StdioTest,
    judge_code,
    normal_lines,
    read_tests,
    same_lines,
)

HOSTILE = DATA / "hostile"
TIGHT = Limits(wall_s=1.0, cpu_s=0.5, memory_mb=256, processes=16, output_kb=256, file_mb=16, files=500)
ROOMY = Limits(wall_s=20.0, cpu_s=5.0, memory_mb=256)
SQUARES = [CallTest(call="square", args=(n,), expected=n * n) for n in (0, 3, -12, 10**20)]
SUMS = [StdioTest(stdin="1 2\n", stdout="3\n"), StdioTest(stdin="10 -4\n7 7\n", stdout="6\n14\n")]
ADDS_LINES = "import sys\nfor line in sys.stdin:\n    print(sum(map(int, line.split())))\n"


VALUES = [
    0, True, None, 1.5, -0.0, float("inf"), float("nan"), 10**400, -(10**6000), 3 + 4j, "\0\ud800 é\u2028\n", b"\xff\0",
    [], [1, [2.5, "x"]], (1, (2,)), {1, 2}, frozenset({("a", 1)}), {}, {"a": {1: [None]}}, {(1, 2): {3}, 4: "d"},
    {10**5000: 1}, {10**5000, 2},
]  # fmt: skip
DEEP = json.loads("[" * 100 + "]" * 100)


@pytest.fixture(scope="module")
def sandbox():
    return Sandbox()


def judge(sandbox, program, tests, limits=ROOMY):
    return judge_code(program, tests, sandbox=sandbox, limits=limits)


def test_a_program_is_right_when_every_call_gives_the_expected_value(sandbox):
    assert judge(sandbox, "def square(n): return n * n", SQUARES) == "right"
    assert judge(sandbox, "def square(n): return n * n if n < 100 else 0", SQUARES) == "wrong"


def test_a_program_is_right_when_it_prints_the_expected_lines_for_every_input(sandbox):
    assert judge(sandbox, ADDS_LINES, SUMS) == "right"
    assert judge(sandbox, "print(sum(map(int, input().split())))", SUMS) == "wrong"


def test_calls_and_inputs_may_be_mixed_in_any_order(sandbox):
    program = (
        f"def square(n): return n * n\nif __name__ == '__main__':\n    {ADDS_LINES.replace(chr(10), chr(10) + '    ')}"
    )
    assert judge(sandbox, program, [SUMS[0], SQUARES[0], SUMS[1], *SQUARES[1:]]) == "right"


def test_any_value_of_a_test_is_given_and_returned_as_it_is(sandbox):
    tests = [CallTest(call="same", args=(value,), expected=value) for value in (*VALUES, DEEP)]
    assert judge(sandbox, "def same(x): return x", tests) == "right"
    typed = [CallTest(call="kind", args=(value,), expected=type(value).__name__) for value in VALUES]
    assert judge(sandbox, "def kind(x): return type(x).__name__", typed) == "right"


def test_an_integer_beyond_every_float_is_compared_with_a_float(sandbox):
    # 1.8e308 is the largest float; the program gives 0.0, inf and 1e308.
    tests = [CallTest(call="f", args=(), expected=10**400)]
    for value in ("0.0", "float('inf')", "1e308", "float('nan')"):
        assert judge(sandbox, f"def f(): return {value}", tests) == "wrong"
    assert judge(sandbox, "def f(): return 10**400", [CallTest(call="f", args=(), expected=1e308)]) == "wrong"


def test_a_right_answer_of_more_than_4300_digits_is_right(sandbox):
    tests = [CallTest(call="power", args=(3, n), expected=3**n) for n in (10, 10_000, 100_000)]
    assert judge(sandbox, "def power(a, n): return a ** n", tests) == "right"
    assert judge(sandbox, "def power(a, n): return a ** n + (n > 20_000)", tests) == "wrong"


def test_a_method_is_called_on_a_fresh_instance(sandbox):
    program = "class Solution:\n    seen = 0\n    def count(self):\n        self.seen += 1\n        return self.seen"
    assert judge(sandbox, program, [CallTest(call="Solution.count", args=(), expected=1)] * 2) == "right"


def test_each_input_meets_a_fresh_interpreter(sandbox):
    program = "import sys\nseen = globals().get('seen', 0) + 1\nsys.fresh = getattr(sys, 'fresh', 0) + 1\n"
    program += "print(seen, sys.fresh, input())"
    tests = [StdioTest(stdin=f"{n}\n", stdout=f"1 1 {n}\n") for n in range(3)]
    assert judge(sandbox, program, tests) == "right"


def test_what_a_called_program_prints_is_lost_and_does_no_harm(sandbox):
    program = "print('starting')\ndef square(n):\n    print('squaring', n)\n    return n * n"
    assert judge(sandbox, program, SQUARES) == "right"


def test_an_input_program_that_ends_with_an_error_is_wrong_even_with_the_right_lines(sandbox):
    test = [StdioTest(stdin="", stdout="5\n")]
    assert judge(sandbox, "print(5)", test) == "right"
    assert judge(sandbox, "import sys\nprint(5)\nsys.exit(0)", test) == "right"
    assert judge(sandbox, "print(5)\nraise ValueError", test) == "wrong"
    assert judge(sandbox, "import sys\nprint(5)\nsys.exit(3)", test) == "wrong"


@pytest.mark.parametrize(
    "program",
    [
        "print('all passed')",
        "import os; os._exit(0)",
        "import sys; sys.exit(0)",
        "raise SystemExit",
        "def square(n: return n",
        "def square(n): return 1 / 0",
        "def square(n): return square(n)",
        "def cube(n): return n",
        "",
        "\0",
        "\ud800 = 1",
        "square = None",
    ],
)
def test_a_program_that_does_not_do_its_work_is_wrong(sandbox, program):
    assert judge(sandbox, program, SQUARES) == "wrong"


# Others are in `programs.jsonl`.
FORGERIES = {
    "more lines than questions": "import os\nfor fd in range(3, 20):\n    try: os.write(fd, b'0\\n9\\n144\\n1\\n')\n"
    "    except OSError: pass\ndef square(n): return 0",
    "JSON nested beyond any stack": "import os\nfor fd in range(3, 20):\n    try: os.write(fd, b'[' * 200000)\n"
    "    except OSError: pass\nos._exit(0)",
    "the expected values of the frames around it": "import sys\ndef square(n):\n    frame = sys._getframe()\n"
    "    while frame:\n        for value in [*frame.f_locals.values()]:\n"
    "            if isinstance(value, dict) and 'expected' in value: return value['expected']\n"
    "        frame = frame.f_back",
    "containers that hold themselves": "def square(n):\n    a = []\n    a.append(a)\n    return a",
    "a list as deep as the stack": "def square(n):\n    a = []\n    for _ in range(900): a = [a]\n    return a",
    "a forged list as deep as the stack": "import os\nfor fd in range(3, 20):\n"
    "    try: os.write(fd, (b'{\"list\": [' * 320 + b']}' * 320 + b'\\n') * 4)\n    except OSError: pass\nos._exit(0)",
    "forged decimal digits": "import os\nfor fd in range(3, 20):\n    try: os.write(fd, (b'9' * 5000 + b'\\n') * 4)\n"
    "    except OSError: pass\nos._exit(0)",
    "an integer of a million digits": "def square(n): return 1 << 4000000",
}


@pytest.mark.parametrize("how", FORGERIES)
def test_no_forgery_is_right(sandbox, how):
    assert judge(sandbox, FORGERIES[how], SQUARES) == "wrong"


def test_the_expected_values_never_enter_the_sandbox():
    class Recorder:
        def run(self, program, *, stdin, limits):
            self.sent = program + stdin
            raise SandboxFailed("not run")

    recorder = Recorder()
    tests = [CallTest(call="f", args=(1,), expected=8675309), StdioTest(stdin="in", stdout="8675309")]
    judge_code("pass", tests, sandbox=recorder, limits=ROOMY)  # pyright: ignore[reportArgumentType]
    assert '"in"' in recorder.sent
    assert "8675309" not in recorder.sent


@pytest.mark.parametrize(("error", "outcome"), [(SandboxFailed("x"), "crashed"), (SandboxTimedOut("x"), "timed_out")])
def test_a_failure_of_the_sandbox_is_a_status_of_its_own(sandbox, monkeypatch, error, outcome):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(sandbox, "run", fail)
    assert judge(sandbox, "def square(n): return n * n", SQUARES) == outcome


@pytest.mark.parametrize("path", sorted(HOSTILE.glob("*.py")), ids=lambda path: path.stem)
def test_hostile_programs_are_wrong_in_calls_and_inputs(sandbox, path):
    # `f` would be right: what the program does before it is called, or prints, decides.
    tests = [CallTest(call="f", args=(), expected=8675309), StdioTest(stdin="", stdout="8675309\n")]
    assert judge(sandbox, path.read_text() + "\n\ndef f(): return 8675309\n", tests, TIGHT) == "wrong"
    assert judge(sandbox, "def square(n): return n * n", SQUARES) == "right"


@pytest.mark.parametrize(
    "wire", [[1], {}, {"list": 1}, {"list": [], "set": []}, {"dict": [[1]]}, {"dict": [1]}, {"set": [{"dict": []}]}]
)
def test_what_the_harness_never_writes_is_wrong(sandbox, wire):
    line = f"{json.dumps(wire)}\n".encode()
    program = f"import os\nfor fd in range(20):\n    try: os.write(fd, {line!r})\n    except OSError: pass\nos._exit(0)"
    assert judge(sandbox, program, [CallTest(call="f", args=(), expected=[])]) == "wrong"


def test_lines_are_compared_without_regard_to_spaces_at_their_ends_and_between_words():
    assert normal_lines("\n 1  2 \r\n3\t4\n\n") == ["1 2", "3 4"]
    assert normal_lines("1\n\n2") == ["1", "", "2"]
    assert normal_lines("1 2") != normal_lines("1\n2")


@pytest.mark.parametrize(
    ("answer", "expected"),
    [("4.0", "4"), ("4", "4.0"), ("0.5", "0.50"), (".5", "0.5"), ("1 2.0 x", "1 2 x"), ("1e+16", "10000000000000000"),
     ("-0.0", "0"), ("0.3333333333", "0.33333333"), ("2.50", "2.5"), ("100", "1e2"), ("007", "007"), ("x 4.00", "x 4"),
     ("1000000.5", "1000000.50"), ("-3.0", "-3"), ("5e-05", "0.00005"), ("nan", "nan"), ("4.", "4")],
)  # fmt: skip
def test_these_lines_are_the_same(answer, expected):
    assert same_lines([answer], [expected])


@pytest.mark.parametrize(
    ("answer", "expected"),
    [("7", "007"), ("007", "7"), ("00", "0"), ("3.0000001", "3"), ("3", "3.01"), ("YES", "yes"),
     ("2500003", "2500003.5"), ("2500003.5", "2500003"), ("0.51", "0.50"),
     ("1_000", "1000"), ("1,000", "1000"), ("٤", "4"), ("4 4", "4"),
     ("4", "-4"), ("", "0"), (".", "0"), ("-", "0"), ("e5", "0"), ("NaN", "nan"), ("1e9999", "1e9998.0"), ("0x4", "4"),
     ("1e9999", "1.0"), ("1.5.0", "1.5"), ("1e-9999", "0.1"), ("+4", "4"), ("True", "1"),
     ("12345678901234567890.0", "12345678901234567891")],
)  # fmt: skip
def test_these_lines_are_not_the_same(answer, expected):
    assert not same_lines([answer], [expected])
    assert not same_lines(["1", answer], ["1", expected])
    assert not same_lines([expected, answer], [expected])


def test_tests_are_read_as_a_task_file_writes_them():
    rows = [{"call": "f", "args": [1], "expected": {"a": 1}}, {"stdin": "1", "stdout": "2"}]
    assert read_tests(rows, "code.jsonl: problem 3") == (
        CallTest(call="f", args=(1,), expected={"a": 1}),
        StdioTest(stdin="1", stdout="2"),
    )


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "no tests"),
        ([{"call": "f", "args": [1]}], "test 0"),
        ([{"stdin": "1", "stdout": "2"}, {"stdin": "1", "output": "2"}], "test 1"),
        ([{"call": "f", "args": 1, "expected": 1}], "test 0"),
        ([{"stdin": 1, "stdout": "2"}], "test 0"),
        ([{"stdin": "1", "stdout": "\ud800"}], "test 0: stdout: character 0"),
        ([{"call": "f", "args": [...], "expected": 1}], "test 0: args: a value is of type ellipsis"),
        ([{"call": "f", "args": [1], "expected": [slice(3)]}], "test 0: expected: a value is of type slice"),
        ([{"call": "f", "args": [1], "expected": [DEEP]}], "test 0: expected: a value is nested more than 100 deep"),
    ],
)
def test_a_test_of_another_form_is_refused_with_file_and_number(rows, words):
    with pytest.raises(ValueError, match=rf"code\.jsonl: problem 3: .*{words}|code\.jsonl: problem 3: {words}"):
        read_tests(rows, "code.jsonl: problem 3")


def test_a_judgement_without_tests_is_refused(sandbox):
    with pytest.raises(ValueError, match="no tests"):
        judge(sandbox, "pass", [])


def test_a_machine_without_room_for_a_program_judges_nothing(sandbox, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "memfd_create", full)
    assert judge(sandbox, "def square(n): return n * n", SQUARES) == "crashed"


def test_a_harness_that_fails_before_the_program_is_a_crash_not_a_wrong_answer(sandbox, monkeypatch):
    monkeypatch.setattr(code_tests, "HARNESS", "raise MemoryError")
    assert judge(sandbox, "def square(n): return n * n", SQUARES) == "crashed"


def test_no_file_descriptor_is_left_open(sandbox):
    before = len(os.listdir("/proc/self/fd"))
    judge(sandbox, "def square(n): return n * n", SQUARES)
    assert len(os.listdir("/proc/self/fd")) == before
