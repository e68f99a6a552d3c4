r"""Published data sets by name: the names of their columns, and the way they write the right answer.

    gsm8k       question, answer ("... <<48/2=24>>24 ... #### 72")               github.com/openai/grade-school-math
    math        problem, solution ("... \boxed{24}"), level, type                github.com/hendrycks/math
    math500     problem, answer, solution, subject, level, unique_id             HuggingFaceH4/MATH-500 on Hugging Face
    aime        problem, Problem or question; answer or Answer, 0 to 999, also   HuggingFaceH4/aime_2024, MathArena's,
                as 073; perhaps solution or Solution                             Maxwell-Jia/AIME_2024, on Hugging Face
    humaneval   prompt, test ("def check(candidate): ..."), entry_point,         github.com/openai/human-eval
                canonical_solution, which follows the prompt
    mbpp        text or prompt, code, test_list, test_setup_code and             github.com/google-research/
                test_imports                                                     google-research/tree/master/mbpp
    livecodebench  see `live_code_bench`                                         livecodebench on Hugging Face

A setting overrides the part of a form with its name. Without a form each column may have several names.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from scalerl.recipe.tasks import CodeForm, MathForm
from scalerl.verifiers.mathematics.answer import gold_answer, last_boxed

CALCULATION = re.compile(r"<<[^<>\n]*>>")
"""GSM8K's calculator notes, as in "48/2 = <<48/2=24>>24"."""
_INTEGER = re.compile(r"\$?0*(\d{1,3})(?:\^\{?\\circ\}?)?\$?")


@dataclass(frozen=True, kw_only=True)
class MathColumns:
    """Columns of a row of mathematics; each is the first of several names that the row has."""

    question: tuple[str, ...]
    answer: tuple[str, ...]
    solution: tuple[str, ...] = ("solution",)
    gold: Callable[[str], str] = gold_answer
    """Function from the column's text to the right answer; raises ValueError that says what is missing."""


def after_the_mark(text: str) -> str:
    """GSM8K: the number after the last "####". ValueError if there is none."""
    if "####" not in text:
        raise ValueError(f"an answer of gsm8k must end in '#### NUMBER', found {text[-60:]!r}")
    return gold_answer("####" + text.rpartition("####")[2])


def in_the_box(text: str) -> str:
    r"""MATH: the last \boxed{} of the solution. ValueError if there is none."""
    if last_boxed(text) is None:
        raise ValueError(f"a solution of math must have its answer in \\boxed{{}}, found {text[-60:]!r}")
    return gold_answer(text)


def whole_number(text: str) -> str:
    """AIME: an integer from 0 to 999 without its leading zeros. ValueError for any other text."""
    match = _INTEGER.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"an answer of aime must be an integer from 0 to 999, found {text[:60]!r}")
    return match[1]


MATH_COLUMNS: dict[MathForm | None, MathColumns] = {
    None: MathColumns(question=("question", "problem", "prompt"), answer=("answer", "solution")),
    "gsm8k": MathColumns(question=("question",), answer=("answer",), solution=(), gold=after_the_mark),
    "math": MathColumns(question=("problem",), answer=("solution",), gold=in_the_box),
    "math500": MathColumns(question=("problem",), answer=("answer",)),
    "aime": MathColumns(
        question=("problem", "Problem", "question"),
        answer=("answer", "Answer"),
        solution=("solution", "Solution"),
        gold=whole_number,
    ),
}


@dataclass(frozen=True, kw_only=True)
class CodeColumns:
    """Columns of a row of a programming problem; each is the first of several names that the row has."""

    question: tuple[str, ...]
    tests: tuple[str, ...] = ()
    solution: tuple[str, ...] = ()


CODE_COLUMNS: dict[CodeForm | None, CodeColumns] = {
    None: CodeColumns(
        question=("question", "problem", "problem_description", "prompt", "text", "description"),
        tests=("tests", "test_list", "test", "input_output", "public_tests"),
        solution=("solution", "code", "canonical_solution"),
    ),
    "humaneval": CodeColumns(question=("prompt",), tests=("test",), solution=("canonical_solution",)),
    "mbpp": CodeColumns(question=("text", "prompt"), tests=("test_list",), solution=("code",)),
    "livecodebench": CodeColumns(question=("question_content",)),
}
