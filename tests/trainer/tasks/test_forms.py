"""Files as data sets are published: rows of our own text in the columns and types of each."""

import base64
import json
import pickle
import textwrap
import zlib

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError

from scalerl.recipe import Code, Math
from scalerl.recipe.tasks import AnyTask
from scalerl.tasks import TaskError, make_task
from scalerl.tokens import CharacterTokenizer

TOKENIZER = CharacterTokenizer()
EOS = TOKENIZER.eos_ids[0]

GSM8K = {
    "question": "Ada has 1,200 stamps and buys 48/2 more. How many has she?",
    "answer": "She buys 48/2 = <<48/2=24>>24 stamps.\nSo she has 1,200 + 24 = <<1200+24=1224>>1,224.\n#### 1,224",
}
MATH = {
    "problem": "Compute $1-\\frac{1}{2}$.",
    "level": "Level 1",
    "type": "Prealgebra",
    "solution": "We have $\\boxed{1} - \\frac12$ first, and finally $\\boxed{\\frac{1}{2}}$.",
}
MATH_500 = {
    "problem": "Write $(0,3)$ in polar coordinates.",
    "solution": "The angle is a right one, so it is $\\boxed{\\left( 3, \\frac{\\pi}{2} \\right)}.$",
    "answer": "\\left( 3, \\frac{\\pi}{2} \\right)",
    "subject": "Precalculus",
    "level": 2,
    "unique_id": "test/precalculus/0.json",
}
AIME_H4 = {
    "id": 60,
    "problem": "Find the least number.",
    "solution": "It is \\boxed{073}.",
    "answer": "073",
    "url": "https://example.org",
    "year": "2024",
}
AIME_CAPITALS = {"ID": "2024-I-1", "Problem": "Find it.", "Solution": "It is 204.", "Answer": 204}
AIME_2025 = {"problem_idx": 1, "problem": "Find the sum.", "answer": 70, "problem_type": ["Number Theory"]}
AIME_QUESTION = {"question": "Find the angle.", "answer": "336^\\circ"}
HUMANEVAL = {
    "task_id": "HumanEval/0",
    "prompt": "from typing import List\n\n\ndef turned(text: str) -> str:\n    return text[::-1]\n\n\n"
    'def halves(xs: List[float]) -> List[float]:\n    """ Half of each.\n    >>> halves([1.0])\n    [0.5]\n    """\n',
    "entry_point": "halves",
    "canonical_solution": "    return [x / 2 for x in xs]\n",
    "test": "\n\nMETADATA = {\n    'author': 'us'\n}\n\n\ndef check(candidate):\n"
    "    assert True, 'the tests begin'\n    assert turned('ab') == 'ba'\n"
    "    for n in range(3):\n        assert abs(candidate([n])[0] - n / 2) < 1e-6\n    assert candidate([]) == []\n",
}
MBPP = {
    "text": "Write a function to count the nodes of a tree.",
    "code": "class Node:\r\n  def __init__(self, x):\r\n    self.x, self.left = x, None\r\n"
    "def count(node):\r\n  return 0 if node is None else 1 + count(node.left)",
    "task_id": 927,
    "test_setup_code": "root = Node(1) \r\nroot.left = Node(2)",
    "test_list": ["assert (count(root)) == 2", "assert count(None) == 0 ", "assert count(Node((1, 2)))==1"],
    "challenge_test_list": [],
}
MBPP_SANITIZED = {
    "source_file": "ours.ipynb",
    "task_id": 2,
    "prompt": "Write a function to find the shared elements of two lists.",
    "code": "def shared(a, b):\n  return tuple(set(a) & set(b))",
    "test_imports": ["import math"],
    "test_list": ["assert set(shared((1, 2), (2, 3))) == set((2,))", "assert math.isclose(sum(shared([1], [1])), 1)"],
}


def compressed(tests):
    """As LiveCodeBench publishes its private tests."""
    return base64.b64encode(zlib.compress(pickle.dumps(json.dumps(tests)))).decode()


LIVE_CODE_BENCH = {
    "question_title": "A. Half",
    "question_content": "Print half of a number.",
    "platform": "codeforces",
    "question_id": "1_A",
    "contest_id": "1",
    "contest_date": "2024-01-01T00:00:00",
    "starter_code": "",
    "difficulty": "easy",
    "public_test_cases": json.dumps([{"input": "4\n", "output": "2.0\n", "testtype": "stdin"}]),
    "private_test_cases": compressed([{"input": "3\n", "output": "1.50\n", "testtype": "stdin"}]),
    "metadata": "{}",
}
LIVE_CODE_BENCH_CALLS = LIVE_CODE_BENCH | {
    "starter_code": "class Solution:\n    def halves(self, xs: List[int], n: int) -> List[float]:\n        ",
    "public_test_cases": json.dumps([{"input": "[4, 6]\n1", "output": "[2.0, 3.0]", "testtype": "functional"}]),
    "private_test_cases": json.dumps([{"input": "[]\n0", "output": "[]", "testtype": "functional"}]),
    "metadata": json.dumps({"func_name": "halves"}),
}
HALVES_CALL = "class Solution:\n    def halves(self, xs: List[int], n: int):\n        return [x / 2 for x in xs]"
SHARED = "def shared(a, b): return [x for x in a if x in b]"


COLUMNS = ("question", "problem", "Problem", "prompt", "text", "question_content")


def rows_of(row, count=40):
    """Many problems of one shape, so that both sides of the split have some."""
    column = next(name for name in COLUMNS if name in row)
    return [row | {column: f"{row[column]}# {number}\n"} for number in range(count)]


def in_json_lines(folder, rows):
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"path": str(path)}


def make(settings):
    return make_task(TypeAdapter(AnyTask).validate_python(settings), TOKENIZER)


def said(task, prompt, text):
    return task.judge(prompt, [*TOKENIZER.encode(text), EOS]).outcome


@pytest.mark.parametrize(
    ("form", "row", "right", "wrong"),
    [
        ("gsm8k", GSM8K, "\\boxed{1224}", "\\boxed{24}"),
        ("math", MATH, "$0.5$", "\\boxed{1}"),
        ("math500", MATH_500, "\\boxed{(3, \\pi/2)}", "\\boxed{(3, \\pi)}"),
        ("aime", AIME_H4, "\\boxed{73}", "\\boxed{730}"),
        ("aime", AIME_CAPITALS, "\\boxed{204}", "\\boxed{24}"),
        ("aime", AIME_2025, "\\boxed{70}", "\\boxed{7}"),
        ("aime", AIME_QUESTION, "\\boxed{336}", "\\boxed{24}"),
    ],
)
def test_mathematics_is_read_as_it_was_published(tmp_path, form, row, right, wrong):
    task = make({"type": "math", "form": form, **in_json_lines(tmp_path, rows_of(row))})
    assert len(task.train) + len(task.validation) == 40
    prompt = task.validation[0]
    assert said(task, prompt, f"so</think>{right}") == "right"
    assert said(task, prompt, f"so</think>{wrong}") == "wrong"


def test_a_demonstration_of_gsm8k_has_no_notes_of_the_calculator(tmp_path):
    task = make({"type": "math", "form": "gsm8k", **in_json_lines(tmp_path, rows_of(GSM8K))})
    prompt, response = task.demonstrate(np.random.default_rng(0), 0.0)
    assert TOKENIZER.decode(response) == (
        "She buys 48/2 = 24 stamps.\nSo she has 1,200 + 24 = 1,224.</think>\\boxed{1,224}"
    )
    assert task.judge(prompt, list(response)).outcome == "right"


@pytest.mark.parametrize(
    ("form", "row", "message"),
    [
        ("gsm8k", GSM8K | {"answer": "It is 12."}, r"rows\.jsonl:1: an answer of gsm8k must end in '#### NUMBER'"),
        (
            "math",
            MATH | {"solution": "It is 12."},
            r"rows\.jsonl:1: a solution of math must have its answer in \\boxed",
        ),
        ("math500", MATH, r"rows\.jsonl:1: no answer in column one of answer"),
        ("aime", AIME_2025 | {"answer": 1000}, r"rows\.jsonl:1: an answer of aime must be an integer from 0 to 999"),
        ("aime", AIME_2025 | {"answer": "7.5"}, r"rows\.jsonl:1: an answer of aime must be an integer from 0 to 999"),
        ("gsm8k", MATH, r"rows\.jsonl:1: no question in column one of question"),
    ],
)
def test_a_row_of_another_shape_is_refused_with_its_line(tmp_path, form, row, message):
    with pytest.raises(TaskError, match=message):
        make({"type": "math", "form": form, **in_json_lines(tmp_path, [row, row])})


def test_a_setting_beside_the_form_replaces_its_part(tmp_path):
    rows = [{"problem": row["question"], "final": row["answer"]} for row in rows_of(GSM8K)]
    settings = {"type": "math", "form": "gsm8k", "question": "problem", "answer": "final", "template": "Q: {question}"}
    task = make(settings | in_json_lines(tmp_path, rows))
    assert task.train[0].answer == "1,224"
    assert TOKENIZER.decode(task.train[0].tokens).startswith("Q: Ada has")


def test_a_form_of_another_kind_of_task_is_refused(tmp_path):
    with pytest.raises(ValidationError, match="Input should be 'gsm8k', 'math', 'math500' or 'aime'"):
        Math.model_validate({"form": "humaneval", **in_json_lines(tmp_path, [GSM8K])})


def test_a_form_is_part_of_the_identity_and_its_absence_is_not(tmp_path):
    settings = in_json_lines(tmp_path, rows_of(GSM8K))
    without, with_form = Math(path=settings["path"]), Math(form="gsm8k", path=settings["path"])
    assert {"form", "reads_prose"}.isdisjoint(without.model_dump(mode="json"))
    marked = Math(path=settings["path"], reads_prose=False)
    assert marked.model_dump(mode="json")["reads_prose"] is False  # what counts as an answer is part of a run's id
    assert with_form.model_dump(mode="json")["form"] == "gsm8k"
    assert Math.model_validate(with_form.model_dump(mode="json")) == with_form


@pytest.mark.parametrize(
    ("form", "row", "right", "wrong"),
    [
        (
            "humaneval",
            HUMANEVAL,
            "def halves(xs): return [x * 0.5 for x in xs]",
            "def halves(xs): return [x // 2 for x in xs]",
        ),
        ("mbpp", MBPP, MBPP["code"], MBPP["code"].replace("1 + count", "2 + count")),
        ("mbpp", MBPP_SANITIZED, SHARED, "def shared(a, b): return a + b"),
        ("livecodebench", LIVE_CODE_BENCH, "print(int(input()) / 2)", "print(int(input()) // 2)"),
        ("livecodebench", LIVE_CODE_BENCH_CALLS, HALVES_CALL, HALVES_CALL.replace("x / 2", "x")),
    ],
)
def test_programs_are_read_and_judged_as_they_were_published(tmp_path, form, row, right, wrong):
    task = make({"type": "code", "form": form, **in_json_lines(tmp_path, rows_of(row))})
    assert len(task.train) + len(task.validation) == 40
    prompt = task.validation[0]
    assert said(task, prompt, f"so</think>```python\n{right}\n```") == "right"
    assert said(task, prompt, f"so</think>```python\n{wrong}\n```") == "wrong"


BODY = "    if not xs:\n        return []\n    return [x / 2 for x in xs]\n"
COMMENTED = {
    "prompt": "def add(a, b):\r\n  # the sum",
    "entry_point": "add",
    "canonical_solution": "  return a + b\r\n",
}
COMMENTED["test"] = "def check(candidate):\n    assert candidate(1, 2) == 3\n"


@pytest.mark.parametrize(
    "answer",
    [
        BODY,
        f"```python\n{BODY}```",
        textwrap.dedent(BODY),
        BODY.strip(),
        f"So:\n\n```python\n{BODY.strip()}\n```\nThis is linear.",
        f"```\n{textwrap.dedent(BODY)}```\nFor example:\n```\nhalves([2])\n```",
        BODY.replace("    ", "\t").replace("\n", "\r\n"),
        f'    """Halves."""\n{BODY}\n\ndef other():\n    pass\n',
        "```python\ndef half(x):\n    return x / 2\n\nreturn [half(x) for x in xs]\n```",
        "def halves(xs: List[float]):\n    return [x / 2 for x in xs]",  # without its imports
    ],
)
@pytest.mark.parametrize("form", ["humaneval", None])
def test_the_body_of_a_function_is_an_answer_if_the_row_has_its_head(tmp_path, form, answer):
    task = make({"type": "code", "form": form, **in_json_lines(tmp_path, rows_of(HUMANEVAL))})
    prompt = task.validation[0]
    assert said(task, prompt, f"so</think>{answer}") == "right"
    assert said(task, prompt, f"so</think>{answer.replace('/ 2', '/ 3')}") == "wrong"
    assert said(task, prompt, "so</think>It returns half of each.") == "wrong"


@pytest.mark.parametrize(
    ("form", "row"),
    [
        ("humaneval", HUMANEVAL),
        (None, HUMANEVAL),
        ("humaneval", COMMENTED),
        ("mbpp", MBPP),
        ("mbpp", MBPP_SANITIZED),
        ("mbpp", MBPP_SANITIZED | {"code": f"Use sets.\n```python\n{SHARED}\n```\nDone."}),
    ],
)
def test_a_demonstration_is_the_whole_program_and_passes_its_own_tests(tmp_path, form, row):
    task = make({"type": "code", "form": form, **in_json_lines(tmp_path, rows_of(row))})
    prompt, response = task.demonstrate(np.random.default_rng(0), 0.0)
    assert task.judge(prompt, list(response)).outcome == "right"


def test_two_columns_of_tests_need_a_name(tmp_path):
    settings = {
        "type": "code",
        **in_json_lines(tmp_path, rows_of(MBPP_SANITIZED | {"test": "assert shared([], []) == ()"})),
    }
    for form in ("mbpp", None):
        with pytest.raises(TaskError, match=r"tests are in test_list and in test; name one column by `tests: COLUMN`"):
            make(settings | {"form": form})
    shown = make(settings | {"tests": "test", "template": "{question}\n{test_list}"})
    assert MBPP_SANITIZED["test_list"][0] in TOKENIZER.decode(shown.train[0].tokens)


def test_the_prompt_of_mbpp_shows_its_tests_which_alone_name_the_function(tmp_path):
    settings = {"type": "code", "form": "mbpp", **in_json_lines(tmp_path, rows_of(MBPP_SANITIZED))}
    assert MBPP_SANITIZED["test_list"][0] in TOKENIZER.decode(make(settings).train[0].tokens)
    with pytest.raises(ValidationError, match="only the tests of mbpp name the function to write"):
        make(settings | {"template": "{question}"})


def test_the_prompt_of_livecodebench_shows_the_code_to_begin_with(tmp_path):
    for row, shown in ((LIVE_CODE_BENCH, "Read from standard input"), (LIVE_CODE_BENCH_CALLS, "class Solution:")):
        task = make({"type": "code", "form": "livecodebench", **in_json_lines(tmp_path, rows_of(row))})
        assert shown in TOKENIZER.decode(task.train[0].tokens)


class Attack:
    def __reduce__(self):
        return (pytest.fail, ("a pickle was opened",))


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("private_test_cases", base64.b64encode(zlib.compress(pickle.dumps(Attack()))).decode(), "more than a string"),
        ("private_test_cases", base64.b64encode(zlib.compress(pickle.dumps("[]"))[:-6]).decode(), "truncated"),
        ("private_test_cases", "not base64!", "neither JSON nor in the published compressed form"),
        ("private_test_cases", json.dumps([{"input": "1", "output": 1, "testtype": "stdin"}]), "test 0 is"),
        ("metadata", "{", "metadata is not JSON"),
        ("public_test_cases", "5", "neither JSON nor"),
    ],
)
def test_tests_of_livecodebench_that_cannot_be_read_are_named_and_no_pickle_is_opened(tmp_path, column, value, message):
    with pytest.raises(TaskError, match=rf"rows\.jsonl:1: .*{message}"):
        make(
            {
                "type": "code",
                "form": "livecodebench",
                **in_json_lines(tmp_path, [LIVE_CODE_BENCH | {column: value}] * 2),
            }
        )


def test_a_functional_test_without_a_name_to_call_is_refused(tmp_path):
    settings = in_json_lines(tmp_path, [LIVE_CODE_BENCH_CALLS | {"metadata": "{}"}])
    with pytest.raises(TaskError, match="metadata has no func_name"):
        make({"type": "code", "form": "livecodebench", **settings})


def test_settings_that_a_form_leaves_without_effect_are_refused(tmp_path):
    settings = in_json_lines(tmp_path, [LIVE_CODE_BENCH])
    with pytest.raises(ValidationError, match="tests has no effect with form livecodebench"):
        make({"type": "code", "form": "livecodebench", "tests": "public_test_cases", **settings})


def test_a_form_keeps_its_template_when_the_recipe_is_read_again(tmp_path):
    settings = in_json_lines(tmp_path, [MBPP])
    mbpp = Code(form="mbpp", path=settings["path"])
    assert "{tests}" in mbpp.template
    assert Code.model_validate(mbpp.model_dump(mode="json")) == mbpp
