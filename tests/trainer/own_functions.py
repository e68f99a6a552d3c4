"""Functions of a user's own, written to files as a user would write them."""

from scalerl.recipe import CustomTask, Own, OwnLoss

HEAD = """\
import torch
from scalerl.objective.losses import LossInputs, LossOutputs, log_ratio


"""
GOOD = """\
def mine(given, *, beta=1.0):
    ratio = log_ratio(given.logprobs_BT, given.behaviour_BT, given.mask_BT).detach().exp()
    logprobs = torch.where(given.mask_BT, given.logprobs_BT, 0.0)
    loss = -ratio.clamp(max=beta) * given.advantage_BT * logprobs
    return LossOutputs(loss_BT=loss, clipped_BT=given.mask_BT & (ratio > beta))
"""
"""A loss whose body begins in line 6 of its file: CISPO with `max_ratio` beta."""


def written(folder, body=GOOD, head=HEAD, file="my_ideas/losses.py"):
    """The file's path after writing it."""
    path = folder / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(head + body)
    return path


def own_loss(folder, body=GOOD, **settings):
    """Settings of the loss `mine` in a new file of the folder."""
    written(folder, body)
    return OwnLoss(function="my_ideas.losses:mine", folder=str(folder), **settings)


OTHERS = {
    "aggregation": """\
from scalerl.objective.aggregation import AggregationOutputs


def mine(given, *, scale=1.0):
    longest = given.mask_BT.shape[1]
    return AggregationOutputs(weight_BT=given.mask_BT * scale / longest)
""",
    "advantage": """\
import torch
from scalerl.objective.advantages import AdvantageOutputs


def mine(given, *, baseline=0.0):
    return AdvantageOutputs(advantage_PG=torch.where(given.mask_PG, given.rewards_PG - baseline, 0.0))
""",
    "zero_variance": """\
from scalerl.objective.trained_groups import GroupOutputs


def mine(given, *, most=0.5):
    pass_rate = (given.right_PG & given.mask_PG).sum(dim=1) / given.mask_PG.sum(dim=1)
    return GroupOutputs(is_trained_P=pass_rate <= most)
""",
    "reward": """\
from scalerl.objective.rewards import RewardOutputs


def mine(given, *, per_token=0.0):
    return RewardOutputs(reward=float(given.outcome == "right") - per_token * given.length / given.max_length)
""",
}
"""A function `mine` for each setting but the loss."""


def own_function(folder, setting, body=None, **parameters):
    """Settings of the function `mine` for a setting, in a new file of the folder."""
    if setting == "loss":
        return own_loss(folder, **({} if body is None else {"body": body}), parameters=parameters)
    written(folder, body or OTHERS[setting], head="", file=f"my_ideas/{setting}s.py")
    return Own(function=f"my_ideas.{setting}s:mine", folder=str(folder), parameters=parameters)


TASK = """\
import random
from scalerl.rollout import Judgement
from scalerl.tasks.own import TaskAnswer, TaskProblem, TaskProblems


def mine(*, count=200):
    drawn = random.Random(0)
    pairs = dict.fromkeys((drawn.randrange(100), drawn.randrange(100)) for _ in range(count))
    problems = [TaskProblem(question=f"{a}+{b}=", answer=str(a + b), solution=f"{a},{b}") for a, b in pairs]
    return TaskProblems(problems=problems, judge=judge)


def judge(given: TaskAnswer) -> Judgement:
    return Judgement("right" if given.text.strip() == given.problem.answer else "wrong")
"""
"""A task whose judge begins in line 13 of its file."""


def custom_task(folder, body=TASK, **settings):
    """Settings of the task `mine` in a new file of the folder."""
    written(folder, body, head="", file="my_ideas/tasks.py")
    return CustomTask(function="my_ideas.tasks:mine", folder=str(folder), **settings)


CURRICULUM = """\
import numpy as np
from scalerl.prompts.own_pool import CurriculumInputs, CurriculumOutputs


def mine(given: CurriculumInputs, *, floor=0.1):
    uncertain = given.pass_rate_N * (1 - given.pass_rate_N)
    return CurriculumOutputs(weight_N=np.where(given.groups_N > 0, uncertain + floor, 1.0))
"""
"""Draws unknown prompts, and those that are right half of the time."""
