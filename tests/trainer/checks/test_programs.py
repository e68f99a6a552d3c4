"""Tests of programs that a wrong program passes are named."""

import json

from trainer.checks.test_checks import CHARACTERS
from trainer.tiny import tiny_recipe

from scalerl.checks.programs import check_tests
from scalerl.checks.subject import Subject
from scalerl.tasks.proof import wrong_programs
from scalerl.verifiers.programs.code_tests import CallTest, StdioTest

SOUND = {"question": "is n odd", "tests": ["assert f(3) == True", "assert f(4) == False"]}
ROWS = [
    SOUND | {"solution": "def f(n):\n    return n % 2 == 1"},
    {"question": "print n", "tests": [{"stdin": "1", "stdout": "1"}], "solution": "print(input())"},
    {"question": "is 2 not odd", "tests": ["assert not f(2) and len('a') == 1"]},
    {"question": "swallows", "tests": "try:\n    assert f(1) == 1\nexcept ValueError:\n    pass\nassert f"},
    {"question": "never reached", "tests": ["assert f(1) == 1"],
     "solution": "def f(n):\n    if n < 5:\n        return n\n    return n + 1"},
    {"question": "expects nothing", "tests": [{"call": "f", "args": [1], "expected": None}]},
    {"question": "prints nothing", "tests": [{"stdin": "1", "stdout": "\n"}]},
]  # fmt: skip


def test_rows_whose_tests_accept_a_wrong_program_are_named_by_file_and_line(tmp_path):
    (tmp_path / "code.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    settings = {"type": "code", "path": str(tmp_path / "code.jsonl"), "validation": 0.5}
    usual = {"generation": {"thinking": 8, "answer": 20}, "warm_start": {"steps": 0}}
    subject = Subject(tiny_recipe(model=CHARACTERS, tasks=[settings], **usual))
    said = []
    (finding,) = check_tests(subject, said.append)
    assert said == ["checking the tests of 5 problems of code"]
    assert finding.level == "warning"
    assert finding.found == "the tests of 3 of 5 problems reject wrong programs; 2 problems cannot be judged"
    assert [(fault.where, fault.what) for fault in finding.faults] == [
        ("code.jsonl:3", "the tests accept a program that returns None"),
        ("code.jsonl:5", "the tests accept the solution with its last return negated"),
    ]
    task = subject.tasks[0].task
    left_out = {row.where: row.detail for row in task.left_out}  # pyright: ignore[reportAttributeAccessIssue, reportOptionalMemberAccess]
    assert left_out == {
        "code.jsonl:6": "every call expects nothing, so a program that does nothing would be right",
        "code.jsonl:7": "every input expects nothing, so a program that does nothing would be right",
    }


def test_wrong_programs_are_written_for_what_is_called():
    tests = [CallTest(call="Solution.f", args=(1,), expected=2)]
    wrong = wrong_programs(tests, "class Solution:\n    def f(self, n):\n        return n + 1")
    assert wrong["a program that returns None"].startswith("class Solution:\n    def f(self, *_, **__):")
    assert "return not n + 1" in wrong["the solution with its last return negated"]
    assert list(wrong_programs([StdioTest(stdin="1", stdout="2")], "print(2)")) == ["an empty program"]
