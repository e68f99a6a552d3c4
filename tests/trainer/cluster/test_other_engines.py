"""Steps with another generator and another store in place of the built-in ones."""

from functools import partial

import numpy as np
import pytest
import torch
from trainer.engines import LOGPROB, DamagingStore, ListGenerator
from trainer.tiny import random_policy, tiny_recipe
from trainer.wall import take_steps, versions_of, wall_cluster, wall_recipe

from scalerl.cluster.virtual_cluster import VirtualCluster
from scalerl.errors import Interrupted
from scalerl.evaluation.drift import policy_drift
from scalerl.evaluation.held_out import HeldOutEvaluator
from scalerl.learner.torch_learner import TorchLearner
from scalerl.prompts.mixed_pool import make_pool
from scalerl.schedules import SCHEDULES
from scalerl.tasks import all_tasks
from scalerl.tokens import SymbolTokenizer
from scalerl.tokens.symbols import END_THINK_ID, EOS_ID

TOKENIZER = SymbolTokenizer()
ANSWERS = [(END_THINK_ID, *TOKENIZER.encode(text), EOS_ID) for text in ("0", "1", "01", "2")]
"""Right for the prompts whose smallest symbols these are."""


def parts_of(recipe, policy):
    task = all_tasks(recipe.tasks, (), TOKENIZER).trained
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
    evaluator = HeldOutEvaluator(recipe=recipe, task=cluster.task, seed=0, drift=partial(policy_drift, start=policy))
    (row,) = evaluator.measure(cluster, 0)
    prompts = cluster.task.validation
    assert row["pass_rate"] == sum(prompt.answer == "0" for prompt in prompts) / len(prompts)
    assert row["num_samples"] == 2 * len(prompts)
    assert off_clock.weights == {
        name: float(tensor.double().sum()) for name, tensor in policy.exported_weights().items()
    }
    assert (cluster.clock.now, cluster.clock.tokens) == (0.0, 0)


def damaged_cluster(schedule, folder, damaged):
    """A generator process of twelve slots, one step off policy; these publications are damaged on their way."""
    recipe = wall_recipe(off_policy={"type": schedule, "k": 1}, zero_variance="keep")
    policy = random_policy(recipe)
    return wall_cluster(recipe, policy, DamagingStore(folder, policy.exported_weights(), damaged=damaged))


def test_a_torn_publication_is_refused_and_published_again_while_generators_decode_with_the_weights_they_have(tmp_path):
    with damaged_cluster("ppo_off_policy", tmp_path / "weights", {2, 3}) as cluster:
        steps = take_steps(cluster, 4)
    assert [versions_of(step) for step in steps] == [{0}, {1}, {2}, {3}]
    assert cluster.generators.newest.publication == 5
    refused = sorted(line.split(":")[0] for line in cluster.news)
    assert refused == [f"generator {n} rejected the new weights and kept version 1" for n in (0, 0)]
    assert all("0-of-1.safetensors of publication" in line for line in cluster.news)


def test_tokens_between_a_refusal_and_the_next_publication_are_those_of_the_weights_of_before(tmp_path):
    with damaged_cluster("pipeline", tmp_path / "weights", range(2, 40, 2)) as cluster:
        steps = take_steps(cluster, 12)
    assert [step.version for step in steps] == list(range(12))
    assert all(step.version - min(versions_of(step)) <= 1 for step in steps)
    # Twelve steps publish twelve times at least, every other time damaged, and the last need not have been seen.
    assert len(cluster.news) >= 5


def test_a_run_whose_weights_are_refused_again_and_again_ends_with_the_reason(tmp_path):
    with damaged_cluster("ppo_off_policy", tmp_path / "weights", range(2, 99)) as cluster:
        for _ in range(2):
            SCHEDULES["ppo_off_policy"](cluster)
        with pytest.raises(Interrupted, match=r"^generator 0 rejected 3 publications in a row: .* publication 4 has"):
            SCHEDULES["ppo_off_policy"](cluster)
        assert cluster.generator_version == 1
