"""Problems whose answer is a Python program, judged by their tests in the sandbox."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from scalerl.recipe import Code
from scalerl.recipe.template import shows
from scalerl.rollout import Judgement
from scalerl.sandbox import Sandbox
from scalerl.tasks.asked import asked
from scalerl.tasks.code_test_forms import of_graders, unpacked_tests, written_tests
from scalerl.tasks.file_task import file_task
from scalerl.tasks.files import TaskRow
from scalerl.tasks.forms import CODE_COLUMNS
from scalerl.tasks.function_head import FunctionHead, head_in, whole_program
from scalerl.tasks.live_code_bench import DEEP, question_of, tests_of, with_starter_code
from scalerl.tasks.paired_tests import joined_columns
from scalerl.tasks.program_text import WrittenProgram, program_in, python_tree
from scalerl.tasks.proof import Tests, names_called, refuse_what_proves_nothing
from scalerl.tasks.python_test_code import PythonSource
from scalerl.tasks.text_task import Problem, TextTask, UnusableError
from scalerl.tokens import Tokenizer
from scalerl.verifiers.programs.code_tests import StdioTest, judge_code
from scalerl.verifiers.programs.python_tests import PythonTest, judge_python

_FUNCTION = re.compile(r"^[ \t]*(?:async )?def \w+\(.*:[ \t]*$", re.MULTILINE)
MORE_THAN_TESTS = ("generated_checker", "interaction_format", "input_file")
"""Columns of Codeforces and CodeContests with a value if several outputs are right, or are not standard output."""


@dataclass(frozen=True, kw_only=True)
class JudgedBy:
    """Everything needed to judge the programs for one problem."""

    tests: Tests
    head: FunctionHead | None = None
    """Start of the function that an answer may complete; None if the row has none."""
    before: str = ""
    """Text before the program if the tests are calls or inputs; Python tests have their own."""
    gives_names: bool = False
    """True if such a program may use the names of `scalerl.verifiers.programs.given_names` without importing them."""


def code_task(settings: Code, tokenizer: Tokenizer) -> TextTask:
    """Task of a file of programming problems; raises SandboxUnavailable if programs cannot be isolated."""
    sandbox = usable_sandbox()

    def judge(text: str, gold: JudgedBy) -> Judgement:
        tests = gold.tests
        found = program_in(text, reads_input=not isinstance(tests, PythonTest) and isinstance(tests[0], StdioTest))
        if gold.head and (whole := whole_program(text, found.text, gold.head)):
            found = WrittenProgram(text=whole)
        if not found.text:
            return Judgement("unparsable")
        if isinstance(tests, PythonTest):
            outcome = judge_python(found.text, tests, sandbox=sandbox, limits=settings.limits)
        else:
            more = {"before": gold.before, "gives_names": gold.gives_names}
            outcome = judge_code(found.text, tests, sandbox=sandbox, limits=settings.limits, **more)
        return Judgement(outcome, found.dropped)

    num_judges = min(8, os.cpu_count() or 1)
    return file_task(
        settings, tokenizer, read=lambda row: code_problem(row, settings), judge=judge, num_judges=num_judges
    )


@cache
def usable_sandbox() -> Sandbox:
    """The sandbox of all tasks of this process; it is shared because finding one that works takes a program start or
    two."""
    return Sandbox()


def code_problem(row: TaskRow, settings: Code) -> Problem:
    """Problem in one row.

    UnusableError if the row has no tests, or needs more than equal output to be judged; ValueError for a column that
    contradicts another or the form.
    """
    columns = CODE_COLUMNS[settings.form]
    question = row.text("question", settings.question, columns.question)
    program = row.optional_text("solution", settings.solution, columns.solution)
    starter_code = _text(row, "starter_code") or ""
    if settings.form == "livecodebench":
        gold = JudgedBy(tests=tests_of(row), head=head_in(starter_code), before=DEEP, gives_names=True)
        return _problem(question, question_of(question, starter_code), gold, program, row, settings)
    if needed := [name for name in MORE_THAN_TESTS if _text(row, name)]:
        raise UnusableError(f"{row.where}: {needed[0]} has a value, but programs are judged only by equal output")
    names = ("entry_point", "fn_name", "func_name", "metadata.func_name")
    entry_point = next((text for name in names if (text := _text(row, name))), None)
    head = head_in(question)
    head = head if head and entry_point in (head.function, head.owner) else None
    if program is not None and "```" in program:
        program = program_in(program).text
    elif program is not None and head and python_tree(program) is None:
        program = f"{head.text}{program}"  # only the function's body
    has_start = bool(starter_code.strip() or head or _FUNCTION.search(question))
    source = PythonSource(
        entry_point=entry_point,
        before=_before(row, question, head, starter_code),
        setup="\n".join([*_lines(row, "test_imports"), _text(row, "test_setup_code") or ""]),
        solution=program,
        starter_code=starter_code,
        gives_names=has_start,
        runs_as_written=settings.form is not None,
    )
    written = joined_columns(row.values) if settings.tests is None and settings.form is None else None
    if settings.tests is None and all(row.values.get(name) for name in ("test_list", "test")):
        raise ValueError(f"{row.where}: tests are in test_list and in test; name one column by `tests: COLUMN`")
    if written is None and not _text_or_values(row, settings, columns.tests):
        raise UnusableError(f"{row.where}: no tests, so every program would be right")
    written = unpacked_tests(written or row.value("tests", settings.tests, columns.tests), row.where)
    tests = written_tests(written, row.where, source)
    if settings.form is not None and not isinstance(tests, PythonTest):
        raise ValueError(f"{row.where}: the tests of {settings.form} are Python text; omit `form` for others")
    is_of_leetcode = any(name.startswith("Solution.") for name in names_called(tests))  # written without imports
    gold = JudgedBy(
        tests=tests,
        head=head or head_in(starter_code),
        before=DEEP if is_of_leetcode else source.before if head else "",
        gives_names=has_start or is_of_leetcode or of_graders(written),
    )
    return _problem(question, with_starter_code(question, starter_code), gold, program, row, settings)


def _problem(question: str, shown: str, gold: JudgedBy, program: str | None, row: TaskRow, settings: Code) -> Problem:
    tests = gold.tests
    refuse_what_proves_nothing(tests, row.where)
    parts, columns = {"question": shown}, CODE_COLUMNS[settings.form]
    if isinstance(tests, PythonTest):
        parts["tests"] = tests.code.strip()
    elif shows(settings.template, "tests"):
        raise ValueError(f"{row.where}: template shows {{tests}}, but these tests are not Python text")
    answers = {*([settings.tests] if settings.tests else columns.tests), settings.solution, *columns.solution}
    return Problem(
        question=question,
        asked=asked(row, settings.template, parts, answers),
        answer=gold,
        thought=None if program is None else "",
        response="" if program is None else f"```python\n{program.strip()}\n```",
    )


def _before(row: TaskRow, question: str, head: FunctionHead | None, starter_code: str) -> str:
    """Imports and functions published with the problem, for both tests and program.

    LeetCodeDataset has them in the column prompt, whose question is another column.
    """
    given = _text(row, "prompt") or ""
    if head:
        return f"{head.text}{head.indent}pass\n"
    if starter_code and given != question and python_tree(given):
        return given
    if "class Solution" in starter_code:
        return DEEP
    lines = [*_lines(row, "test_imports"), *(_text(row, "test_setup_code") or "").splitlines()]
    return "\n".join(line for line in lines if re.match(r"(import|from) ", line))


def _text_or_values(row: TaskRow, settings: Code, defaults: Sequence[str]) -> bool:
    """True unless the row's column of tests is empty; APPS has problems without tests."""
    name = settings.tests or next((name for name in defaults if name in row.values), None)
    return name is None or name not in row.values or row.values[name] not in ("", "{}", "[]", "null", [], {}, None)


def _text(row: TaskRow, column: str) -> str | None:
    value = row.at(column)
    return value if isinstance(value, str) else None


def _lines(row: TaskRow, column: str) -> list[str]:
    value = row.values.get(column)
    return [str(line) for line in value] if isinstance(value, list) else []
