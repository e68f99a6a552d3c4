"""Weights travel under the names of the model's file, and come back as they were."""

import re

import pytest
import torch
from safetensors.torch import load_file
from trainer.tiny import random_policy, tiny_recipe
from trainer.tiny_transformers import CONFIGS, CPU, make_folder

from scalerl.model import transformers_weights
from scalerl.model.build import new_policy
from scalerl.model.policy import Policy
from scalerl.model.transformers_load import empty
from scalerl.model.transformers_policy import TransformersPolicy

SHAPE = {"hidden": 48, "layers": 3, "heads": 4, "mlp": 40}


def built_in(_) -> tuple[Policy, Policy]:
    recipe = tiny_recipe(model=SHAPE)
    return random_policy(recipe), new_policy(recipe)


def of_family(name):
    def make(folder) -> tuple[TransformersPolicy, TransformersPolicy]:
        make_folder(folder / "theirs", CONFIGS[name])
        policy, other = empty(CONFIGS[name], CPU), empty(CONFIGS[name], CPU)
        policy.load_weights(folder / "theirs")
        return policy, other

    return make


POLICIES = {"built in": built_in, **{name: of_family(name) for name in CONFIGS}}


@pytest.fixture(params=list(POLICIES))
def pair(request, tmp_path):
    """A policy with random weights and another of the same model whose weights are all 7."""
    policy, other = POLICIES[request.param](tmp_path)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.fill_(7.0)
    return policy, other


def same(ours, theirs):
    assert ours.keys() == theirs.keys()
    return all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())


def test_exported_weights_are_those_of_the_file(pair, tmp_path):
    policy, _ = pair
    policy.save(tmp_path / "saved", eos_token_id=1)
    assert same(policy.exported_weights(), load_file(tmp_path / "saved" / "model.safetensors"))


def test_imported_weights_are_the_exported_ones_to_the_bit(pair):
    policy, other = pair
    assert not same(policy.state_dict(), other.state_dict())
    other.import_weights(policy.exported_weights())
    assert same(policy.state_dict(), other.state_dict())


def test_a_tied_head_is_exported_once_and_stays_tied():
    policy, other = empty(CONFIGS["qwen2"], CPU), empty(CONFIGS["qwen2"], CPU)
    policy.init_weights(torch.Generator().manual_seed(0))
    assert "lm_head.weight" not in policy.exported_weights()
    other.import_weights(policy.exported_weights())
    embedding = other.exported_weights()["model.embed_tokens.weight"]
    assert other.head_weights()[0].data_ptr() == embedding.data_ptr()
    assert torch.equal(other.head_weights()[0], policy.head_weights()[0])


def test_the_library_imports_what_it_does_not_export_as_views(tmp_path, monkeypatch):
    policy, other = of_family("mixtral")(tmp_path)
    exported = transformers_weights.exported
    weights = exported(policy.model)

    def copies(model):
        return {name: tensor.clone() for name, tensor in exported(model).items()}

    monkeypatch.setattr(transformers_weights, "exported", copies)
    other.import_weights(weights)
    assert same(other.state_dict(), policy.state_dict())


def test_weights_that_do_not_fit_are_refused_by_name(pair):
    policy, other = pair
    weights = policy.exported_weights()
    norm = "model.norm.weight"
    del weights["model.layers.0.input_layernorm.weight"]
    weights["extra"] = torch.zeros(2)
    (width,) = weights[norm].shape
    weights[norm] = torch.zeros(5)
    before = {name: tensor.clone() for name, tensor in other.state_dict().items()}
    refusal = (
        "these weights: tensors do not fit this model: missing: model.layers.0.input_layernorm.weight; "
        "unexpected: extra; "
        f"of another shape: {norm} ([5] instead of [{width}])"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(refusal)}$"):
        other.import_weights(weights)
    assert same(other.state_dict(), before)
