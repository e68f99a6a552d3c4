"""Data sets of reasoning-gym as tasks: problems by content, the library's own scores, and answers that attack them."""

import json
import os
import subprocess
import sys

import pytest
from reasoning_gym import create_dataset

from scalerl.gym import GymError, draw_problems, problems
from scalerl.objective.rewards import reward
from scalerl.recipe import ReasoningGym, ResolvedRecipe
from scalerl.tasks import TaskError, all_tasks, make_task
from scalerl.tokens.characters import CharacterTokenizer
from scalerl.verifiers import gym_score
from scalerl.verifiers.judge_worker import Engines, judge_within

SUMS = {"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 2}


def sums(**settings):
    return ReasoningGym(**{"dataset": "chain_sum", "config": SUMS, "size": 60, **settings})


def task_of(settings):
    return make_task(settings, CharacterTokenizer(thinks=False))


def outcome(task, prompt, text):
    tokenizer = CharacterTokenizer(thinks=False)
    return task.judge(prompt, [*tokenizer.encode(text), tokenizer.eos_ids[0]])


def test_problems_are_the_librarys_each_once():
    made = problems("chain_sum", json.dumps(SUMS), size=60, seed=5)
    theirs = create_dataset("chain_sum", **SUMS, size=200, seed=5)
    asked = list(dict.fromkeys(theirs[i]["question"] for i in range(200)))[:60]
    assert [problem["question"] for problem in made] == asked


def test_problems_are_the_same_in_every_process():
    # One data set draws from a set, one from `random`.
    code = "from scalerl.gym import problems_sha256 as made\n"
    code += "print([made(name, '{}', 5, 0) for name in ('ransom_note', 'list_functions')])"
    found = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, stdout=subprocess.PIPE, check=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


def test_a_problem_with_many_right_answers_has_no_written_one():
    task = task_of(ReasoningGym(dataset="graph_color", size=10, validation=0.3))
    assert {task.written(prompt).answer for prompt in task.train} == {None}


def test_every_right_answer_is_right_and_others_are_not():
    task = task_of(sums())
    assert len(task.train) + len(task.validation) == 60
    for prompt in (*task.train[:5], *task.validation[:5]):
        right = task.written(prompt).answer
        assert outcome(task, prompt, f"I add them. {right}").outcome == "right"
        assert outcome(task, prompt, right.replace("</", "0</")).outcome == "wrong"
        assert outcome(task, prompt, "no tag").outcome == "unparsable"


def test_the_whole_response_can_be_the_answer():
    task = task_of(sums(answer="text", template="{question}"))
    prompt = task.train[0]
    right = task.written(prompt).answer
    assert outcome(task, prompt, f" {right}\n").outcome == "right"
    assert outcome(task, prompt, f"It is {right}").outcome == "wrong"


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("{n}", "right"),
        ("4 - 1 = {n}.", "right"),
        ("The final answer is {n}.", "right"),
        ("So \\boxed{{{n}}}", "right"),
        ('"4 - 1 = {n}"', "right"),
        ("The answer is “{n}”.", "right"),
        ('"{n}" or "{n}7"', "unparsable"),
        ("4 - 1 = {n}7.", "wrong"),
        ("I cannot say", "unparsable"),
    ],
)
def test_a_stated_answer_is_found_in_a_sentence(response, expected):
    task = task_of(sums(answer="stated"))
    prompt = task.train[0]
    assert outcome(task, prompt, response.format(n=task.written(prompt).answer)).outcome == expected


def test_partial_scores_are_rewards_and_never_right():
    # countdown gives .05 to an expression that misses the target, by the library's source
    recipe = ResolvedRecipe.model_validate({})
    for partial, expected in ((True, 2 * 0.05 - 1), (False, -1.0)):
        task = task_of(ReasoningGym(dataset="countdown", size=30, partial_scores=partial))
        judged = outcome(task, task.train[0], "<answer>1 + 1</answer>")
        assert judged.outcome == "wrong"
        assert reward(judged, 3, recipe) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("dataset", "config", "size", "said"),
    [
        ("chainsum", {}, 60, r"found dataset 'chainsum'; reasoning-gym has ab, .*chain_sum"),
        ("chain_sum", {"terms": 2}, 60, r"found config key 'terms'; data set chain_sum has min_terms, max_terms"),
        ("chain_sum", {"seed": 2}, 60, r"write size and seed beside config"),
        ("chain_sum", {"min_terms": 9}, 60, r"rejects config .*max_terms must be >= min_terms"),
        ("chain_sum", {**SUMS, "max_digits": 1}, 900, r"gives \d+ different problems in 18,000 draws"),
    ],
)
def test_what_the_library_cannot_make_is_rejected_by_its_names(dataset, config, size, said):
    with pytest.raises(GymError, match=said):
        draw_problems(dataset, json.dumps(config), size, 0)


def test_a_recipe_gets_the_librarys_reason():
    with pytest.raises(ValueError, match="found dataset 'chainsum'"):
        sums(dataset="chainsum")


def test_other_problems_than_planned_are_rejected():
    with pytest.raises(TaskError, match="makes other problems than when the run was planned"):
        task_of(sums(problems_sha256="0" * 64))


def test_no_problem_held_out_by_one_task_is_trained_on_by_another():
    one, other = sums(), sums(name="again", seed=1000, validation=0.5)
    tasks = all_tasks([one, other], [], CharacterTokenizer(thinks=False)).trained
    measured = {tasks.written(prompt).text for prompt in tasks.validation}
    trained = [tasks.written(prompt).text for prompt in tasks.train]
    assert measured.isdisjoint(trained)
    assert len(set(trained)) == len(trained)


def asked(answer, dataset="chain_sum"):
    problem = create_dataset(dataset, size=1, seed=0)[0]
    return {"answer": answer, "dataset": dataset, "config": "{}", "problem": gym_score.packed(problem)}


def test_an_answer_that_never_ends_is_wrong():
    assert judge_within("gym_score", asked("9**9**9**9", "countdown"), time_limit_s=1.0).outcome == "wrong"


@pytest.mark.parametrize("attack", ["open('{path}', 'w')", "__import__('os').system('touch {path}')", "exec('1')"])
def test_an_answer_that_names_pythons_machinery_is_wrong_unread(attack, tmp_path):
    path = tmp_path / "made"
    assert judge_within("gym_score", asked(attack.format(path=path), "countdown"), time_limit_s=5.0).outcome == "wrong"
    assert not path.exists()


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
@pytest.mark.usefixtures("capfd")
def test_where_a_process_cannot_be_confined_nothing_is_judged(monkeypatch):
    def refuse():
        raise OSError("seccomp: not permitted")

    monkeypatch.setattr(gym_score, "confine", refuse)
    engines = Engines(gym_score)
    assert engines.outcome({"asked": gym_score.KNOWN, "limit_s": 5.0}) == "crashed"
    engines.close()


CONFINED = """
import os, signal, socket, subprocess, sys
from scalerl.verifiers.gym_score import confine
confine()
assert open(sys.argv[1]).read() == "before"
attempts = {
    "write": lambda: open(sys.argv[1], "w"),
    "append": lambda: open(sys.argv[1], "a"),
    "remove": lambda: os.remove(sys.argv[1]),
    "rename": lambda: os.rename(sys.argv[1], sys.argv[1] + "2"),
    "fork": os.fork,
    "run": lambda: subprocess.run(["true"]),
    "socket": socket.socket,
    "kill": lambda: os.kill(os.getppid(), 0),
    "chmod": lambda: os.chmod(sys.argv[1], 0o777),
    "mkdir": lambda: os.mkdir(sys.argv[1] + "3"),
}
for name, attempt in attempts.items():
    try:
        attempt()
    except PermissionError:
        continue
    print(name, "was allowed")
print("end")
"""


def test_a_confined_process_reads_and_does_nothing_else(tmp_path):
    file = tmp_path / "file"
    file.write_text("before")
    ended = subprocess.run([sys.executable, "-c", CONFINED, str(file)], capture_output=True, text=True, check=False)
    assert ended.stdout == "end\n", ended
