"""Five steps with another generator, another store, another evaluation in place of the built-in ones."""

from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
import torch
from trainer.engines import LOGPROB, DamagingStore, ListGenerator
from trainer.tiny import generator_of, maker_of, random_policy, tiny_recipe

from scalerl.cluster.virtual_cluster import VirtualCluster
from scalerl.errors import Interrupted
from scalerl.evaluation.drift import PolicyDrift
from scalerl.evaluation.evaluator import samples_of
from scalerl.evaluation.held_out import HeldOutEvaluator
from scalerl.learner.torch_learner import TorchLearner
from scalerl.processes import GeneratorWork, LocalLauncher, WallCluster, local_units
from scalerl.prompts.mixed_pool import make_pool
from scalerl.recipe import ResolvedRecipe
from scalerl.schedules import SCHEDULES
from scalerl.tasks import all_tasks
from scalerl.tokens import SymbolTokenizer
from scalerl.tokens.symbols import END_THINK_ID, EOS_ID
from scalerl.weights.folder import FolderStore

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
    evaluator = HeldOutEvaluator(
        recipe=recipe, task=cluster.task, seed=0, drift=PolicyDrift(recipe=recipe, start=policy)
    )
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


@contextmanager
def wall_cluster(schedule, store_of, generators=1):
    """Generator processes of twelve slots, one step off policy; `store_of` makes the store from the first weights."""
    recipe = tiny_recipe(off_policy={"type": schedule, "k": 1}, zero_variance="keep").model_dump()
    recipe = ResolvedRecipe.model_validate(
        recipe | {"cluster": {"type": "wall", "generators": generators, "slots": 12}}
    )
    policy = random_policy(recipe)
    parts = parts_of(recipe, policy)
    store = store_of(policy.exported_weights())
    cluster = WallCluster(
        launcher=LocalLauncher(),
        units=local_units(recipe),
        work=GeneratorWork(maker=maker_of(recipe, parts["task"], policy), store=store, threads=1),
        off_clock=generator_of(recipe, parts["task"], policy, slots=12),
        **parts,
    )
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()


def versions_of(step):
    return {int(version) for group in step.groups for one in group.rollouts for version in one.versions}


@pytest.mark.timeout(120)
def test_five_steps_with_weights_that_reach_generator_processes_through_a_folder(tmp_path):
    folder = tmp_path / "weights"
    with wall_cluster("ppo_off_policy", partial(FolderStore, folder), generators=2) as cluster:
        steps = [SCHEDULES["ppo_off_policy"](cluster) for _ in range(5)]
        assert sorted(path.name for path in folder.iterdir()) == ["3", "4"]
    # Each step trains on what the weights of the step before generated: they went through the folder.
    assert [versions_of(step) for step in steps] == [{0}, {1}, {2}, {3}, {4}]
    assert cluster.news == []
    assert not folder.exists()


@pytest.mark.timeout(120)
def test_a_torn_publication_is_refused_and_published_again_while_generators_decode_with_the_weights_they_have(tmp_path):
    with wall_cluster("ppo_off_policy", partial(DamagingStore, tmp_path / "weights", damaged={2, 3})) as cluster:
        steps = [SCHEDULES["ppo_off_policy"](cluster) for _ in range(4)]
    assert [versions_of(step) for step in steps] == [{0}, {1}, {2}, {3}]
    assert cluster.publication == 5
    refused = sorted(line.split(":")[0] for line in cluster.news)
    assert refused == [f"generator {n} rejected the new weights and kept version 1" for n in (0, 0)]
    assert all("0-of-1.safetensors of publication" in line for line in cluster.news)


@pytest.mark.timeout(120)
def test_tokens_between_a_refusal_and_the_next_publication_are_those_of_the_weights_of_before(tmp_path):
    with wall_cluster("pipeline", partial(DamagingStore, tmp_path / "weights", damaged=range(2, 40, 2))) as cluster:
        steps = [SCHEDULES["pipeline"](cluster) for _ in range(12)]
    assert [step.version for step in steps] == list(range(12))
    assert all(step.version - min(versions_of(step)) <= 1 for step in steps)
    # Twelve steps publish twelve times at least, every other time damaged, and the last need not have been seen.
    assert len(cluster.news) >= 5


@pytest.mark.timeout(120)
def test_a_run_whose_weights_are_refused_again_and_again_ends_with_the_reason(tmp_path):
    with wall_cluster("ppo_off_policy", partial(DamagingStore, tmp_path / "weights", damaged=range(2, 99))) as cluster:
        for _ in range(2):
            SCHEDULES["ppo_off_policy"](cluster)
        with pytest.raises(Interrupted, match=r"^generator 0 rejected 3 publications in a row: .* publication 4 has"):
            SCHEDULES["ppo_off_policy"](cluster)
        assert cluster.generator_version == 1
