"""The rules of the judges, as docs/judges.md has them: each makes its first answer right and its second one wrong."""

import re

import pytest
from places import REPOSITORY
from trainer.verifiers.outcomes import verify_choice, verify_math, verify_qa

from scalerl.sandbox import Limits
from scalerl.tasks.code_test_forms import written_tests
from scalerl.tasks.coding import usable_sandbox
from scalerl.tasks.python_test_code import PythonSource
from scalerl.verifiers.programs.code_tests import judge_code
from scalerl.verifiers.programs.python_tests import PythonTest, judge_python


def verify_program(program, assertion):
    tests = written_tests(assertion, "docs/judges.md", PythonSource(entry_point="f"))
    if isinstance(tests, PythonTest):
        return judge_python(program, tests, sandbox=usable_sandbox(), limits=Limits())
    return judge_code(program, tests, sandbox=usable_sandbox(), limits=Limits())


JUDGES = {
    "Mathematics": lambda answer, gold: verify_math(answer, gold, time_limit_s=5.0),
    "Multiple choice": lambda answer, gold: verify_choice(
        answer, gold, num_choices=4, texts=("copper", "iron", "zinc", "lead")
    ),
    "Questions": lambda answer, gold: verify_qa(answer, [gold]),
    "Programs": verify_program,
}
_RULE = re.compile(r"^\| (?P<name>[^|]+?) \| .+ \| `(.+?)` `(.+?)` \| `(.+?)` `(.+?)` \| [^|]*\|$", re.MULTILINE)
_SECTION = re.compile(r"^## (.+)$(?P<rows>(?:\n(?!## ).*)*)", re.MULTILINE)
PAGE = (REPOSITORY / "docs" / "judges.md").read_text(encoding="utf-8")
ROWS = {found[1]: found["rows"] for found in _SECTION.finditer(PAGE) if found[1] in JUDGES}
RULES = [(judge, *found.groups()) for judge, rows in ROWS.items() for found in _RULE.finditer(rows)]


@pytest.mark.parametrize(("judge", "rule", "gold", "right", "other", "wrong"), RULES)
def test_each_rule_makes_one_answer_right_and_one_wrong(judge, rule, gold, right, other, wrong):
    assert JUDGES[judge](right.replace("⏎", "\n"), gold) == "right", rule
    assert JUDGES[judge](wrong.replace("⏎", "\n"), other) != "right", rule


def test_every_row_of_the_tables_is_a_rule_with_its_examples():
    num_rows = {judge: sum(line.startswith("| ") for line in rows.split("\n")) - 1 for judge, rows in ROWS.items()}
    assert num_rows == {judge: sum(one[0] == judge for one in RULES) for judge in JUDGES}
