"""Problems whose answer is a Python program, judged by their tests in the sandbox."""

import os
import re
from collections.abc import Sequence

from scalerl.recipe import Code
from scalerl.rollout import Outcome
from scalerl.sandbox import Sandbox
from scalerl.tasks.code_test_forms import written_tests
from scalerl.tasks.file_task import FileTask, Problem
from scalerl.tasks.files import TaskRow
from scalerl.tokens import Tokenizer
from scalerl.verifiers.code_tests import CodeTest, judge_code

_BLOCK = re.compile(r"```(?:python|py)?[ \t]*\n(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)


def code_task(settings: Code, tokenizer: Tokenizer) -> FileTask:
    """The task in a file of programming problems; SandboxUnavailable where programs cannot be isolated."""
    sandbox = Sandbox()

    def judge(text: str, tests: Sequence[CodeTest]) -> Outcome:
        program = program_in(text)
        return judge_code(program, tests, sandbox=sandbox, limits=settings.limits) if program else "unparsable"

    num_judges = max(1, min(8, os.cpu_count() or 1))
    return FileTask(settings, tokenizer, read=lambda row: problem(row, settings), judge=judge, num_judges=num_judges)


def program_in(text: str) -> str:
    """The last fenced block of an answer, closed or not; the whole answer if it has no block."""
    blocks = _BLOCK.findall(text)
    return (blocks[-1] if blocks else text).strip()


def problem(row: TaskRow, settings: Code) -> Problem:
    """One row of the file."""
    question = row.text("question", settings.question, ("question", "problem", "prompt", "text"))
    written = row.value("tests", settings.tests, ("tests", "test_list", "test", "input_output"))
    entry_point = row.values.get("entry_point")
    tests = written_tests(written, row.where, entry_point=entry_point if isinstance(entry_point, str) else None)
    program = row.optional_text("solution", settings.solution, ("solution", "code", "canonical_solution"))
    return Problem(
        question=question,
        text=settings.template.replace("{question}", question),
        answer=tests,
        thought=None if program is None else "",
        response="" if program is None else f"```python\n{program.strip()}\n```",
    )
