"""Runs whose episodes are played by agent programs: what is trained is what was sampled, also after kill -9."""

import json

import pytest
import torch
from trainer.agent_programs import ASK
from trainer.attempts import attempt
from trainer.runs import PROCESSES, new_run, rows_of
from trainer.tiny import tiny_recipe

from scalerl.learner import torch_learner
from scalerl.model.build import new_policy
from scalerl.run.run_log import read_rows
from scalerl.run.train import train
from scalerl.tasks.task import TaskError

AGENT = """
turns = []


def turn(*messages):
    answer = ask(*messages, logprobs=True)
    turns.append((answer["prompt_token_ids"], answer["choices"][0]["token_ids"]))
    return "assistant", answer["choices"][0]["message"]["content"]


first = ("user", "1-8")
one = turn(first)
two = turn(first, one, ("user", "+"))
turn(("system", "short"), ("user", two[1]))  # its history rewritten
with open("turns.jsonl", "a") as file:
    file.write(json.dumps(turns) + "\\n")
end(len(set(one[1] + two[1])) / 8, end="won" if one[1] < two[1] else "lost")
"""
"""Notes the tokens of every turn, of which the last begins a conversation; half of the episodes are won."""


def recipe_of(folder, code=AGENT, **changes):
    (folder / "agent.py").write_text(ASK + code)
    task = {
        "type": "episodes",
        "environment": {"type": "program", "command": ["{python}", "agent.py"], "folder": str(folder)},
        "turns": 3,
        "context_tokens": 60,
        "train": 16,
        "validation": 2,
        "time_limit_s": 30,
        **changes,
    }
    return tiny_recipe(
        model={"tokenizer": "characters"},
        tasks=[task],
        warm_start={"steps": 0},
        batch={"prompts": 2, "generations": 3},
        generation={"thinking": "none", "answer": 4},
        cluster={"slots": 1},
        length_control={"type": "none"},
        evaluation={"every": 4.0, "samples": 1},
        checkpoint_every_s=0.0,
    )


BUDGET = 0.5
"""GPU-hours of some three steps."""


def test_a_program_of_the_standard_library_trains_on_the_tokens_that_it_was_told(tmp_path, warm_starts, monkeypatch):
    recipe, batches = recipe_of(tmp_path), []
    make = torch_learner.make_batch

    def noted(groups, **settings):
        batches.append((groups, make(groups, **settings)))
        return batches[-1][1]

    monkeypatch.setattr(torch_learner, "make_batch", noted)
    folder = new_run(tmp_path / "run", recipe)
    train(folder.path, budget_gpu_hours=BUDGET, warm_starts=warm_starts)
    assert len(batches) >= 2
    told = [json.loads(line) for line in (tmp_path / "turns.jsonl").read_text().splitlines()]
    for groups, batch in batches:
        samples = [sample for group in groups for rollout in group.rollouts for sample in rollout.samples]
        assert batch.tokens_BT.shape[0] == len(samples) == 2 * sum(len(group.rollouts) for group in groups)
        for row, (main, other) in enumerate(zip(samples[::2], samples[1::2], strict=True)):
            found = []
            for sample, number in ((main, 2 * row), (other, 2 * row + 1)):
                tokens, own = batch.tokens_BT[number].tolist(), batch.mask_BT[number].tolist()
                inside = set()
                for turn in sample.episode.turns:
                    found.append([tokens[: turn.start], tokens[turn.start : turn.stop]])
                    inside |= set(range(turn.start, turn.stop))
                assert [place for place, is_own in enumerate(own) if is_own] == sorted(inside)
            assert found in told
            assert found[1][0][: len(found[0][0] + found[0][1])] == found[0][0] + found[0][1]
    rows = [*read_rows(folder.metrics, kind="train")]
    assert rows[0]["mismatch_max"] < 1e-4  # log-probabilities of the tokens in the batch are those of sampling
    assert any(row["grad_norm"] > 0 for row in rows)


def test_a_run_killed_while_programs_work_and_resumed_is_the_undisturbed_run(tmp_path, warm_starts):
    recipe = recipe_of(tmp_path)
    undisturbed, folder = (new_run(tmp_path / name, recipe) for name in ("undisturbed", "killed"))
    train(undisturbed.path, budget_gpu_hours=BUDGET, warm_starts=warm_starts)
    for moment in (("train row", 2), None):
        process = PROCESSES.Process(target=attempt, args=(folder.path, BUDGET, warm_starts, moment))
        process.start()
        process.join(250)
        assert process.exitcode == (0 if moment is None else -9)
    assert rows_of(folder) == rows_of(undisturbed)
    ours, theirs = (weights_of(one, recipe) for one in (folder, undisturbed))
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())


def weights_of(folder, recipe):
    policy = new_policy(recipe)
    policy.load_weights(folder.model)
    return policy.state_dict()


def test_an_agent_that_hangs_dies_or_prints_nonsense_costs_its_own_episode(tmp_path, warm_starts):
    code = """
word = said(("user", "1-8"))
if episode["seed"] < 16:  # held-out episodes have no faults
    match ord((word or " ")[0]) % 8:
        case 0: sys.exit(3)
        case 1: print("nonsense"); sys.exit()
        case 2: import time; time.sleep(60)
end(len(word) / 8)
"""
    folder = new_run(tmp_path / "run", recipe_of(tmp_path, code, time_limit_s=5))
    train(folder.path, budget_gpu_hours=BUDGET, warm_starts=warm_starts)
    counts = [row["outcomes"] for row in read_rows(folder.metrics, kind="train")]
    assert sum(one["crashed"] for one in counts) > 0
    assert sum(one["timed_out"] for one in counts) > 0
    assert sum(one["right"] for one in counts) > 6


@pytest.mark.parametrize(
    ("command", "found"),
    [
        (["no-such-program"], "'no-such-program' does not start"),
        (["{python}", "-c", "import no_such_module"], "ModuleNotFoundError: No module named 'no_such_module'"),
        (["{python}", "-c", ""], "did not ask the policy"),
    ],
)
def test_a_program_that_cannot_ask_ends_a_run_before_it_trains(tmp_path, warm_starts, command, found):
    program = {"type": "program", "command": command, "folder": str(tmp_path)}
    folder = new_run(tmp_path / "run", recipe_of(tmp_path, environment=program))
    with pytest.raises(TaskError, match=found):
        train(folder.path, budget_gpu_hours=BUDGET, warm_starts=warm_starts)


def test_edited_code_makes_another_run_and_another_folder_does_not(tmp_path):
    (tmp_path / "moved").mkdir()
    first, moved = recipe_of(tmp_path), recipe_of(tmp_path / "moved")
    assert first.identity(0) == moved.identity(0)
    assert recipe_of(tmp_path, AGENT + "\n").identity(0) != first.identity(0)


@pytest.mark.parametrize("changes", [{"credit": "turn"}, {"discount": 0.9}, {"settings": {"level": 1}}])
def test_settings_without_effect_on_a_program_are_refused(tmp_path, changes):
    with pytest.raises(ValueError, match=f"{next(iter(changes))} has no effect on a program"):
        recipe_of(tmp_path, **changes)
