"""Names that a problem's start relies on, in every form of tests: a program may keep the start as it was given."""

import json

import pytest

from scalerl.recipe import Code
from scalerl.sandbox import Limits, Sandbox
from scalerl.tasks import make_task
from scalerl.tokens import CharacterTokenizer
from scalerl.verifiers.programs.code_tests import CallTest, StdioTest, judge_code
from scalerl.verifiers.programs.given_names import given_names
from scalerl.verifiers.programs.python_tests import PythonTest, judge_python

TOKENIZER = CharacterTokenizer(thinks=False)
LIMITS = Limits(wall_s=20.0, cpu_s=5.0, memory_mb=256)
START = "def most(xs: List[int], least: Optional[int] = None) -> Dict[str, int]:\n"
METHOD = "class Solution:\n    def most(self, xs: List[int]) -> Optional[Dict[str, int]]:\n"
CALLS = [
    {"call": "most", "args": [[2, 5]], "expected": {"most": 5}},
    {"call": "most", "args": [[3]], "expected": {"most": 3}},
]
PAIRS = {"fn_name": "most", "inputs": [[[2, 5]], [[3]]], "outputs": [{"most": 5}, {"most": 3}]}
ASSERTS = ["assert most([2, 5]) == {'most': 5}", "assert most([3])['most'] == 3"]
CHECK = "def check(candidate):\n    for x in range(3):\n        assert candidate([2, x]) == {'most': 2}\n"
FUNCTIONAL = [
    {"input": "[2, 5]", "output": '{"most": 5}', "testtype": "functional"},
    {"input": "[3]", "output": '{"most": 3}', "testtype": "functional"},
]
BODY = "    return {'most': max(xs)}\n"
STARTS = {
    "own calls": ({"starter_code": START, "tests": CALLS}, None),
    "own calls, with the start in the question": ({"question": f"Fill in:\n{START}", "tests": CALLS}, None),
    "APPS": ({"starter_code": START, "input_output": json.dumps(PAIRS)}, None),
    "APPS without a start": ({"input_output": json.dumps(PAIRS)}, None),
    "assertions": ({"starter_code": START, "test_list": ASSERTS}, None),
    "assertions as calls": ({"starter_code": START, "test_list": ASSERTS[:1]}, None),
    "MBPP": ({"text": "Most.", "code": START + BODY, "test_list": ASSERTS, "starter_code": START}, "mbpp"),
    "HumanEval": ({"prompt": START, "test": CHECK, "entry_point": "most"}, "humaneval"),
    "columns of HumanEval": ({"prompt": START, "test": CHECK, "entry_point": "most"}, None),
    "LeetCode": ({"starter_code": METHOD, "input_output": json.dumps(PAIRS)}, None),
    "LeetCodeDataset": ({"starter_code": METHOD, "test": CHECK, "entry_point": "Solution().most"}, None),
    "LiveCodeBench": (
        {
            "question_content": "Most.",
            "starter_code": METHOD,
            "public_test_cases": json.dumps(FUNCTIONAL),
            "metadata": json.dumps({"func_name": "most"}),
        },
        "livecodebench",
    ),
    "tests of LiveCodeBench": ({"starter_code": START, "tests": FUNCTIONAL, "entry_point": "most"}, None),
    "SYNTHETIC-1": (
        {
            "tests": {
                "language": "python",
                "test_cases": [
                    {"input": [[2, 5]], "output": {"most": 5}, "fn_name": "most"},
                    {"input": [[3]], "output": {"most": 3}, "fn_name": "most"},
                ],
            }
        },
        None,
    ),
}


@pytest.fixture(scope="module")
def sandbox():
    return Sandbox()


def judge_of(tmp_path, row, form):
    """Judge of programs for a problem."""
    row = {"question": "Most of a list."} | row if form is None and "prompt" not in row else row
    column = next(name for name in ("question", "prompt", "text", "question_content") if name in row)
    written = row[column] if column == "prompt" else f"{row[column]}\n"
    marks = [f"# {i}\n{written}" for i in range(3)]
    train, held = tmp_path / "train.jsonl", tmp_path / "held.jsonl"
    train.write_text(json.dumps(row | {column: marks[0]}) + "\n")
    held.write_text("".join(json.dumps(row | {column: mark}) + "\n" for mark in marks[1:]))
    task = make_task(Code(path=str(train), validation_path=str(held), **({"form": form} if form else {})), TOKENIZER)
    prompt = task.validation[0]

    def judge(program):
        answer = TOKENIZER.encode(f"```python\n{program}\n```")
        return task.judge(prompt, [*answer, TOKENIZER.eos_ids[0]]).outcome

    return judge


@pytest.mark.parametrize("name", STARTS)
def test_a_program_that_keeps_the_given_start_is_right_and_a_wrong_one_is_wrong(tmp_path, name):
    row, form = STARTS[name]
    judge = judge_of(tmp_path, row, form)
    start, indent = (METHOD, "    ") if METHOD in str(row.get("starter_code")) else (START, "")
    assert judge(f"{start}{indent}{BODY}") == "right"
    assert judge(f"{start}{indent}{BODY.replace('max', 'min')}") == "wrong"
    assert judge(f"{start}{indent}{BODY.replace('max', 'nobody')}") == "wrong"


def test_calls_of_ones_own_without_a_start_are_judged_as_plain_python(tmp_path):
    judge = judge_of(tmp_path, {"tests": CALLS}, None)
    assert judge(f"{START}{BODY}") == "wrong"
    assert judge(f"from typing import List, Optional, Dict\n{START}{BODY}") == "right"


def test_python_tests_without_a_start_are_judged_as_plain_python(tmp_path):
    judge = judge_of(tmp_path, {"text": "Most.", "test_list": ASSERTS}, "mbpp")
    assert judge(f"{START}{BODY}") == "wrong"
    assert judge(f"from typing import List, Optional, Dict\n{START}{BODY}") == "right"


OF_APPS = {
    "math": "print(math.factorial(int(input())))",
    "names of math": "print(floor(sqrt(36)) if int(input()) == 3 else ceil(23.5))",
    "collections": "n = int(input())\nprint(sum(Counter(range(1, n + 1)).keys()) if n == 3 else deque([24]).pop())",
    "itertools": "n = int(input())\nprint(len(list(permutations(range(n)))))",
    "an alias of NumPy": "print(np.prod(np.arange(1, int(input()) + 1)))",
    "heapq": "h = []\nheappush(h, 6 if int(input()) == 3 else 24)\nprint(heapq.heappop(h))",
    "modules": "time.time(); random.seed(0); fractions.Fraction(1)\nprint(math.factorial(int(sys.stdin.readline())))",
    "a decorator": "@lru_cache(None)\ndef f(n) -> List: return n * f(n - 1) if n else 1\nprint(f(int(input())))",
    "a text": "print(eval('math.factorial(%s)' % input()))",
}


@pytest.mark.parametrize("name", OF_APPS)
def test_programs_of_apps_may_use_the_header_of_its_grader(tmp_path, name):
    tests = {"inputs": ["3\n", "4\n"], "outputs": ["6\n", "24\n"]}
    judge = judge_of(tmp_path, {"input_output": json.dumps(tests)}, None)
    assert judge(OF_APPS[name]) == "right"
    assert judge("print(nothing.factorial(int(input())))") == "wrong"


REDEFINED = {
    "a function": "def gcd(a, b): return 7\ndef f(): return gcd(2, 4)",
    "a class": "class Counter:\n    size = 7\ndef f(): return Counter.size",
    "a variable": "inf = 7\ndef f(): return inf",
    "a module": "math = [7]\ndef f(): return math[0]",
    "an import": "from operator import add as sub\ndef f(): return sub(3, 4)",
    "a parameter": "def g(List): return List\ndef f(): return g(7)",
    "a missing name": "try:\n    unknown\nexcept NameError:\n    seven = 7\ndef f(): return seven",
}


@pytest.mark.parametrize("name", REDEFINED)
def test_what_a_program_defines_itself_wins(sandbox, name):
    program = REDEFINED[name]
    test = PythonTest(code="assert f() == 7", names=("f",), gives_names=True)
    assert judge_python(program, test, sandbox=sandbox, limits=LIMITS) == "right"
    calls = [CallTest(call="f", args=(), expected=7)]
    assert judge_code(program, calls, sandbox=sandbox, limits=LIMITS, gives_names=True) == "right"
    shown = [StdioTest(stdin="", stdout="7")]
    assert judge_code(f"{program}\nprint(f())", shown, sandbox=sandbox, limits=LIMITS, gives_names=True) == "right"


@pytest.mark.parametrize("program", ["", "gcd", "x = gcd", "class Solution: pass", "from os import path"])
@pytest.mark.parametrize("call", ["gcd", "Solution.gcd"])
def test_a_given_name_is_never_the_function_that_is_asked_for(sandbox, program, call):
    calls = [CallTest(call=call, args=(4, 6), expected=2)]
    assert judge_code(program, calls, sandbox=sandbox, limits=LIMITS, gives_names=True) == "wrong"
    test = PythonTest(code=f"assert {call.replace('Solution', 'Solution()')}(4, 6) == 2", names=(call.split(".")[0],))
    test = PythonTest(code=test.code, names=test.names, gives_names=True)
    assert judge_python(program, test, sandbox=sandbox, limits=LIMITS) == "wrong"


def test_tests_that_expect_an_unknown_name_still_do(sandbox):
    code = "try:\n    f()\n    assert False\nexcept NameError:\n    assert f"
    test = PythonTest(code=code, names=("f",), gives_names=True)
    for program, outcome in (("def f(): return nothing_here", "right"), ("def f(): return 1", "wrong")):
        assert judge_python(program, test, sandbox=sandbox, limits=LIMITS) == outcome


def test_tests_of_a_start_may_use_the_names_too(tmp_path):
    check = "def check(candidate):\n    assert candidate([2, 5]) == Counter(most=5)\n    assert inf > 1\n"
    row = {"starter_code": START, "test": check, "entry_point": "most"}
    judge = judge_of(tmp_path, row, None)
    assert judge(f"{START}{BODY}") == "right"
    assert judge(f"{START}{BODY.replace('max', 'min')}") == "wrong"


def test_every_given_name_can_be_imported_in_the_sandbox(sandbox):
    program = "\n".join(given_names())
    assert (
        judge_code(program, [StdioTest(stdin="", stdout="")], sandbox=sandbox, limits=LIMITS, gives_names=True)
        == "right"
    )
    assert {"List", "Optional", "Dict", "math", "gcd", "heappush", "deque", "lru_cache", "inf", "np"} <= {
        *given_names()
    }
    assert not {"print", "pow", "open", "__name__", "last_value"} & {*given_names()}
