"""Prompts that show columns of their rows: filled, refused by name, and part of what a problem is."""

import json
from pathlib import Path

import pytest

from scalerl.recipe import Code, Math, MultipleChoice, Qa
from scalerl.tasks import TaskError, make_task
from scalerl.tasks.text_task import TextTask
from scalerl.tokens import CharacterTokenizer

TOKENIZER = CharacterTokenizer(thinks=False)
SHELVES = [
    {"context": f"Shelf {n} holds a jar of 18{n}.", "question": f"Of when is jar {n}?", "answers": [f"18{n}"]}
    for n in range(10, 40)
]


def task_of(kind, folder: Path, rows, **settings) -> TextTask:
    train, held = folder / "train.jsonl", folder / "held.jsonl"
    train.write_text("".join(json.dumps(row) + "\n" for row in rows[2:]))
    held.write_text("".join(json.dumps(row) + "\n" for row in rows[:2]))
    task = make_task(kind(path=str(train), validation_path=str(held), **settings), TOKENIZER)
    assert isinstance(task, TextTask)
    return task


def first_prompt(task):
    return TOKENIZER.decode(task.validation[0].tokens)


def test_a_column_is_shown_where_the_template_names_it(tmp_path):
    task = task_of(Qa, tmp_path, SHELVES, template="{context}\n\n{question}")
    assert first_prompt(task) == "Shelf 10 holds a jar of 1810.\n\nOf when is jar 10?"
    assert not task.never_shown


def test_a_name_that_no_column_has_is_refused_with_line_and_columns(tmp_path):
    with pytest.raises(TaskError, match=r"held.jsonl:1: template shows \{contxt\}.*question, context.*\{\{contxt\}\}"):
        task_of(Qa, tmp_path, SHELVES, template="{contxt}\n\n{question}")
    with pytest.raises(TaskError, match=r"\{ context \}"):
        task_of(Qa, tmp_path, SHELVES, template="{ context }\n\n{question}")
    with pytest.raises(TaskError, match=r"\{context:.99\}"):
        task_of(Qa, tmp_path, SHELVES, template="{context:.99}\n\n{question}")


def test_a_template_never_shows_the_right_answer(tmp_path):
    sums = [{"question": f"{n} + 1", "answer": f"{n + 1}", "hint": "count"} for n in range(10)]
    with pytest.raises(TaskError, match=r"template shows \{answer\}, the column of the right answer"):
        task_of(Math, tmp_path, sums, template="{question} It is {answer}.")
    shown = task_of(Math, tmp_path, sums, template=r"{question} ({hint}) Write \boxed{answer}, not {{answer}}.")
    assert first_prompt(shown) == r"0 + 1 (count) Write \boxed{answer}, not {answer}."
    picks = [{"question": f"{n}?", "choices": ["a", f"b{n}"], "answer": "A", "why": "so"} for n in range(10)]
    with pytest.raises(TaskError, match="the right answer"):
        task_of(MultipleChoice, tmp_path, picks, template="{question}{choices}{answer}")


def test_a_template_shows_parts_of_columns_but_none_of_the_right_answer(tmp_path):
    turns = [{"role": "system", "content": "Think."}, {"role": "user", "content": "0 + 1"}]
    rows = [{"prompt": [turns[0], turns[1] | {"content": f"{n} + 1"}], "gold": {"text": f"{n + 1}"}} for n in range(10)]
    columns = {"question": "prompt.1.content", "answer": "gold.text"}
    shown = task_of(Math, tmp_path, rows, template="{prompt.0.content}\n{question}", **columns)
    assert first_prompt(shown) == "Think.\n0 + 1"
    for part in ("gold", "gold.text"):
        with pytest.raises(TaskError, match=rf"template shows \{{{part}\}}, the column of the right answer"):
            task_of(Math, tmp_path, rows, template=f"{{question}} {{{part}}}", **columns)


def test_a_question_that_looks_like_a_template_is_asked_as_it_is(tmp_path):
    rows = [
        {"question": f"{n}: what is {{choices}}?", "choices": ["{question}", f"{n}"], "answer": "A"} for n in range(9)
    ]
    assert "0: what is {choices}?\n\nA. {question}\nB. 0" in first_prompt(task_of(MultipleChoice, tmp_path, rows))
    code = [
        {
            "question": f"Write f{n}, of {{tests}}",
            "tests": f"x = f{n}(1)\nassert x == {n + 1}",
            "solution": f"def f{n}(a): return a + {n}",
        }
        for n in range(9)
    ]
    task = task_of(Code, tmp_path, code, template="{question}\n{tests}")
    assert first_prompt(task) == "Write f0, of {tests}\nx = f0(1)\nassert x == 1"


def test_one_question_about_two_articles_is_two_problems(tmp_path):
    rows = [row | {"question": "Of when is the jar?"} for row in SHELVES]
    task = task_of(Qa, tmp_path, rows, template="{context}\n\n{question}")
    assert (len(task.train), len(task.validation)) == (28, 2)
    assert len({prompt.id for prompt in (*task.train, *task.validation)}) == 30


def test_a_row_without_the_column_is_named(tmp_path):
    rows = [dict(row) for row in SHELVES]
    rows[5]["context"] = None
    with pytest.raises(TaskError, match=r"train.jsonl:4: template shows \{context\}, but this row has no value there"):
        task_of(Qa, tmp_path, rows, template="{context}\n\n{question}")
    rows[5]["context"] = ["Two", "paragraphs"]
    texts = [TOKENIZER.decode(p.tokens) for p in task_of(Qa, tmp_path, rows, template="{context} {question}").train]
    assert "Two\n\nparagraphs Of when is jar 15?" in texts


def test_sentences_of_paragraphs_are_shown_and_parts_are_named(tmp_path):
    # As HotpotQA writes it.
    about = {"title": ["A", "B"], "sentences": [["One.", " Two."], ["Three."]]}
    rows = [row | {"context": about} for row in SHELVES]
    task = task_of(Qa, tmp_path, rows, template="{context.sentences} {question}")
    assert first_prompt(task) == "One. Two.\n\nThree. Of when is jar 10?"
    with pytest.raises(TaskError, match=r"has parts; name one of \{context\.title\}, \{context\.sentences\}"):
        task_of(Qa, tmp_path, rows, template="{context} {question}")


def test_an_article_that_no_prompt_shows_is_counted(tmp_path):
    task = task_of(Qa, tmp_path, SHELVES)
    assert task.never_shown == {"context": 30}
    # The question may be that column, and a row may repeat its article in the question.
    inside = [{**row, "question": f"{row['context']} {row['question']}"} for row in SHELVES]
    assert not task_of(Qa, tmp_path, inside).never_shown


def test_a_story_in_a_column_of_another_name_is_counted_too(tmp_path):
    # As SVAMP writes it.
    rows = [
        {"Body": f"Dan has {n} pens and buys one.", "Question": f"How many has {n}?", "Answer": n} for n in range(9)
    ]
    task = task_of(Math, tmp_path, rows, question="Question", answer="Answer")
    assert task.never_shown == {"Body": 9}


def test_what_a_program_reads_that_no_prompt_shows_is_counted(tmp_path):
    # As open-r1/codeforces writes it.
    tests = [{"input": "1", "output": "2"}]
    rows = [{"description": f"d{n}", "input_format": "One integer.", "official_tests": tests} for n in range(9)]
    assert task_of(Code, tmp_path, rows, tests="official_tests").never_shown == {"input_format": 9}
    shown = task_of(Code, tmp_path, rows, tests="official_tests", template="{question}\n\n{input_format}")
    assert not shown.never_shown
