"""Five steps with another generator, another channel, another evaluation in place of the built-in ones."""

import numpy as np
import pytest
import torch
from trainer.engines import LOGPROB, FolderChannel, ListGenerator
from trainer.tiny import generator_of, random_policy, tiny_recipe

from scalerl.cluster.virtual_cluster import VirtualCluster
from scalerl.evaluation.evaluator import samples_of
from scalerl.evaluation.held_out import HeldOutEvaluator
from scalerl.learner.torch_learner import TorchLearner
from scalerl.processes import WallCluster
from scalerl.prompts.mixed_pool import make_pool
from scalerl.recipe import ResolvedRecipe
from scalerl.schedules import SCHEDULES
from scalerl.tasks import make_tasks
from scalerl.tokens import SymbolTokenizer
from scalerl.tokens.symbols import END_THINK_ID, EOS_ID

TOKENIZER = SymbolTokenizer()
ANSWERS = [(END_THINK_ID, *TOKENIZER.encode(text), EOS_ID) for text in ("0", "1", "01", "2")]
"""Right for the prompts whose smallest symbols these are."""


def parts_of(recipe, policy):
    task = make_tasks(recipe.tasks, TOKENIZER)
    return {
        "recipe": recipe,
        "learner": TorchLearner(policy, recipe),
        "pool": make_pool(recipe, task, (0, 3)),
        "task": task,
        "rng": np.random.default_rng(0),
    }


@pytest.mark.parametrize("schedule", ["pipeline", "ppo_off_policy"])
def test_five_steps_on_answers_that_a_generator_reads_from_a_list(schedule):
    recipe = tiny_recipe(off_policy={"type": schedule, "k": 2}, zero_variance="keep", length_control={"type": "none"})
    policy, generator = random_policy(recipe), ListGenerator(ANSWERS)
    before = {name: tensor.clone() for name, tensor in policy.exported_weights().items()}
    cluster = VirtualCluster(generator=generator, off_clock=ListGenerator(ANSWERS), **parts_of(recipe, policy))
    steps = [SCHEDULES[schedule](cluster) for _ in range(5)]
    assert [step.version for step in steps] == list(range(5))
    for step in steps:
        for group in step.groups:
            for rollout, outcome in zip(group.rollouts, group.outcomes, strict=True):
                assert tuple(rollout.tokens.tolist()) in ANSWERS
                text = TOKENIZER.decode([token for token in rollout.tokens.tolist() if token != END_THINK_ID])
                assert outcome == ("right" if text == group.prompt.answer else "wrong")
                assert set(rollout.logprobs.tolist()) == {LOGPROB}
    assert any(group.pass_rate > 0 for step in steps for group in step.groups)
    after = policy.exported_weights()
    assert any(not torch.equal(after[name], tensor) for name, tensor in before.items())
    # What it was given last are the weights that the learner had at that version, under the names of the file.
    cluster.synchronise()
    assert generator.version == 5
    assert generator.weights == {name: float(tensor.double().sum()) for name, tensor in after.items()}


def test_an_evaluation_asks_the_cluster_for_samples_and_not_a_generator_of_its_own():
    recipe = tiny_recipe(length_control={"type": "none"})
    policy, off_clock = random_policy(recipe), ListGenerator([ANSWERS[0]])
    cluster = VirtualCluster(generator=ListGenerator(ANSWERS), off_clock=off_clock, **parts_of(recipe, policy))
    evaluator = HeldOutEvaluator(recipe=recipe, task=cluster.task, seed=0, start=policy)
    (row,) = evaluator.measure(cluster, 0)
    prompts = cluster.task.validation
    assert row["pass_rate"] == sum(prompt.answer == "0" for prompt in prompts) / len(prompts)
    assert row["num_samples"] == 2 * len(prompts)
    assert off_clock.weights == {
        name: float(tensor.double().sum()) for name, tensor in policy.exported_weights().items()
    }
    assert (cluster.clock.now, cluster.clock.tokens) == (0.0, 0)


class CountingEvaluator:
    """Counts the samples it is given."""

    def measure(self, sampler, index):
        finished = samples_of(self.recipe, sampler, self.prompts, 3, np.random.SeedSequence(index))
        return [{"task": "counted", "num_samples": len(finished)}]

    def __init__(self, recipe, prompts):
        self.recipe, self.prompts = recipe, prompts


def test_another_evaluation_measures_after_each_of_five_steps():
    recipe = tiny_recipe(zero_variance="keep")
    policy = random_policy(recipe)
    parts = parts_of(recipe, policy)
    slots = recipe.cluster.generators * recipe.cluster.slots
    cluster = VirtualCluster(
        generator=generator_of(recipe, parts["task"], policy, slots=slots),
        off_clock=generator_of(recipe, parts["task"], policy, slots=4),
        **parts,
    )
    evaluator, rows = CountingEvaluator(recipe, parts["task"].validation[:3]), []
    for index in range(5):
        SCHEDULES[recipe.off_policy.type](cluster)
        rows += evaluator.measure(cluster, index)
    assert rows == [{"task": "counted", "num_samples": 9}] * 5
    assert cluster.learner.version == 5


@pytest.mark.timeout(120)
def test_five_steps_with_weights_that_reach_generator_processes_through_a_folder(tmp_path):
    recipe = tiny_recipe(off_policy={"type": "ppo_off_policy", "k": 1}, zero_variance="keep").model_dump()
    recipe = ResolvedRecipe.model_validate(recipe | {"cluster": {"type": "wall", "generators": 2, "slots": 12}})
    policy = random_policy(recipe)
    parts = parts_of(recipe, policy)
    cluster = WallCluster(
        generators=[generator_of(recipe, parts["task"], policy, slots=12) for _ in range(2)],
        channel=FolderChannel(tmp_path / "weights"),
        off_clock=generator_of(recipe, parts["task"], policy, slots=12),
        **parts,
    )
    try:
        cluster.start()
        steps = [SCHEDULES["ppo_off_policy"](cluster) for _ in range(5)]
    finally:
        cluster.close()
    # Each step trains on what the weights of the step before generated: they went through the folder.
    stamped = [{int(v) for group in step.groups for r in group.rollouts for v in r.versions} for step in steps]
    assert stamped == [{0}, {1}, {2}, {3}, {4}]
    assert (tmp_path / "weights" / "4.version").read_text() == "4"
