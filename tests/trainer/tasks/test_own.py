"""Tasks of the user's own: their problems, their judge, and what becomes of one that fails."""

import random

import pytest
from trainer.own_functions import TASK, custom_task

from scalerl.rollout import Judgement
from scalerl.tasks import TaskError, make_task
from scalerl.tokens.characters import CharacterTokenizer

TOKENIZER = CharacterTokenizer(thinks=False)


def task_of(settings):
    return make_task(settings, TOKENIZER)


def judged(task, prompt, text):
    return task.judge(prompt, [*TOKENIZER.encode(text), TOKENIZER.eos_ids[0]])


def test_problems_are_those_of_the_function_split_by_their_ids(tmp_path):
    task = task_of(custom_task(tmp_path, parameters={"count": 100}, validation=0.2, template="What is {question}"))
    assert task.name == "mine"
    drawn = random.Random(0)
    num_different = len({(drawn.randrange(100), drawn.randrange(100)) for _ in range(100)})
    assert len(task.train) + len(task.validation) == num_different
    assert 5 <= len(task.validation) <= 40
    texts = {task.written(prompt).text for prompt in (*task.train, *task.validation)}
    assert all(text.startswith("What is ") and text.endswith("=") for text in texts)
    again = task_of(custom_task(tmp_path, parameters={"count": 100}, validation=0.2, template="What is {question}"))
    assert again.validation == task.validation


def test_answers_are_judged_by_the_function(tmp_path):
    task = task_of(custom_task(tmp_path))
    for prompt in task.train[:20]:
        a, b = task.written(prompt).text.removesuffix("=").split("+")
        assert judged(task, prompt, f" {int(a) + int(b)} ") == Judgement("right")
        assert judged(task, prompt, f"{int(a) + int(b) + 1}") == Judgement("wrong")


def test_a_solution_is_demonstrated_before_its_answer(tmp_path):
    task = task_of(custom_task(tmp_path))
    for prompt, tokens in task.demonstrations()[:5]:
        assert judged(task, prompt, task.written(prompt).answer) == Judgement("right")
        written = task.written(prompt)
        assert tokens == (*TOKENIZER.encode(f"{written.thought}\n\n{written.answer}"), TOKENIZER.eos_ids[0])


def test_a_judge_that_raises_says_nothing_of_the_answer_and_names_its_line(tmp_path, capsys):
    body = TASK.replace("given.text.strip() == given.problem.answer", "int(given.text) == int(given.problem.answer)")
    task = task_of(custom_task(tmp_path, body))
    assert judged(task, task.train[0], "x") == Judgement("crashed")
    said = capsys.readouterr().out
    assert said.startswith(f"task mine: {tmp_path}/my_ideas/tasks.py:14: mine raised ValueError: invalid literal")


def test_a_function_that_returns_something_else_makes_no_task(tmp_path):
    body = TASK.replace("TaskProblems(problems=problems, judge=judge)", "problems")
    with pytest.raises(TaskError, match=r"tasks\.py:1: mine returns a list; must return TaskProblems"):
        task_of(custom_task(tmp_path, body))


def test_a_question_that_comes_twice_is_used_once(tmp_path):
    body = TASK.replace("problems=problems,", "problems=problems * 2,")
    once, twice = (task_of(custom_task(tmp_path / str(n), text)) for n, text in enumerate((TASK, body)))
    assert twice.train == once.train
    assert len(twice.left_out) == len(once.train) + len(once.validation)
