"""Peak memory that is foretold, against what is known of the parts."""

import pytest
import torch
from places import REPOSITORY
from trainer.tiny import tiny_recipe
from trainer.tiny_text_model import text_model
from trainer.tiny_transformers import CONFIGS, make_folder

from scalerl.memory.forecast import PromptLengths, cache_row, evaluation_rows, peak_memory
from scalerl.memory.shape import ModelShape, num_stored, shape_of
from scalerl.model.build import empty_policy
from scalerl.model.transformers_policy import TransformersPolicy
from scalerl.recipe import LlamaModel, MoeModel, PretrainedModel, ResolvedRecipe

LLAMA_8B = ModelShape(
    parameters=8_030_261_248, active_parameters=8_030_261_248, vocabulary=128_256, hidden=4096, layers=32, heads=32,
    kv_heads=8, head_size=128, mlp=14_336, is_built_in=False,
)  # fmt: skip
CPU = torch.device("cpu")
PROMPTS = PromptLengths(trained=20, measured=30, most_samples=64)


def wall_recipe(**cluster):
    settings = tiny_recipe().model_dump(mode="json") | {"cluster": {"type": "wall", "slots": 4, **cluster}}
    return ResolvedRecipe.model_validate(settings)


def test_a_model_made_from_scratch_has_as_many_numbers_as_its_policy():
    for model in (LlamaModel(), MoeModel(experts=4, experts_per_token=2)):
        policy = empty_policy(model, CPU)
        assert shape_of(model).parameters == policy.num_parameters()
        assert shape_of(model).active_parameters == policy.size.active_parameters


def test_a_folder_has_as_many_numbers_as_the_policy_made_of_it(tmp_path):
    model = PretrainedModel(path=str(text_model(tmp_path / "text")))
    assert shape_of(model).parameters == empty_policy(model, CPU).num_parameters()
    for name, config in CONFIGS.items():
        policy = make_folder(tmp_path / name, config)
        # DeepSeek-V3 stores the biases of its router, which no optimiser moves.
        stored = {key: tensor for key, tensor in policy.named_buffers() if key in policy.state_dict()}
        kept = [*policy.parameters(), *stored.values()]
        assert num_stored(tmp_path / name) == sum(tensor.numel() for tensor in kept)
        if not stored:
            found = shape_of(PretrainedModel(path=str(tmp_path / name), path_sha256="0" * 64))
            assert found.active_parameters == TransformersPolicy(policy).size.active_parameters, name


def test_a_generator_of_the_wall_clock_is_a_process_of_its_own():
    recipe = wall_recipe(generators=3)
    trainer, generators = peak_memory(recipe, PROMPTS).processes
    assert (trainer.count, generators.count) == (1, 3)
    assert peak_memory(recipe, PROMPTS).total == trainer.total + 3 * generators.total
    assert "Adam" in trainer.parts
    assert "Adam" not in generators.parts


@pytest.mark.parametrize("learner", [{"type": "torch"}, {"type": "fsdp", "ranks": 2}])
def test_two_publications_are_counted_on_the_first_node_and_on_every_other(learner):
    recipe = ResolvedRecipe.model_validate(wall_recipe().model_dump(mode="json") | {"learner": learner})
    forecast = peak_memory(recipe, PROMPTS)
    assert forecast.agent.parts["weights under way"] == 2 * 4 * shape_of(recipe.model).parameters
    assert forecast.processes[0].parts["weights under way"] == forecast.agent.parts["weights under way"]
    assert forecast.total == sum(process.count * process.total for process in forecast.processes)
    assert peak_memory(tiny_recipe(), PROMPTS).agent is None


def test_a_sharded_learner_is_a_coordinator_and_ranks_that_share_what_adam_keeps():
    learner = {"type": "deepspeed", "zero": 2, "ranks": 4}
    recipe = ResolvedRecipe.model_validate(wall_recipe(generators=3).model_dump(mode="json") | {"learner": learner})
    coordinator, ranks, generators = peak_memory(recipe, PROMPTS).processes
    assert (coordinator.count, ranks.count, generators.count) == (1, 4, 3)
    weights = peak_memory(wall_recipe(), PROMPTS).processes[0].parts["weights"]
    assert "Adam" not in coordinator.parts
    assert ranks.parts["Adam"] == 2 * weights // 4
    assert ranks.parts["weights"] == weights + weights // 4
    virtual = tiny_recipe(learner={"type": "deepspeed", "zero": 3, "ranks": 4})
    player, trainers = peak_memory(virtual, PROMPTS).processes
    assert (player.count, trainers.count) == (1, 4)
    assert trainers.parts["gradients"] == weights // 4
    assert player.parts["generator's weights"] == weights
    assert "generator's weights" not in trainers.parts


def test_an_evaluation_decodes_no_more_rows_than_it_samples_nor_than_fit():
    def rows(samples, prompt=200, **changes):
        recipe = ResolvedRecipe.model_validate({"generation": {"thinking": 12_288, "answer": 2_048}, **changes})
        lengths = PromptLengths(trained=100, measured=prompt, most_samples=samples)
        return evaluation_rows(recipe, LLAMA_8B, lengths)

    # Llama 3 8B caches 2 x 32 layers x 8 heads x 128 numbers a token, 14,537 tokens a row: 3.6 GiB in FP32
    assert cache_row(ResolvedRecipe(), LLAMA_8B, 1) == 2 * 32 * 8 * 128 * 4
    assert rows(16_000) == 12  # as one generator of the paper's cluster
    assert rows(5) == 5
    short = {"generation": {"thinking": 6, "answer": 5}, "parameters": "bf16"}
    assert rows(16_000, prompt=116, **short) == 2**31 // (128 * 131_072) == 128
    assert rows(16_000, prompt=20, **short) == 512


@pytest.mark.studies
def test_the_forecast_is_within_a_fifth_of_what_a_process_holds(monkeypatch):
    monkeypatch.syspath_prepend(REPOSITORY / "benchmarks")
    import memory_forecast

    sizes = {"hidden_size": 256, "num_hidden_layers": 2, "intermediate_size": 704, "vocab_size": 8_192}
    assert memory_forecast.measured(sizes)["ratio"] == pytest.approx(1.0, abs=0.2)
