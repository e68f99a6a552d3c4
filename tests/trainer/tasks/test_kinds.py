"""What the columns of each kind of task file mean, and its verdicts on answers written by hand."""

import json
from collections import Counter
from functools import partial
from typing import Literal

import numpy as np
import pytest

from scalerl.recipe import Code, Math, MultipleChoice, Qa
from scalerl.tasks import make_task
from scalerl.tokens import CharacterTokenizer

TOKENIZER = CharacterTokenizer()
EOS = TOKENIZER.eos_ids[0]


def one_of(tmp_path, settings, row, **more):
    """The task of one problem, held out beside another, and its prompt."""
    asked = [row | {"question": f"{prefix}{row['question']}"} for prefix in ("", "other ", "third ")]
    (tmp_path / "train.jsonl").write_text(json.dumps(asked[1]) + "\n")
    (tmp_path / "held.jsonl").write_text("".join(json.dumps(one) + "\n" for one in (asked[0], asked[2])))
    paths = {"path": str(tmp_path / "train.jsonl"), "validation_path": str(tmp_path / "held.jsonl")}
    task = make_task(settings(**paths, **more), TOKENIZER)
    prompt, _ = task.validation
    return task, prompt


def said(task, prompt, text):
    return task.judge(prompt, [*TOKENIZER.encode(text), EOS]).outcome


GSM8K = {"question": "Two hats cost 6 each?", "answer": "6 * 2 = <<6*2=12>>12\nThey cost 12.\n#### 12"}


def test_an_answer_in_the_thinking_part_does_not_count(tmp_path):
    task, prompt = one_of(tmp_path, Math, GSM8K)
    assert said(task, prompt, "\\boxed{12}") == "unparsable"  # thinking never ended
    assert said(task, prompt, "\\boxed{12}</think>\\boxed{7}") == "wrong"


def test_a_comparison_that_takes_too_long_is_wrong(tmp_path):
    task, prompt = one_of(tmp_path, Math, GSM8K, time_limit_s=0.01)
    assert said(task, prompt, "</think>\\boxed{\\binom{99999999}{49999999}}") == "wrong"


ARC = {
    "question": "Which is a metal?",
    "choices": {"text": ["iron", "salt", "wood"], "label": ["1", "2", "3"]},
    "answerKey": "1",
}
HELLASWAG = {"ctx": "A man sits down. He", "endings": ["flies.", "eats.", "melts.", "rains."], "label": "1"}


@pytest.mark.parametrize(("row", "letter"), [(ARC, "A"), (HELLASWAG, "B"), (HELLASWAG | {"label": 3}, "D")])
def test_choices_are_lettered_and_the_gold_is_a_label_or_a_position(tmp_path, row, letter):
    path = tmp_path / "c.jsonl"
    path.write_text("".join(json.dumps(row | {"question": f"{i}"}) + "\n" for i in range(40)))
    task = make_task(MultipleChoice(path=str(path), count_from=0), TOKENIZER)
    prompt = task.train[0]
    texts = row["choices"]["text"] if "choices" in row else row["endings"]
    lines = "".join(f"{'ABCD'[i]}. {text}\n" for i, text in enumerate(texts))
    assert lines in TOKENIZER.decode(prompt.tokens)
    assert said(task, prompt, f"hm</think>The answer is ({letter}).") == "right"
    wrong = "C" if letter != "C" else "A"
    assert said(task, prompt, f"hm</think>{wrong}") == "wrong"
    assert said(task, prompt, "hm</think>Q") == "unparsable"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (ARC | {"answerKey": "4"}, r"answer is '4'; expected one of 1, 2, 3"),
        (ARC | {"choices": ["iron"]}, "expected 2 to 26 texts"),
        (ARC | {"choices": {"text": ["a", "b"], "label": ["A"]}}, "as many of both"),
        (HELLASWAG | {"label": "5"}, "answer is '5'; expected one of A, B, C, D"),
    ],
)
def test_choices_that_make_no_sense_are_refused_with_their_line(tmp_path, row, message):
    path = tmp_path / "c.jsonl"
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(ValueError, match=rf"c\.jsonl:1: .*{message}"):
        make_task(MultipleChoice(path=str(path), count_from=0), TOKENIZER)


def file_of_positions(path, labels):
    rows = [HELLASWAG | {"ctx": f"He sees {i}. He", "label": label} for i, label in enumerate(labels)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_positions_count_from_0_or_1_as_all_rows_together_show_and_a_run_says_so(tmp_path):
    for labels, expected, notes in (
        ([0, 1, 2, 3] * 10, "ABCD", ()),
        ([1, 2, 3, 4] * 10, "ABCD", ("positions of right choices count from 1, since no row has 0",)),
    ):
        task = make_task(MultipleChoice(path=file_of_positions(tmp_path / "c.jsonl", labels)), TOKENIZER)
        assert task.notes == notes
        places = {prompt.answer[0] for prompt in (*task.train, *task.validation)}
        assert places == set(expected)
        where = {task.written(prompt).where: prompt.answer[0] for prompt in (*task.train, *task.validation)}
        assert where["c.jsonl:1"] == "A"
        assert where["c.jsonl:4"] == "D"


def test_positions_that_leave_open_what_they_count_from_are_refused_and_a_setting_decides(tmp_path):
    path = file_of_positions(tmp_path / "c.jsonl", [1, 2, 3] * 10)
    with pytest.raises(ValueError, match=r"c\.jsonl:1 has 1\), so they may count from 0 or from 1; set `count_from`"):
        make_task(MultipleChoice(path=path), TOKENIZER)
    cases: list[tuple[Literal[0, 1], set[str]]] = [(0, {"B", "C", "D"}), (1, {"A", "B", "C"})]
    for first, letters in cases:
        task = make_task(MultipleChoice(path=path, count_from=first), TOKENIZER)
        assert {prompt.answer[0] for prompt in (*task.train, *task.validation)} == letters


OPS, SOLS = ["opa", "opb", "opc"], ["sol1", "sol2"]


def letters_of(tmp_path, rows, **settings):
    path = tmp_path / "c.jsonl"
    path.write_text("".join(json.dumps(row | {"question": f"{i}?"}) + "\n" for i, row in enumerate(rows * 12)))
    task = make_task(MultipleChoice(path=str(path), validation=0.5, **settings), TOKENIZER)
    places = {task.written(prompt).where: prompt.answer[0] for prompt in (*task.train, *task.validation)}
    return "".join(places[f"c.jsonl:{i + 1}"] for i in range(len(rows)))


@pytest.mark.parametrize(
    ("rows", "settings", "letters"),
    [
        ([{"options": {"A": "w", "B": "x", "C": None}, "answer": "B"}, {"options": [*"wx"], "answer": "A"}], {}, "BA"),
        ([{"choices": [{"text": "w", "label": "A"}, {"text": "x", "label": "B"}], "answer": "B"}], {}, "B"),
        ([{"choices": '["w", "x"]', "answer": "B"}, {"choices": [1, 2.50], "answer": "2.5"}], {}, "BB"),
        ([{"mc1": {"choices": ["w ", "x"]}, "answer": "w"}], {"choices": "mc1.choices"}, "A"),
        # Numbers that are texts of choices: positions if others are, texts if others are or one is no position.
        ([{"choices": [*"2103"], "answer": 2}, {"choices": [*"wxyz"], "answer": 0}], {}, "CA"),
        ([{"choices": [*"2103"], "answer": "2"}, {"choices": [*"wxyz"], "answer": "w"}], {}, "AA"),
        ([{"choices": ["2", "12"], "answer": "2"}, {"choices": ["12", "1"], "answer": "12"}], {}, "AA"),
        ([{"choices": [*"2103"], "answer": 2}], {"count_from": 1}, "B"),
        ([{"choices": [*"wxyz"], "answer": one} for one in ("b", "(C)", "d.")], {}, "BCD"),
        ([{"choices": [*"ab"], "answer": "b"}, {"choices": [*"ba"], "answer": "b"}], {}, "BA"),
        # WinoGrande, MedMCQA and PIQA: a column for each choice.
        ([{"option1": "w", "option2": "x", "answer": one} for one in "12"], {"choices": ["option1", "option2"]}, "AB"),
        ([{"opa": "w", "opb": 3, "opc": None, "cop": one} for one in (0, 1)], {"answer": "cop", "choices": OPS}, "AB"),
        ([{"sol1": "w", "sol2": "x", "label": 1}, {"sol1": "w", "sol2": "x", "label": 0}], {"choices": SOLS}, "BA"),
    ],
)  # fmt: skip
def test_choices_are_read_in_every_published_form(tmp_path, rows, settings, letters):
    assert letters_of(tmp_path, rows, **settings) == letters


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            [{"choices": [*"2103"], "answer": "2"}],
            r"may be the position of another \(c\.jsonl:1 has 2\); set `count_from`",
        ),
        ([{"choices": ["w", " "], "answer": "A"}], "expected 2 to 26 texts"),
        ([{"option1": "w", "option2": "x", "answer": "1"}], r"columns of their own by `choices: \[COLUMN, COLUMN\]`"),
        ([{"choices": [*"wx"], "answer": "a."}, {"choices": [*"wx"], "answer": "c"}], "answer is 'c'; expected one of"),
    ],
)
def test_choices_that_leave_open_what_is_meant_are_refused(tmp_path, rows, message):
    with pytest.raises(ValueError, match=message):
        letters_of(tmp_path, rows)


GPQA = ("Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")


def test_choices_are_shuffled_by_their_texts_if_a_column_holds_the_right_one(tmp_path):
    path = tmp_path / "gpqa.jsonl"
    rows = [{"Question": f"{i}?"} | {name: f"{name[:1]}{i + n}" for n, name in enumerate(GPQA)} for i in range(200)]
    rows[0]["Correct Answer"] = "D"  # also a letter
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    choice = partial(MultipleChoice, path=str(path), question="Question", answer="Correct Answer")
    task = make_task(choice(choices=GPQA), TOKENIZER)
    found = {task.written(prompt).where: prompt.answer for prompt in (*task.train, *task.validation)}
    for i, row in enumerate(rows):
        letter, texts = found[f"gpqa.jsonl:{i + 1}"]
        assert texts["ABCD".index(letter)] == row["Correct Answer"]
        assert sorted(texts) == sorted(row[name] for name in GPQA)
    counts = Counter(letter for letter, _ in found.values())
    assert min(counts[letter] for letter in "ABCD") > 30, "200 places of four, each about 50"
    again = make_task(choice(choices=GPQA[::-1]), TOKENIZER)
    assert {again.written(prompt).where: prompt.answer for prompt in (*again.train, *again.validation)} == found
    with pytest.raises(ValueError, match="count_from has no effect if the column 'Correct Answer' holds the right"):
        choice(choices=GPQA, count_from=0)
    for wrong in (GPQA[:1], (GPQA[0], GPQA[0]), tuple(map(str, range(27)))):
        with pytest.raises(ValueError, match=rf"found {len(wrong)} columns?; must be 2 to 26 different ones"):
            choice(choices=wrong)
    with pytest.raises(ValueError, match=r"gpqa\.jsonl:1: no choices in column 'Incorrect'"):
        make_task(choice(choices=("Correct Answer", "Incorrect")), TOKENIZER)
    path.write_text(json.dumps(rows[1] | {"Correct Answer": "\ud83d"}) + "\n")
    with pytest.raises(ValueError, match=r"gpqa\.jsonl:1: choices are .*expected 2 to 26 texts"):
        make_task(choice(choices=GPQA), TOKENIZER)


def test_the_text_of_a_choice_is_a_right_answer_in_the_file_and_in_a_response(tmp_path):
    task = make_task(MultipleChoice(path=file_of_positions(tmp_path / "c.jsonl", ["melts."] * 30)), TOKENIZER)
    assert task.train[0].answer[0] == "C"
    assert said(task, task.train[0], "hm</think>The answer is: melts.") == "right"
    assert said(task, task.train[0], "hm</think>The answer is: rains.") == "wrong"


@pytest.mark.parametrize(
    "answers",
    [
        ["Paris", "City of Light"],
        {"text": ["Paris", "City of Light"], "answer_start": [1, 2]},
        '["Paris", "City of Light"]',
    ],
)
def test_any_of_the_right_answers_is_right(tmp_path, answers):
    task, prompt = one_of(tmp_path, Qa, {"question": "Capital of France?", "answers": answers})
    assert said(task, prompt, "</think>the city of light!") == "right"
    assert said(task, prompt, "</think>Paris, France") == "wrong"
    assert said(task, prompt, "</think>") == "unparsable"


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (
            {"aliases": ["Paris"], "value": "Paris"},
            r"its parts are `answers: answers\.aliases`, `answers: answers\.value`",
        ),
        ("['Paris', 'City of Light']", "write this list as JSON, or, if it is one answer, as the only text of a list"),
        ("array(['Paris'], dtype=object)", "write this list as JSON"),
        ([True], "expected a text or a list of texts"),
    ],
)
def test_answers_that_are_no_texts_are_refused(tmp_path, answers, message):
    with pytest.raises(ValueError, match=rf"held\.jsonl:1: answers are .*{message}"):
        one_of(tmp_path, Qa, {"question": "Capital of France?", "answers": answers})


@pytest.mark.parametrize(
    ("answer", "right", "wrong"), [(True, ("Yes", "True."), "no"), (False, ("No.", "false"), "yes")]
)
def test_an_answer_that_is_true_or_false_is_yes_or_no_too(tmp_path, answer, right, wrong):
    task, prompt = one_of(tmp_path, Qa, {"question": "Is Paris in France?", "passage": "...", "answer": answer})
    assert [said(task, prompt, f"</think>{text}") for text in (*right, wrong)] == ["right", "right", "wrong"]


def test_a_question_without_an_answer_is_left_out(tmp_path):
    path = tmp_path / "squad.jsonl"
    rows = [{"question": f"q{i}?", "answers": {"text": ["x"] * (i % 5 > 0), "answer_start": []}} for i in range(30)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = make_task(Qa(path=str(path), validation=0.3), TOKENIZER)
    assert [row.where for row in task.left_out] == [f"squad.jsonl:{i + 1}" for i in range(0, 30, 5)]
    assert {row.reason for row in task.left_out} == {"cannot be judged"}


def test_letters_inside_of_choices_are_shown_once(tmp_path):
    row = {"question": "7 * 3?", "options": ["A)18", "B)21", "C)24"], "answer": "B"}
    task, prompt = one_of(tmp_path, MultipleChoice, row)
    assert "A. 18\nB. 21\nC. 24" in TOKENIZER.decode(prompt.tokens)
    assert [said(task, prompt, f"</think>{text}") for text in ("B", "21", "18")] == ["right", "right", "wrong"]
    task, prompt = one_of(tmp_path, MultipleChoice, row | {"answer": "C)24"})
    assert prompt.answer == ("C", ("18", "21", "24"))
    task, prompt = one_of(tmp_path, MultipleChoice, row | {"options": ["A) x", "C) y", "B) z"]})
    assert prompt.answer == ("B", ("A) x", "C) y", "B) z"))


def test_answers_may_be_numbers_and_a_list_in_a_list_is_one_answer(tmp_path):
    task, prompt = one_of(tmp_path, Qa, {"question": "When?", "answers": [1969, "['a']"]})
    assert prompt.answer == ("1969", "['a']")
    assert said(task, prompt, "</think>1969") == "right"


def test_near_answers_are_right_where_f1_is_enough(tmp_path):
    task, prompt = one_of(tmp_path, Qa, {"question": "Capital of France?", "answers": "Paris"}, min_f1=0.6)
    assert said(task, prompt, "</think>Paris, France") == "right"  # precision 1/2, recall 1: F1 2/3


ADD = {
    "question": "Write add(a, b).",
    "tests": [{"call": "add", "args": [2, 3], "expected": 5}],
    "solution": "def add(a, b):\n    return a + b",
}


def test_programs_are_judged_by_their_tests_in_the_sandbox(tmp_path):
    task, prompt = one_of(tmp_path, Code, ADD)
    block = "Here it is:\n```python\ndef add(a, b):\n    return a {} b\n```\n"
    assert said(task, prompt, "hm</think>" + block.format("+")) == "right"
    assert said(task, prompt, "hm</think>" + block.format("-")) == "wrong"
    assert said(task, prompt, "hm</think>" + block.format("-") + "Better:\n" + block.format("+")) == "right"
    assert said(task, prompt, "hm</think>def add(a, b): return a + b") == "right"
    assert said(task, prompt, "hm</think>") == "unparsable"
    assert said(task, prompt, "hm</think>I do not know") == "wrong"
    demonstrated, response = task.demonstrate(np.random.default_rng(0), 0.3)
    assert task.judge(demonstrated, list(response)).outcome == "right"


def test_an_answer_of_articles_alone_can_match_nothing_and_is_left_out(tmp_path):
    rows = [
        {"question": f"Which letter is {i}?", "answers": ["the", "A"] if i == 7 else ["the", "B"]} for i in range(40)
    ]
    path = tmp_path / "letters.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = make_task(Qa(path=str(path), validation=0.2), TOKENIZER)
    assert [(row.where, row.reason) for row in task.left_out] == [("letters.jsonl:8", "cannot be judged")]
    assert len(task.train) + len(task.validation) == 39


@pytest.mark.parametrize(
    ("test", "message"),
    [
        (
            "def test_odd(number):\n    assert is_odd(number)\n",
            "the tests in 'test_odd' are never called; it needs number",
        ),
        (
            "class Odd:\n    def holds(self):\n        assert is_odd(3)\n",
            "the class 'Odd' contains an assertion but is never used",
        ),
    ],
)
def test_tests_that_nothing_can_call_leave_their_row_out(tmp_path, test, message):
    path = tmp_path / "odd.jsonl"
    good = [{"question": f"q{i}", "test": "assert is_odd(3)\nassert not is_odd(4)"} for i in range(20)]
    path.write_text("".join(json.dumps(row) + "\n" for row in [*good, {"question": "bad", "test": test}]))
    task = make_task(Code(path=str(path), validation=0.3), TOKENIZER)
    (row,) = task.left_out
    assert (row.where, row.reason) == ("odd.jsonl:21", "cannot be judged")
    assert message in row.detail


LEETCODE = {
    "question": "Double a number.",
    "starter_code": "class Solution:\n    def twice(self, numbers: List[int]) -> List[int]:\n",
    "input_output": json.dumps({"fn_name": "twice", "inputs": [[[2, 5]]], "outputs": [[4, 10]]}),
}


def test_a_class_of_leetcode_is_shown_how_it_begins_and_needs_no_imports(tmp_path):
    task, prompt = one_of(tmp_path, Code, LEETCODE)
    assert "Begin with this code:\n\n```python\nclass Solution:" in TOKENIZER.decode(prompt.tokens)
    body = "        return [{} * n for n in numbers]"
    program = f"</think>```python\n{LEETCODE['starter_code']}{body}\n```"
    assert said(task, prompt, program.format(2)) == "right"
    assert said(task, prompt, program.format(3)) == "wrong"
    assert said(task, prompt, "</think>```python\ndef twice(numbers): return [2 * n for n in numbers]\n```") == "right"
    for factor, outcome in ((2, "right"), (3, "wrong")):
        method = f"import math\ndef twice(self, numbers): return [{factor} * n for n in numbers]"
        for answer in (f"```python\n{method}\n```", f"```python\n{body.format(factor)}\n```", body.format(factor)):
            assert said(task, prompt, f"</think>{answer}") == outcome


@pytest.mark.parametrize("column", ["generated_checker", "interaction_format", "input_file"])
def test_a_problem_that_equal_output_does_not_judge_is_left_out(tmp_path, column):
    path = tmp_path / "codeforces.jsonl"
    rows = [{"description": f"d{i}", "tests": [{"input": "1", "output": "2"}], column: ""} for i in range(20)]
    rows[7][column] = "import sys"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (row,) = make_task(Code(path=str(path), validation=0.3), TOKENIZER).left_out
    assert (row.where, row.reason) == ("codeforces.jsonl:8", "cannot be judged")
    assert row.detail.startswith(f"{column} has a value")
