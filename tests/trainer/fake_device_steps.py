"""Optimiser steps on the fake device beside the same on the CPU, as JSON: a process of its own, for PyTorch keeps the
device once it is registered.

    {"cispo": {"waits": ["batch_loss.on_the_host", ...], "columns": {"loss": [0.1, 0.1], ...}}, ...}
"""

import copy
import json
import sys

import torch
from trainer.fake_device import fake_device, on_device
from trainer.learner_cases import STEPS, policy_of, random_groups
from trainer.tiny import tiny_recipe

from scalerl.learner.torch_learner import TorchLearner


def faults():
    """What the device refuses and notes, each by a line that does it."""
    found = {}
    with fake_device() as waits:
        there = torch.ones(3).to("fakegpu")
        for name, wrong in {
            "mixed": lambda: there + torch.arange(3),
            "random": lambda: torch.rand(3, device="fakegpu"),
        }.items():
            try:
                wrong()
            except RuntimeError as error:
                found[name] = str(error)
        for name, waiting in {
            "item": lambda: there.sum().item(),
            "branch": lambda: bool((there > 0).any()),
            "boolean index": lambda: there[there > 0],
            "copy": lambda: there.cpu(),
            "into the host's": lambda: torch.zeros(3).copy_(there),
            "nonzero": lambda: there.nonzero(),
        }.items():
            waits.clear()
            waiting()
            found[name] = len(waits)
        waits.clear()
        there[torch.tensor([0, 2]).to("fakegpu")].mul_(2).sum()
        found["nothing"] = len(waits)
    return found


def step(name):
    """One step of a case on both devices."""
    recipe = tiny_recipe(**STEPS[name])
    policy = policy_of(recipe)
    groups, other = random_groups(policy), on_device(copy.deepcopy(policy))
    expected = TorchLearner(policy, recipe).step(groups).metrics
    with fake_device() as waits:
        learner = TorchLearner(other, recipe)
        waits.clear()
        found = learner.step(groups).metrics
        noted = list(waits)
    return {"waits": noted, "columns": {column: [found[column], value] for column, value in expected.items()}}


if __name__ == "__main__":
    torch.set_num_threads(1)
    json.dump({"faults": faults(), **{name: step(name) for name in STEPS}}, sys.stdout)
