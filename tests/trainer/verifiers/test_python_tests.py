"""Tests that are Python text: what they may do, and that no program passes them without doing its work."""

import os
from dataclasses import replace

import pytest
from places import DATA

from scalerl.sandbox import Limits, Sandbox, SandboxFailed, SandboxTimedOut
from scalerl.tasks.code_test_forms import written_tests
from scalerl.tasks.python_test_code import PythonSource
from scalerl.verifiers.programs import python_tests
from scalerl.verifiers.programs.python_tests import PythonTest, judge_python

HOSTILE = ["closes_channel", "floods_stdout", "fork_bomb", "kills_everyone"]
TIGHT = Limits(wall_s=1.0, cpu_s=0.5, memory_mb=256, processes=16, output_kb=256, file_mb=16, files=500)
ROOMY = Limits(wall_s=20.0, cpu_s=5.0, memory_mb=256)
SQUARE = PythonTest(code="for n in (0, 3, -12, 10**20):\n    assert f(n) == n * n", names=("f",))


@pytest.fixture(scope="module")
def sandbox():
    return Sandbox()


def judge(sandbox, program, code, limits=ROOMY, **more):
    names = more.pop("names", ("f",))
    return judge_python(program, PythonTest(code=code, names=names, **more), sandbox=sandbox, limits=limits)


RIGHT = {
    "a tolerance": ("def f(x): return x / 3", "assert abs(f(1) - 1 / 3) < 1e-9"),
    "a library": ("def f(x): return x ** 0.5", "import math\nassert math.isclose(f(2), math.sqrt(2))"),
    "a negation": ("def f(x): return []", "assert not f(1)\nassert f(1) is not None\nassert f(2) == []"),
    "identity": ("def f(x): return None if x else True", "assert f(1) is None\nassert f(0) is True"),
    "sets, tuples and keys": (
        "def f(x): return {(1, 2): {3}, 4: frozenset([5])}",
        "assert f(0) == {(1, 2): {3}, 4: frozenset({5})}\nassert type(f(0)[4]) is frozenset",
    ),
    "tuples and keys given": (
        "def f(pair, table): return type(pair) is tuple and table[1] == 'a'",
        "assert f((1, 2), {1: 'a'}) is True",
    ),
    "a call of a call": ("def f(x): return x + 1", "assert f(f(1)) == 3"),
    "a helper": ("def f(x): return x * 2", "def near(a, b):\n    return abs(a - b) < 1\nassert near(f(2), 4.5)"),
    "what it raises": (
        "def f(x):\n    if x < 0: raise ValueError('negative')\n    return x",
        "try:\n    f(-1)\n    assert False\nexcept ValueError as error:\n    assert 'negative' in str(error)\n"
        "assert f(1) == 1",
    ),
    "an exception of its own": (
        "class Odd(KeyError): pass\ndef f(x): raise Odd(x)",
        "try:\n    f(1)\nexcept LookupError:\n    pass\nelse:\n    assert False",
    ),
    "a generator": ("def f(n):\n    yield from range(n)", "assert list(f(3)) == [0, 1, 2]\nassert f(3) != [0, 1, 2]"),
    "a view and a map": (
        "def f(d): return d.keys() if d else map(str, [1])",
        "assert set(f({1: 2})) == {1}\nassert list(f({})) == ['1']",
    ),
    "keywords": ("def f(a, *, b=1): return a - b", "assert f(3, b=2) == 1"),
    "numbers of other types": (
        "from decimal import Decimal\nfrom fractions import Fraction\n"
        "def f(x): return [Decimal('0.1'), Fraction(1, 3), 1j]",
        "from decimal import Decimal\nfrom fractions import Fraction\n"
        "assert f(0) == [Decimal('0.1'), Fraction(1, 3), 1j]",
    ),
    "dates": (
        "import datetime\ndef f(day): return day + datetime.timedelta(days=1)",
        "import datetime\nassert f(datetime.date(2024, 2, 28)) == datetime.date(2024, 2, 29)",
    ),
    "an integer beyond every float": ("def f(n): return 10 ** n", "assert f(5000) == 10 ** 5000"),
    "infinities": ("def f(x): return [float('inf'), float('nan')]", "a, b = f(0)\nassert a == float('inf') and b != b"),
    "subclasses": (
        "from collections import namedtuple, Counter\nP = namedtuple('P', 'x y')\ndef f(x): return P(1, Counter(x))",
        "assert f('aab') == (1, {'a': 2, 'b': 1})",
    ),
    "classes of the program": (
        "class f:\n    def __init__(self, x): self.x, self.left = x, None\n"
        "    def sum(self): return self.x + (self.left.sum() if self.left else 0)",
        "root = f(1)\nroot.left = f(2)\nroot.left.left = f(4)\nassert root.sum() == 7\nassert root.left.x == 2",
    ),
    "functions given": (
        "def f(g, xs): return [g(x) for x in xs]",
        "assert f(lambda x: x + 1, [1, 2]) == [2, 3]\nassert f(abs, [-1]) == [1]",
    ),
    "a truth of an object": ("import re\ndef f(x): return re.match('a', x)", "assert f('ab')\nassert not f('b')"),
    "chance": (
        "def f(x): return x",
        "import random\nfor _ in range(5):\n    n = random.randint(0, 9)\n    assert f(n) == n",
    ),
    "text of any kind": ("def f(x): return x[::-1]", "assert f('a\\0\\ud800é\\n') == '\\né\\ud800\\0a'"),
    "what it prints": (
        "def f(x):\n    print('x' * 9999)\n    return input() if x else 1",
        "print('hello')\nassert f(0) == 1",
    ),
}


@pytest.mark.parametrize("what", RIGHT)
def test_tests_may_have(sandbox, what):
    program, code = RIGHT[what]
    assert judge(sandbox, program, code) == "right"
    assert judge(sandbox, "def f(*_, **__): return 'something else'", code) == "wrong"


def test_changes_in_place_show_after_the_statement_that_calls(sandbox):
    program = "def f(xs):\n    xs.sort()\n    return xs"
    assert judge(sandbox, program, "xs = [3, 1, 2]\nf(xs)\nassert xs == [1, 2, 3]") == "right"
    assert judge(sandbox, program, "xs = [3, 1]\nassert f(xs) == [1, 3]\nassert xs == [3, 1]") == "wrong"
    empties = "def f(xs):\n    xs.clear()\n    return 0"
    assert judge(sandbox, empties, "xs = [3, 1, 2]\nassert f(xs) == sum(xs)") == "wrong"


def test_what_runs_before_is_there_for_both_but_the_program_cannot_change_it_for_the_tests(sandbox):
    before = "import math\ndef coded(x): return x[::-1]\ndef f(x): ..."
    code = "assert f(coded('abc')) == 'abc'\nassert f('x' * 3) == 'xxx'"
    assert judge(sandbox, "def f(x): return coded(x)", code, before=before) == "right"
    assert judge(sandbox, "def coded(x): return x\ndef f(x): return x", code, before=before) == "wrong"
    assert (
        judge(sandbox, "from __future__ import annotations\ndef f(x): return coded(x)", code, before=before) == "right"
    )


FORGERIES = {
    "a value that equals everything": "class Any(int):\n    __eq__ = lambda *_: True\n    __hash__ = int.__hash__\n"
    "def f(n): return Any(1)",
    "an object that equals everything": "class Any:\n    __eq__ = lambda *_: True\n    __req__ = lambda *_: True\n"
    "    def __getattr__(self, name): return lambda *_: True\ndef f(n): return Any()",
    "a class that is everything": "class f:\n    def __init__(self, n): pass\n    __eq__ = lambda *_: True\n"
    "    __class__ = int",
    "an assertion error that is never raised": "import builtins\nclass Never(Exception): pass\n"
    "builtins.AssertionError = Never\ndef f(n): return 1",
    "leaving early": "import os\ndef f(n): os._exit(0)",
    "leaving at once": "import os\nos._exit(0)",
    "sys.exit": "import sys\nsys.exit(0)",
    "SystemExit in a call": "def f(n): raise SystemExit(0)",
    "a forged verdict": "import os\nfor fd in range(20):\n    try: os.write(fd, b'ready\\nright\\n' * 3)\n"
    "    except OSError: pass\ndef f(n): return 1",
    "answers ahead of questions": "import os\nfor fd in range(3, 20):\n"
    '    try: os.write(fd, b\'{"value": 0}\\n{"value": 9}\\n\')\n'
    "    except OSError: pass\ndef f(n): os._exit(0)",
    "an end without a word": "import os\nos.closerange(0, 100)",
    "a patched harness": "import __main__, json\n__main__.written = lambda *_: {'object': 0}\n"
    "json.dumps = lambda *_: '{\"value\": true}'\ndef f(n): return 1",
    "the tests in the frames around it": "import sys, gc\ndef f(n):\n    for thing in gc.get_objects():\n"
    "        if isinstance(thing, dict) and 'tests' in thing: return eval(thing['tests'])\n"
    "    return 'not found'",
    "a callback that was never given": "import __main__, gc\ndef f(n):\n"
    "    for side in gc.get_objects():\n"
    "        if type(side).__name__ == 'Program': side.channel.send({'callback': 0, 'args': {'list': []}})",
    "a message of another shape": "import __main__, os\n"
    "__main__.Channel.send = lambda self, _: os.write(self.out, b'5\\n')\n"
    "def f(n): return 1",
    "nesting": "def f(n):\n    a = []\n    for _ in range(100000): a = [a]\n    return a",
    "a list that holds itself": "def f(n):\n    a = []\n    a.append(a)\n    return a",
    "an endless generator": "def f(n):\n    while True: yield n * n",
    "a fraction by zero": "import __main__\n"
    "__main__.Program.answer = lambda *_: {'value': {'fractions.Fraction': [1, 0]}}\n"
    "def f(n): return 1",
    "a name of Python's own": "import __main__\n__main__.Program.answer = lambda *_: {'value': {'builtin': 'eval'}}\n"
    "def f(n): return 1",
}


CAUGHT = "try:\n    f(-1)\n    assert False\nexcept Bad:\n    pass\nassert f(1) == 0"
PRETENCES = {
    "an end of iteration": ("def f(n): raise StopIteration", "assert all(map(lambda n: f(n) == n, [1, 2]))"),
    "an object that contains everything": (
        "class f:\n    __init__ = lambda *_: None\n    __contains__ = lambda *_: True",
        "assert 4 in f(2)",
    ),
    "a class that is any tuple": (
        "class f(tuple):\n    __new__ = lambda kind, n: tuple.__new__(kind, ())\n    __eq__ = lambda *_: True",
        "assert f(2) == (4,)",
    ),
    "a product that is a number": (
        "class f:\n    __init__ = lambda *_: None\n    __mul__ = lambda *_: 4",
        "assert f(2) * 1 == 4",
    ),
    "an end of `with` that hides failures": (
        "class f:\n    __init__ = lambda *_: None\n    __enter__ = __exit__ = lambda *_: True",
        "assert f(0) is not None\nwith f(1) as found:\n    assert found == 5",
    ),
    "an error of its own that is every error": ("Bad = Exception\ndef f(n): return 0", CAUGHT),
    "errors of its own, with those of the tests": ("Bad = (ValueError, AssertionError)\ndef f(n): return 0", CAUGHT),
}


@pytest.mark.parametrize("what", PRETENCES)
def test_no_object_of_the_program_passes_for_a_value_or_hides_a_failure(sandbox, what):
    program, code = PRETENCES[what]
    assert judge(sandbox, program, code, names=("f", "Bad")) == "wrong"


@pytest.mark.parametrize("how", FORGERIES)
def test_no_forgery_is_right(sandbox, how):
    limits = ROOMY.model_copy(update={"cpu_s": 1.0, "memory_mb": 192})
    assert judge(sandbox, FORGERIES[how], SQUARE.code, limits) == "wrong"


@pytest.mark.parametrize("how", ["leaving early", "a forged verdict", "SystemExit in a call", "an end without a word"])
def test_tests_that_catch_everything_have_not_passed_when_the_program_is_gone(sandbox, how):
    code = "try:\n    f(-1)\nexcept BaseException:\n    pass\n"
    code += "try:\n    assert f(3) == 9\nexcept RuntimeError:\n    assert False"
    assert judge(sandbox, FORGERIES[how], code) == "wrong"


def test_the_tests_never_enter_the_sandbox_of_the_program():
    class Recorder:
        sent = ""

        def run(self, program, *, stdin, stdout, limits):
            if "judged by this" not in program:
                self.sent += program
            raise SandboxFailed("not run")

    recorder = Recorder()
    test = PythonTest(code="assert f(1) == 8675309  # judged by this", names=("f",))
    judge_python("pass", test, sandbox=recorder, limits=ROOMY)  # pyright: ignore[reportArgumentType]
    assert "serve_program(" in recorder.sent
    assert "8675309" not in recorder.sent


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_program_is_wrong_and_the_next_one_is_judged_as_ever(sandbox, name):
    code = "assert f() == 8675309"
    text = (DATA / "hostile" / f"{name}.py").read_text()
    assert judge(sandbox, text + "\n\ndef f(): return 1\n", code, TIGHT) == "wrong"
    assert judge_python("def f(n): return n * n", SQUARE, sandbox=sandbox, limits=ROOMY) == "right"


@pytest.mark.parametrize(("error", "outcome"), [(SandboxFailed("x"), "crashed"), (SandboxTimedOut("x"), "timed_out")])
@pytest.mark.parametrize("side", ["run_tests", "serve_program"])
def test_a_failure_of_either_sandbox_is_a_status_of_its_own(sandbox, monkeypatch, error, outcome, side):
    run = sandbox.run

    def fail(program, **more):
        if f"\n\n{side}(**" in program:
            raise error
        return run(program, **more)

    monkeypatch.setattr(sandbox, "run", fail)
    assert judge_python("def f(n): return n * n", SQUARE, sandbox=sandbox, limits=ROOMY) == outcome


def test_processes_that_fail_before_the_program_are_a_crash_not_a_wrong_answer(sandbox, monkeypatch):
    monkeypatch.setattr(python_tests, "PROCESSES_TEXT", "raise MemoryError")
    assert judge_python("def f(n): return n * n", SQUARE, sandbox=sandbox, limits=ROOMY) == "crashed"


def test_a_judgement_leaves_no_file_descriptor_open(sandbox):
    before = len(os.listdir("/proc/self/fd"))
    assert judge_python("def f(n): return n * n", SQUARE, sandbox=sandbox, limits=ROOMY) == "right"
    assert len(os.listdir("/proc/self/fd")) == before


def test_answers_larger_than_a_pipe_arrive_whole(sandbox):
    program, code = "def f(x): return x * 2", "assert f('ab' * 200_000) == 'ab' * 400_000"
    assert judge(sandbox, program, code) == "right"
    assert judge(sandbox, program, code, ROOMY.model_copy(update={"output_kb": 64})) == "wrong"


ODD, ALWAYS = "def f(n): return n % 2 == 1", "def f(n): return True"


@pytest.mark.parametrize(
    "code",
    ["if False:\n    assert f(3)", "for n in []:\n    assert f(n)", "f(3)", "assert True\nf(3)",
     "def test():\n    assert not f(4)", "try:\n    assert not f(3)\nexcept AssertionError:\n    pass",
     "try:\n    assert not f(3)\nexcept Exception:\n    pass"],
)  # fmt: skip
def test_tests_of_which_no_assertion_ran_make_no_program_right(sandbox, code):
    assert judge(sandbox, ODD, code) == "wrong"


def test_what_the_program_awaits_is_awaited(sandbox):
    code = "import asyncio\nasync def test():\n    assert await f(3) == 6\nasyncio.run(test())"
    program = "import asyncio\nasync def f(n):\n    await asyncio.sleep(0)\n    return {} * n"
    assert judge(sandbox, program.format(2), code) == "right"
    assert judge(sandbox, program.format(3), code) == "wrong"


def test_an_error_that_unittest_expects_is_an_assertion(sandbox):
    code = "import unittest\nclass A(unittest.TestCase):\n    def test(self):\n"
    code += "        with self.assertRaises(ValueError):\n            f(-1)\nrun_test_class(A)"
    assert judge(sandbox, "def f(n): raise ValueError(n)", code) == "right"
    assert judge(sandbox, "def f(n): return n", code) == "wrong"


@pytest.mark.parametrize(
    ("assertion", "program", "outcome"),
    [
        ("assert f(2) == 4", "def f(x): return 2.0 * x", "right"),
        ("assert f(2) == True", "def f(x): return 1", "right"),
        ("assert f(2) == 0.1", "def f(x): return 0.1 + 1e-9", "wrong"),
        ("assert f((1, 2)) == [1, 2]", "def f(x): return [*x]", "right"),
        ("assert f((1, 2)) == [1, 2]", "def f(x): return x", "wrong"),
        ("assert f([[1, (2,)]]) == [[1, (2,)]]", "def f(x): return x", "right"),
        ("assert f(2) == {1: 'a'}", "def f(x): return {1: 'a'}", "right"),
        ("assert f(2) == {'1': 'a'}", "def f(x): return {1: 'a'}", "wrong"),
        ("assert f(2) == {1, 2}", "def f(x): return frozenset([2, 1])", "right"),
        ("assert f('ab') == {'a': 1, 'b': 1}", "from collections import Counter as f", "right"),
        ("assert f(2) == 4", "import numpy\ndef f(x): return numpy.int64(4)", "right"),
        ("assert f(2) == [0, 1]", "def f(x): return (i for i in range(x))", "wrong"),
        ("assert f(2) == 4", "class Solution:\n    def f(self, x): return 4", "wrong"),
        ("assert f([2, 1]) == [1, 2]", "def f(x): x.sort()", "wrong"),
        ("assert f(0) == 0", "def f(x): return 1 / x", "wrong"),
    ],
)
def test_calls_alone_give_the_verdict_of_the_assertions_as_they_stand(sandbox, assertion, program, outcome):
    test = written_tests(assertion, "here", PythonSource(runs_as_written=True))
    assert isinstance(test, PythonTest)
    assert test.calls
    for one in (test, replace(test, calls=())):
        assert judge_python(program, one, sandbox=sandbox, limits=Limits()) == outcome
