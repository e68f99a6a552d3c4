"""A policy without memory has the shapes of its model, and its weights come one by one from the model's file."""

import re
from typing import Any

import pytest
import torch
from torch import nn
from trainer.model.test_exported_weights import POLICIES, SHAPE, same
from trainer.tiny import tiny_recipe
from trainer.tiny_transformers import CONFIGS, CPU

from scalerl.learner.saved_pieces import by_layer, kept_buffers
from scalerl.model import transformers_weights
from scalerl.model.build import new_policy
from scalerl.model.outline import PolicyParts, outline_of, set_parameters
from scalerl.model.transformers_load import empty
from scalerl.weights.hugging_face import FileWeights


def outlined(name):
    if name == "built in":
        return new_policy(tiny_recipe(model=SHAPE), outline=True)
    return empty(CONFIGS[name], CPU, outline=True)


@pytest.fixture(params=list(POLICIES))
def pair(request, tmp_path):
    """A policy whose weights lie in the folder `saved`, and the outline of its model."""
    policy, _ = POLICIES[request.param](tmp_path)
    policy.save(tmp_path / "saved", eos_token_id=1)
    return policy, outlined(request.param)


def test_an_outline_has_no_number_but_those_of_buffers(pair):
    policy, outline = pair
    shapes = {name: tuple(parameter.shape) for name, parameter in policy.named_parameters()}
    assert {name: tuple(parameter.shape) for name, parameter in outline.named_parameters()} == shapes
    assert all(parameter.is_meta for parameter in outline.parameters())
    assert outline.size == policy.size
    kept = dict(kept_buffers(policy))
    ours = {name: buffer for name, buffer in outline.named_buffers() if name not in kept}
    assert same(ours, {name: buffer for name, buffer in policy.named_buffers() if name not in kept})


def test_every_tensor_comes_from_the_file_as_the_whole_model_has_it(pair, tmp_path):
    policy, outline = pair
    parts = PolicyParts(outline, FileWeights(tmp_path / "saved"), "policy.")
    for name, tensor in policy.state_dict().items():
        if "lm_head" in name and name not in dict(policy.named_parameters()):
            continue  # tied: it is asked for under its other name
        found = parts.read(f"policy.{name}", 0, tensor.numel())
        assert torch.equal(found.view(tensor.shape), tensor), name
        assert torch.equal(parts.read(f"policy.{name}", 1, 3), tensor.flatten()[1:3])


def test_what_is_exported_layer_by_layer_is_what_the_whole_exports(pair):
    policy, outline = pair
    found = {}
    for layer in by_layer(policy):
        found |= outline.exported_part({name: parameter.detach() for name, parameter in layer})
    found |= outline.exported_part(dict(kept_buffers(policy)))
    assert same(found, policy.exported_weights())


def test_where_only_the_library_knows_the_way_it_converts_once(tmp_path, monkeypatch):
    policy, _ = POLICIES["mixtral"](tmp_path)
    weights, exported, converted = policy.exported_weights(), transformers_weights.exported, []
    whole = transformers_weights.converted
    monkeypatch.setattr(
        transformers_weights,
        "exported",
        lambda *given: {name: tensor.clone() for name, tensor in exported(*given).items()},
    )
    monkeypatch.setattr(transformers_weights, "converted", lambda *given: converted.append(1) or whole(*given))
    imported = outlined("mixtral").importer(weights)
    for name, tensor in policy.named_parameters():
        assert torch.equal(imported(name), tensor), name
    assert converted == [1]


@pytest.mark.parametrize(
    ("lost", "asked", "said"),
    [
        ("model.layers.1.input_layernorm.weight", "model.layers.1.input_layernorm.weight", "missing: {asked}"),
        ("model.layers.0.block_sparse_moe.experts.2.w2.weight", "model.layers.0.mlp.experts.down_proj", "of another "),
    ],
)
def test_weights_that_are_not_all_there_are_refused_where_the_library_would_draw_the_rest(lost, asked, said, tmp_path):
    policy, _ = POLICIES["mixtral"](tmp_path)
    weights = policy.exported_weights()
    del weights[lost]
    imported = outlined("mixtral").importer(weights)
    with pytest.raises(ValueError, match=re.escape(said.format(asked=asked))):
        imported(f"model.{asked}")


def test_shared_parameters_stay_shared_in_a_copy_and_when_they_are_set():
    network = nn.Module()
    network.one, network.two = nn.Linear(3, 4), nn.Linear(3, 4)
    network.two.weight = network.one.weight
    outline: Any = outline_of(network)
    assert outline.one.weight is outline.two.weight
    assert outline.one.weight.is_meta
    value = nn.Parameter(torch.ones(4, 3))
    set_parameters(outline, {"one.weight": value})
    assert outline.one.weight is value
    assert outline.two.weight is value
    assert outline.one.bias.is_meta
