"""Functions of the user's own are tried before anything trains: each fault is refused with its file and line."""

import random
import re

import pytest
from trainer.own_functions import GOOD, OTHERS, TASK, custom_task, own_function, own_loss, written
from trainer.tiny import tiny_recipe

from scalerl.checks.examine import examine_recipes
from scalerl.checks.own_process import try_own
from scalerl.checks.own_trial import tried
from scalerl.recipe import OwnLoss

TORCH_RATIO = "(given.logprobs_BT - given.behaviour_BT).exp()"
PLAIN = f"""\
def mine(given):
    loss = -given.advantage_BT * torch.where(given.mask_BT, {TORCH_RATIO}, 0.0)
    {{line}}
    return LossOutputs(loss_BT=loss, clipped_BT=torch.zeros_like(given.mask_BT))
"""
BROKEN = {
    "wrong shape": (
        "return LossOutputs(loss_BT=loss[:, :3], clipped_BT=given.mask_BT[:, :3])", 5,
        "returns loss_BT of shape (8, 3); its axes are B=8, T=24",
    ),
    "two shapes": (
        "loss = loss[:, :3]", 8, "raised Rejected: LossOutputs: clipped_BT has shape (8, 24); its axes are B=8, T=3",
    ),
    "NaN": ("loss = loss / given.mask_BT", 5, "makes loss_BT NaN or infinite off the mask"),
    "NaN on the mask": ("loss = loss + torch.where(given.mask_BT, (loss * 0).log() * 0, 0)", 5, "places of the mask"),
    "changes its inputs": ("given.behaviour_BT.add_(1)", 5, "changes its input behaviour_BT"),
    "gradient off the mask": (
        "loss = loss + given.mask_BT * (given.logprobs_BT - given.logprobs_BT.detach()).mean()", 5,
        "gives logprobs_BT a gradient off the mask",
    ),
    "no gradient": ("loss = loss.detach()", 5, "gives logprobs_BT no gradient"),
    "ignores the mask": (f"loss = -given.advantage_BT * {TORCH_RATIO} - 1", 5, "its loss_BT is not 0 off mask_BT"),
    "averages over the mask": (
        "loss = loss * given.logprobs_BT.detach().mean()", 5, "its loss_BT depends on values where mask_BT is False",
    ),
    "another device": (
        *("loss = loss * torch.ones(given.mask_BT.shape)", 7, "mixes its inputs with tensors on another device"),
    ),
    "names a device": ("loss = loss * torch.ones(given.mask_BT.shape, device='cpu')", 7, "names the device 'cpu'"),
    "random": ("loss = loss * torch.rand_like(loss)", 5, "returns something different when called again"),
    "slow": ("import time; time.sleep(0.3)", 5, "ms for 64 x 128 numbers, but cispo"),
    "raises": ("raise ValueError('no such idea')", 7, "mine raised ValueError: no such idea"),
    "raises below": ("torch.stack([loss, loss[0]])", 7, "mine raised RuntimeError: stack expects each tensor"),
    "needs a parameter": ("float(given.beta)", 7, "mine raised AttributeError"),
}  # fmt: skip
"""A line of a loss, the line of the file that the message names, and words of the message."""


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_loss_is_refused_with_its_file_and_line(fault, tmp_path):
    line, number, words = BROKEN[fault]
    answer = tried("loss", own_loss(tmp_path, PLAIN.format(line=line)))
    assert answer["remedy"]
    assert answer["found"].startswith(f"{tmp_path}/my_ideas/losses.py:{number}: ")
    assert words in answer["found"]
    assert answer["remedy"]


def test_without_the_broken_line_the_same_loss_is_accepted(tmp_path):
    answer = tried("loss", own_loss(tmp_path, PLAIN.format(line="pass")))
    assert not answer["remedy"], answer
    assert "; cispo takes" in answer["found"]


def test_a_tensor_instead_of_the_record_is_refused(tmp_path):
    answer = tried("loss", own_loss(tmp_path, "def mine(given):\n    return given.logprobs_BT\n"))
    assert "returns a Tensor; must return LossOutputs(loss_BT=..., clipped_BT=...)" in answer["found"]


def test_a_loss_that_reads_a_number_from_its_device_is_accepted(tmp_path):
    # Tensors without numbers, on which devices are tried, cannot answer; a GPU can.
    body = PLAIN.format(line="loss = loss * (2.0 if given.advantage_BT.max().item() > 0 else 1.0)")
    assert not tried("loss", own_loss(tmp_path, body))["remedy"]


def test_the_start_of_the_round_is_given_to_a_loss_that_asks_for_it(tmp_path):
    body = GOOD.replace("given.behaviour_BT", "given.start_BT")
    assert not tried("loss", own_loss(tmp_path, body, start=True))["remedy"]
    assert tried("loss", own_loss(tmp_path, body))["remedy"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("import no_such_package\n", "losses.py:1: my_ideas.losses cannot be imported: ModuleNotFoundError"),
        ("mine = 3\n", "losses.py:1: defines no function 'mine'"),
        ("def theirs(given): ...\n", "losses.py:1: defines no function 'mine'; it has theirs"),
    ],
)
def test_a_function_that_cannot_be_imported_is_refused(line, words, tmp_path):
    path = written(tmp_path, line, head="")
    own = OwnLoss(function="my_ideas.losses:mine", folder=str(tmp_path))
    answer = tried("loss", own)
    assert answer["remedy"]
    assert str(path.parent) in answer["found"]
    assert words in answer["found"]


def test_a_function_is_tried_in_a_process_of_its_own_and_its_own_file_is_named(tmp_path):
    finding = try_own("loss", own_loss(tmp_path, PLAIN.format(line="raise ValueError('no such idea')")), 60)
    assert (finding.part, finding.check, finding.level) == ("own", "loss my_ideas.losses:mine", "error")
    assert finding.found == f"{tmp_path}/my_ideas/losses.py:7: mine raised ValueError: no such idea"


@pytest.mark.parametrize(
    ("line", "limit_s", "words"),
    [
        ("while True: pass", 3, "mine did not end within 3 s"),
        ("import os; os._exit(3)", 60, "ended without a result: exit code 3"),
    ],
)
def test_a_function_that_never_ends_or_ends_its_process_is_refused(line, limit_s, words, tmp_path):
    finding = try_own("loss", own_loss(tmp_path, PLAIN.format(line=line)), limit_s)
    assert finding.level == "error"
    assert words in finding.found
    assert f"{tmp_path}/my_ideas/losses.py" in finding.found


def test_a_file_that_is_read_beside_the_function_is_missing_when_it_is_tried(tmp_path):
    # A run has copies of what the function imports and of nothing else.
    (tmp_path / "my_ideas").mkdir()
    (tmp_path / "my_ideas/words.txt").write_text("a")
    body = PLAIN.format(line="from pathlib import Path; Path(__file__).with_name('words.txt').read_text()")
    finding = try_own("loss", own_loss(tmp_path, body), 60)
    assert "mine raised FileNotFoundError" in finding.found


@pytest.mark.parametrize("setting", OTHERS)
def test_a_function_for_another_setting_is_accepted(setting, tmp_path):
    answer = tried(setting, own_function(tmp_path, setting))
    assert not answer["remedy"], answer
    assert " takes " in answer["found"]


OTHERS_BROKEN = {
    "a lone weight": (
        "aggregation",
        "given.mask_BT * scale / longest",
        "1.0",
        "'float' object has no attribute 'shape'",
    ),
    "an advantage of missing answers": (
        "advantage",
        "torch.where(given.mask_PG, given.rewards_PG - baseline, 0.0)",
        "given.rewards_PG - 0.5",
        "its advantage_PG is not 0 off mask_PG",
    ),
    "a rule in numbers": ("zero_variance", "pass_rate <= most", "pass_rate", "returns is_trained_P of torch.float32"),
    "a rule of missing answers": (
        "zero_variance",
        "(given.right_PG & given.mask_PG)",
        "given.right_PG",
        "its is_trained_P depends on values where mask_PG is False",
    ),
    "a reward that is no number": (
        "reward",
        "float(given.outcome",
        "float('nan') * (given.outcome",
        "returns reward nan",
    ),
    "a GPU": (
        "reward",
        "float(given",
        "float(__import__('torch').ones(1, device='cuda') * given",
        "names the device 'cuda'",
    ),
}
"""A setting, what is written instead of what, and words of the message."""


@pytest.mark.parametrize("fault", OTHERS_BROKEN)
def test_a_broken_function_for_another_setting_is_refused(fault, tmp_path):
    setting, old, new, words = OTHERS_BROKEN[fault]
    assert old in OTHERS[setting]
    answer = tried(setting, own_function(tmp_path, setting, OTHERS[setting].replace(old, new)))
    assert answer["remedy"]
    assert answer["found"].startswith(f"{tmp_path}/my_ideas/{setting}s.py:")
    assert words in answer["found"]
    assert answer["remedy"]


def test_a_task_is_accepted_with_the_time_of_its_judge(tmp_path):
    answer = tried("task", custom_task(tmp_path, parameters={"count": 50}))
    assert not answer["remedy"], answer
    assert re.fullmatch(r"50 problems; a judgement takes [\d.e-]+ ms", answer["found"])


TASKS_BROKEN = {
    "a list": ("TaskProblems(problems=problems, judge=judge)", "problems", "must return TaskProblems(problems=..., "),
    "no problems": ("problems=problems", "problems=[]", "mine returns no problems"),
    "an answer that is no text": ("answer=str(a + b)", "answer=a + b", "mine returns TaskProblem(question='"),
    "other problems each time": ("random.Random(0)", "random", "returns different problems when called again"),
    "a judge that wants a number": (
        "given.text.strip() == given.problem.answer", "int(given.text) == int(given.problem.answer)",
        "my_ideas/tasks.py:14: mine raised ValueError: invalid literal for int() with base 10: '', judging ''",
    ),
    "a judge that refuses its own answers": ("== given", "!= given", "has a judge that calls its own answer '"),
    "a judge that says yes": ('Judgement("right" if', 'bool("right" if', "has a judge that returns True"),
    "a judge that guesses": ('"wrong")', 'random.choice(["wrong", "unparsable"]))', "has a judge that judges"),
    "a task that needs a parameter": ("count=200", "count", "mine raised TypeError"),
}  # fmt: skip
"""What is written instead of what, and words of the message."""


@pytest.mark.parametrize("fault", TASKS_BROKEN)
def test_a_broken_task_is_refused(fault, tmp_path):
    old, new, words = TASKS_BROKEN[fault]
    assert old in TASK
    random.seed(3)
    answer = tried("task", custom_task(tmp_path, TASK.replace(old, new)))
    assert answer["remedy"]
    assert words in answer["found"]
    assert answer["found"].startswith(f"{tmp_path}/my_ideas/tasks.py:")
    assert answer["remedy"]


def test_a_task_that_never_ends_holds_up_no_other_check(tmp_path, monkeypatch):
    monkeypatch.setattr("scalerl.checks.own_process.TRIAL_LIMIT_S", 3.0)
    tasks = [
        custom_task(tmp_path, TASK.replace("drawn = random.Random(0)", "import time; time.sleep(3600)")).model_dump(
            mode="json"
        )
    ]
    recipe = tiny_recipe(model={"tokenizer": "characters"}, tasks=tasks)
    found = list(examine_recipes({"mine": recipe}, quick=True, say=lambda line: None))
    errors = [one for one in found if one.level == "error"]
    assert [one.part for one in errors] == ["own", "data"]
    assert "mine did not end within 3 s" in errors[0].found
    assert [fault.what for fault in errors[1].faults] == [errors[0].found]
