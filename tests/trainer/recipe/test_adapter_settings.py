"""The setting `adapter`: identity, what a sweep varies, what is refused, and what a run with it costs."""

import re

import pytest
import yaml
from pydantic import ValidationError
from trainer.tiny_adapter import adapted_policy, adapted_recipe
from trainer.tiny_text_model import text_model

from ablations.errors import FileError, Place
from ablations.study.expand import expand
from ablations.study.override import overrides_from, vary_recipe
from scalerl.cluster.cost import cost_model, forward_flops, training_flops
from scalerl.memory.forecast import PromptLengths, peak_memory
from scalerl.memory.per_device import trainer_device
from scalerl.memory.shape import ModelShape, shape_of, usual_layers
from scalerl.model.size import ModelSize
from scalerl.recipe import ResolvedRecipe, Scale, Virtual
from scalerl.recipe.models import linear_layers

PROMPTS = PromptLengths(trained=20, measured=30, most_samples=64)
HERE = Place(source="sweeps/test.yaml", line=7, key="variants.a")


@pytest.fixture(scope="module")
def qwen(tmp_path_factory):
    return text_model(tmp_path_factory.mktemp("model") / "qwen", hidden=32)


def test_no_adapter_leaves_a_run_its_name_and_every_setting_of_one_gives_it_another(qwen):
    none = {"adapter": {"type": "none"}}
    assert ResolvedRecipe.model_validate(none).identity(0) == ResolvedRecipe().identity(0)
    settings = [{}, {"rank": 8}, {"alpha": 16.0}, {"targets": ["q_proj"]}]
    assert len({adapted_recipe(qwen, each).identity(0) for each in settings}) == len(settings)
    ways = [["q_proj", "v_proj"], ["v_proj", "q_proj", "v_proj"]]
    assert len({adapted_recipe(qwen, {"targets": way}).identity(0) for way in ways}) == 1


def test_a_sweep_varies_the_rank_and_takes_the_adapter_away(qwen):
    base = adapted_recipe(qwen)
    recipes = [vary_recipe(base, overrides_from({"adapter.rank": rank}, HERE))[0] for rank in (2, 8)]
    assert [recipe.adapter.rank for recipe in recipes] == [2, 8]
    assert [recipe.adapter.alpha for recipe in recipes] == [base.adapter.alpha] * 2
    assert [adapted_policy(recipe).size.trained_parameters for recipe in recipes] == [2 * 1024, 8 * 1024]
    whole, _ = vary_recipe(base, overrides_from({"adapter.type": "none"}, HERE))
    assert whole.adapter.type == "none"
    with pytest.raises(FileError, match="rank"):
        vary_recipe(whole, overrides_from({"adapter.rank": 8}, HERE))


def test_a_sweep_file_has_the_rank_as_an_axis_and_names_the_line_of_a_wrong_target(tmp_path, qwen):
    settings = adapted_recipe(qwen).model_dump(mode="json", include={*Scale.model_fields} - {"device"})
    scale, sweep = tmp_path / "scale.yaml", tmp_path / "sweep.yaml"
    scale.write_text(yaml.safe_dump(settings))
    head = f"name: ranks\nreference: scalerl\nscale: {scale}\n"
    sweep.write_text(f"{head}grid: {{adapter.rank: [2, 4, 8]}}\nvariants: {{whole: {{adapter.type: none}}}}\n")
    study = expand(sweep)
    assert [variant.recipe.adapter.type for variant in study.variants] == ["lora", "lora", "lora", "none"]
    assert sorted(variant.recipe.adapter.rank for variant in study.variants[:3]) == [2, 4, 8]
    sweep.write_text(f"{head}variants: {{few: {{adapter.targets: [query]}}}}\n")
    with pytest.raises(FileError, match=r"sweep.yaml:4: variants.few.adapter.targets: .*'query'.* are down_proj, gate"):
        expand(sweep)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"adapter": {"type": "lora", "rank": 0}}, "greater than or equal to 1"),
        ({"adapter": {"type": "lora", "alpha": 0}}, "greater than 0"),
        ({"adapter": {"type": "lora", "targets": []}}, "at least 1 item"),
        ({"adapter": {"type": "none", "rank": 8}}, "Extra inputs are not permitted"),
        ({"adapter": {"type": "dora"}}, "'none', 'lora'"),
        (
            {"adapter": {"type": "lora", "targets": ["q_proj", "query", "lm_head"]}},
            r"adapter\.targets: the model has no linear layer 'lm_head', 'query' that .* its linear layers are "
            r"down_proj, gate_proj, k_proj, o_proj, q_proj, up_proj, v_proj",
        ),
        ({"model": {"type": "llama"}}, "model.type is 'llama', made from scratch; use model type 'pretrained'"),
        ({"critic": {"type": "value_network", "value_clip": None}}, "use critic type 'none', or adapter type 'none'"),
    ],
)
def test_what_an_adapter_cannot_be_is_refused_with_what_it_can(qwen, changes, message):
    with pytest.raises(ValidationError, match=message):
        ResolvedRecipe.model_validate({**adapted_recipe(qwen).model_dump(mode="json"), **changes})


def test_a_size_is_known_before_the_model_is_loaded(qwen):
    for adapter in ({}, {"targets": ["q_proj", "v_proj"]}):
        recipe = adapted_recipe(qwen, adapter)
        found, policy = shape_of(recipe.model, recipe.adapter), adapted_policy(recipe)
        assert found.size == policy.size
        assert found.adapter_parameters == policy.size.trained_parameters


def test_the_layers_of_a_model_whose_folder_is_elsewhere_are_those_of_a_llama_of_its_sizes(qwen):
    short = {re.sub(r"model\.|self_attn\.|mlp\.", "", name): size for name, size in linear_layers(qwen).items()}
    assert usual_layers(shape_of(adapted_recipe(qwen).model)) == short


def test_gradients_and_moments_that_are_forecast_are_those_of_the_adapter(qwen):
    with_adapter = adapted_recipe(qwen)
    whole = ResolvedRecipe.model_validate({**with_adapter.model_dump(mode="json"), "adapter": {"type": "none"}})
    shape = shape_of(with_adapter.model, with_adapter.adapter)
    (ours,), (theirs,) = (peak_memory(recipe, PROMPTS).processes for recipe in (with_adapter, whole))
    size = 4 * shape.adapter_parameters
    assert (ours.parts["gradients"], ours.parts["Adam"]) == (size, 2 * size)
    assert ours.parts["weights"] == theirs.parts["weights"] + size
    # Copies share the model's own weights.
    assert (ours.parts["generator's weights"], ours.parts["weights of the start"]) == (size, 0)
    device = trainer_device(with_adapter, shape, PROMPTS)
    assert (device.parts["gradients"], device.parts["AdamW"]) == (size, 2 * size)
    assert device.parts["weights"] == 4 * shape.parameters + size


def test_the_model_itself_has_no_weight_gradients_to_pay_for():
    shape = ModelShape(
        parameters=10**9, active_parameters=10**9, vocabulary=1000, hidden=64, layers=2, heads=4, kv_heads=2,
        head_size=16, mlp=96, is_built_in=False, adapter_parameters=10**6,
    )  # fmt: skip
    size, cluster = shape.size, Virtual()
    assert training_flops(size, 10, 100) == 10 * (4 * 1_001_000_000 + 2 * 10**6) + 100 * 12 * size.attention_width
    whole = ModelSize(
        parameters=size.parameters, active_parameters=size.active_parameters, attention_width=size.attention_width,
        cache_width=size.cache_width,
    )  # fmt: skip
    assert training_flops(whole, 10, 100) == 3 * forward_flops(whole, 10, 100)
    ours, theirs = cost_model(cluster, size), cost_model(cluster, whole)
    assert ours.train_token_s / theirs.train_token_s == pytest.approx((4 * 1.001e9 + 2e6) / (6 * 1.001e9))
    assert ours.push_s / theirs.push_s == pytest.approx(1 / 1001)
    assert ours.decode_sequence_s == theirs.decode_sequence_s
