"""A game of one turn is the same run, to the bit, as the same task of one prompt and one answer."""

import pytest
from trainer.runs import new_run, rows_of
from trainer.tiny import tiny_recipe

from scalerl.run.run_folder import RunFolder
from scalerl.run.train import train
from scalerl.tasks import make_task
from scalerl.tokens import make_tokenizer

BOTH = '''\
import random
from scalerl.environments.protocol import Reply
from scalerl.rollout import Judgement
from scalerl.tasks.own import TaskProblem, TaskProblems

NUMBERS = [str(one) for one in random.Random(0).sample(range(10_000), 80)]
OUTCOMES = {"right": ("won", 1.0), "wrong": ("lost", -1.0), "unparsable": ("rules_broken", -1.0)}


def outcome(text):
    """Right for about half of what a new policy writes."""
    return "unparsable" if not text else "right" if sum(map(ord, text)) % 2 else "wrong"


def asked():
    problems = [TaskProblem(question=f"{number}?", answer="!") for number in NUMBERS]
    return TaskProblems(problems=problems, judge=lambda given: Judgement(outcome(given.text)))


class Asked:
    def __init__(self, train, validation):
        self.train, self.validation = train, validation

    def start(self, seed, row):
        held_out, number = divmod(seed, 1_000_000_000)
        return (self.validation if held_out else self.train)[number]

    def act(self, text):
        end, reward = OUTCOMES[outcome(text)]
        return Reply("", reward=reward, end=end)
'''
OF_EPISODES = {"turns", "earned", "environment_tokens", "ends"}
"""Columns that only episodes have."""
SETTINGS = {
    "plain": {"zero_variance": "keep"},
    "cut": {"generation": {"thinking": 3, "answer": 2}, "length_control": {"type": "interruption", "earliest": 0.4}},
    "penalised": {
        "generation": {"thinking": "none", "answer": 3},
        "length_control": {"type": "penalty", "cache": 0.5},
        "kl": {"coefficient": 0.1, "where": "reward"},
        "truncated": "mask",
        "aggregation": "constant",
        "zero_variance": "resample",
    },
    "critic": {"critic": {"type": "value_network", "value_clip": None}, "advantage": "none"},
}


@pytest.mark.parametrize(
    ("name", "credit"), [*((name, "episode") for name in SETTINGS), ("plain", "turn"), ("critic", "turn")]
)
def test_a_game_of_one_turn_gives_the_rows_of_the_task_to_the_bit(tmp_path, name, credit):
    (tmp_path / "both.py").write_text(BOTH)
    own = {"type": "custom", "folder": str(tmp_path)}
    general = {
        "model": {"tokenizer": "characters"},
        "warm_start": {"steps": 0},
        "evaluation": {"every": 5.0},
        **SETTINGS[name],
    }
    single = tiny_recipe(tasks=[{**own, "function": "both:asked", "name": "asked"}], **general)
    # The same prompts in the same order: which are held out is decided by their text there, and by a list here.
    tokenizer = make_tokenizer(single.model, thinks=single.generation.thinks)
    task = make_task(single.tasks[0], tokenizer)
    texts = {split: [task.written(prompt).text for prompt in getattr(task, split)] for split in ("train", "validation")}
    game = {
        "type": "episodes", "environment": {**own, "function": "both:Asked"}, "settings": texts, "turns": 1,
        "context_tokens": 200, "name": "asked", "credit": credit,
        "train": len(texts["train"]), "validation": len(texts["validation"]),
    }  # fmt: skip
    folders: dict[str, RunFolder] = {}
    budget = 16 if single.generation.thinks else 1
    for kind, recipe in (("single", single), ("game", tiny_recipe(tasks=[game], **general))):
        folders[kind] = new_run(tmp_path / kind, recipe)
        train(folders[kind].path, budget_gpu_hours=budget, warm_starts=tmp_path / "warm")
    theirs, ours = ([*rows_of(folder, "train"), *rows_of(folder, "eval")] for folder in folders.values())
    steps = [row for row in theirs if row["kind"] == "train"]
    assert len(steps) >= 5
    assert sum(not row["skipped"] for row in steps) >= 3
    assert any(0 < row["pass_rate"] < 1 for row in steps)
    assert {row["kind"] for row in theirs} == {"train", "eval"}
    assert all(set(row) >= OF_EPISODES for row in ours if row["kind"] == "eval")
    assert not any(OF_EPISODES & set(row) for row in theirs)
    assert [{key: row[key] for key in row if key not in OF_EPISODES} for row in ours] == theirs
