"""A written solution teaches only if its own verifier takes it."""

import json

import numpy as np
import pytest

from scalerl.prompts.demonstrations import keep_right_demonstrations
from scalerl.prompts.judge import VerifierFailed
from scalerl.recipe import Code, KSmallest, Math
from scalerl.sandbox import Sandbox, SandboxError
from scalerl.tasks import TaskError, all_tasks, make_task
from scalerl.tokens import CharacterTokenizer, SymbolTokenizer

TOKENIZER = CharacterTokenizer()
NUMBERS = range(24)


def program(number, is_right):
    return {
        "question": f"f adds {number}",
        "tests": [{"call": "f", "args": [1], "expected": number + 1}],
        "solution": f"def f(x): return x + {number if is_right else number + 1}",
    }


def settings_of(path, wrong=(), **more):
    path.write_text("".join(json.dumps(program(n, n not in wrong)) + "\n" for n in NUMBERS))
    return Code(path=str(path), validation=0.3, **more)


def taught(task):
    rng = np.random.default_rng(0)
    return {TOKENIZER.decode(task.demonstrate(rng, 0.0)[1]) for _ in range(400)}


def test_solutions_that_fail_their_own_tests_teach_no_more_and_are_named(tmp_path, capsys):
    task = make_task(settings_of(tmp_path / "code.jsonl"), TOKENIZER)
    assert len(taught(task)) == len(task.train)
    shown = [n for n in NUMBERS if any(f"x + {n}\n" in text for text in taught(task))]
    wrong = shown[1::4]
    task = make_task(settings_of(tmp_path / "code.jsonl", wrong=wrong), TOKENIZER)
    keep_right_demonstrations(task)
    assert [n for n in NUMBERS if any(f"x + {n}\n" in text for text in taught(task))] == sorted(set(shown) - set(wrong))
    said = capsys.readouterr().out
    assert f"{len(wrong)} of {len(shown)} written solutions do not teach" in said
    assert f"{len(wrong)} wrong; the first: code.jsonl:{wrong[0] + 1}" in said
    assert len(task.train) == len(shown)  # their problems are trained on all the same


def test_a_task_of_which_every_solution_is_refused_ends_the_run(tmp_path):
    right, wrong = tmp_path / "right.jsonl", tmp_path / "wrong.jsonl"
    both = [settings_of(right), settings_of(wrong, wrong=NUMBERS, name="hopeless", template="In Python: {question}")]
    mix = all_tasks(both, (), TOKENIZER).trained
    with pytest.raises(
        TaskError, match=r"refuses every one of the \d+ written solutions of task 'hopeless' \(\d+ wrong"
    ):
        keep_right_demonstrations(mix)


def test_solutions_that_could_not_be_judged_end_the_run_rather_than_change_what_it_learns(tmp_path, monkeypatch):
    task = make_task(settings_of(tmp_path / "code.jsonl"), TOKENIZER)

    def fail(*_, **__):
        raise SandboxError("no")

    monkeypatch.setattr(Sandbox, "run", fail)
    with pytest.raises(VerifierFailed, match=r"did not judge all \d+ written solutions \(\d+ crashed"):
        keep_right_demonstrations(task)


def test_solutions_of_mathematics_that_end_in_another_answer_than_the_right_one_teach(tmp_path, capsys):
    # What is demonstrated is the thought of the solution and the right answer, so the verifier takes it.
    rows = [{"question": f"{n} + 1?", "solution": f"It is {n}.", "answer": str(n + 1)} for n in NUMBERS]
    (tmp_path / "math.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    keep_right_demonstrations(make_task(Math(path=str(tmp_path / "math.jsonl"), validation=0.3), TOKENIZER))
    assert "do not teach" not in capsys.readouterr().out


def test_tasks_that_write_their_own_demonstrations_are_left_alone():
    settings = KSmallest(train_prompts=64, validation_prompts=8)
    task = make_task(settings, SymbolTokenizer())
    keep_right_demonstrations(task)
    assert task.has_demonstrations
