"""Another learner in place of the built-in one: it trains nothing and counts, and its weights are its count."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from trainer.tiny import make_cluster, random_policy, tiny_recipe

from scalerl.durable import Part
from scalerl.learner.learner import Update
from scalerl.schedules import SCHEDULES
from scalerl.weights.store import WeightStore


class CountingLearner:
    """Every number of its weights is the number of steps taken."""

    policy = None

    def __init__(self, policy: Any, recipe: Any, *, origin: Any = None, engines: Any = None) -> None:
        self.version, self.tokens = 0, 0
        self.size = policy.size
        self.shapes = {name: tensor.shape for name, tensor in policy.exported_weights().items()}
        self.prompts: list[str] = []

    def step(self, groups: Any, compute_gpu_hours: float | None = None) -> Update:
        tokens = sum(len(one.prompt.tokens) + len(one.tokens) for group in groups for one in group.rollouts)
        self.prompts += [group.prompt.id for group in groups]
        self.version, self.tokens = self.version + 1, self.tokens + tokens
        return Update(trained_tokens=tokens, context_tokens=tokens, metrics={"loss": 0.0, "skipped": False})

    def weights(self) -> dict[str, torch.Tensor]:
        return {name: torch.full(shape, float(self.version)) for name, shape in self.shapes.items()}

    def publish(self, store: WeightStore, publication: int) -> None:
        store.publish(publication, self.version, self.weights())

    def save_model(self, folder: Path) -> None:
        save_file(self.weights(), folder / "model.safetensors")

    def write_kept(self, folder: Path) -> list[Part]:
        return []

    def state_dict(self) -> dict[str, Any]:
        return {"version": self.version, "tokens": self.tokens}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.version, self.tokens = state["version"], state["tokens"]

    def close(self) -> None:
        pass


def cluster_of(recipe):
    policy = random_policy(recipe)
    cluster = make_cluster(recipe, policy)
    learner = CountingLearner(policy, recipe)
    cluster.learner = learner
    return cluster, learner


@pytest.mark.parametrize("schedule", ["pipeline", "ppo_off_policy"])
def test_five_steps_with_a_learner_that_counts(schedule):
    recipe = tiny_recipe(off_policy={"type": schedule, "k": 2})
    cluster, learner = cluster_of(recipe)
    steps = [SCHEDULES[schedule](cluster) for _ in range(5)]
    assert [step.version for step in steps] == [0, 1, 2, 3, 4]
    assert learner.version == 5
    assert learner.prompts == [group.prompt.id for step in steps for group in step.groups]
    assert sum(step.update.trained_tokens for step in steps) == learner.tokens > 0
    # Generators decode with its count, once it has reached them.
    cluster.synchronise()
    assert cluster.generator.version == 5
    weights = cluster.generator.state_dict()["weights"]
    assert {float(x) for tensor in weights.values() for x in tensor.unique()} == {5.0}
