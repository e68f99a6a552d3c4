"""A policy with an adapter: what it computes, what of it is trained, and what leaves the process."""

import pytest
import torch
from torch.nn.utils.parametrize import register_parametrization
from trainer.learner_cases import gradients, random_groups
from trainer.tiny_adapter import adapted_policy, adapted_recipe
from trainer.tiny_text_model import text_model
from trainer.tiny_transformers import CONFIGS, CPU, make_folder

from scalerl.learner.batch import make_batch
from scalerl.learner.torch_learner import TorchLearner
from scalerl.model.adapter import AdaptedPolicy
from scalerl.model.adapter_weights import MergedWeights, is_of_adapter
from scalerl.model.build import empty_policy, with_adapter
from scalerl.model.policy import frozen_copy
from scalerl.recipe import Lora, PretrainedModel
from scalerl.recipe.models import linear_layers
from scalerl.weights.hugging_face import FileWeights

TOKENS = torch.arange(24).view(2, 12)


@pytest.fixture(scope="module")
def qwen(tmp_path_factory):
    return text_model(tmp_path_factory.mktemp("model") / "qwen", hidden=32)


@pytest.mark.parametrize("name", CONFIGS)
def test_every_family_computes_the_sum_of_weights_and_adapter(tmp_path, name):
    folder, settings = tmp_path / "model", Lora(rank=4)
    make_folder(folder, CONFIGS[name])
    model = PretrainedModel(path=str(folder), path_sha256="0" * 64)
    policy = with_adapter(empty_policy(model, CPU), settings)
    assert isinstance(policy, AdaptedPolicy)
    policy.load_weights(folder)
    # The headers of the files name the same layers as the model in memory.
    assert {layer for layer, _ in policy.adapted_layers()} == set(linear_layers(folder))
    plain = empty_policy(model, CPU)
    plain.load_weights(folder)
    with torch.no_grad():
        assert torch.equal(policy.score(TOKENS, 1.0).logprobs_BT, plain.score(TOKENS, 1.0).logprobs_BT)
        generator = torch.Generator().manual_seed(1)
        drawn = policy.initial_adapter(generator)
        policy.import_weights({key: torch.randn(one.shape, generator=generator) / 10 for key, one in drawn.items()})
        ours = policy.score(TOKENS, 1.0).logprobs_BT
        assert float((ours - plain.score(TOKENS, 1.0).logprobs_BT).abs().max()) > 0.1
        assert torch.equal(policy.start_policy().score(TOKENS, 1.0).logprobs_BT, plain.score(TOKENS, 1.0).logprobs_BT)
        policy.save_weights(tmp_path / "merged")
        merged = MergedWeights(FileWeights(folder), policy.exported_weights(), settings)
        plain.import_weights({key: merged[key] for key in plain.exported_weights()})
        torch.testing.assert_close(plain.score(TOKENS, 1.0).logprobs_BT, ours, rtol=0, atol=1e-4)
        plain.load_weights(tmp_path / "merged")
        torch.testing.assert_close(plain.score(TOKENS, 1.0).logprobs_BT, ours, rtol=0, atol=1e-4)


class Sum(torch.nn.Module):
    """W + factor B A in place of W."""

    def __init__(self, up, down, factor):
        super().__init__()
        self.up, self.down, self.factor = torch.nn.Parameter(up), torch.nn.Parameter(down), factor

    def forward(self, weight):
        return weight + self.factor * self.up @ self.down


@pytest.mark.parametrize("packing", ["none", "sequences"])
def test_the_gradient_of_the_adapter_is_that_of_a_sum_written_out_by_hand(qwen, packing):
    recomputed = packing == "sequences"
    recipe = adapted_recipe(qwen, optimiser={"packing": packing, "gradient_checkpointing": recomputed})
    policy = adapted_policy(recipe, std=0.2)
    by_hand = empty_policy(recipe.model, CPU)
    by_hand.load_weights(qwen)
    sums, weights = {}, policy.exported_weights()
    for name, _ in policy.adapted_layers():
        of_adapter = {part: weights[f"base_model.model.{name}.lora_{part}.weight"].clone() for part in "AB"}
        sums[name] = Sum(of_adapter["B"], of_adapter["A"], 8.0 / 4)
        register_parametrization(by_hand.model.get_submodule(name), "weight", sums[name])
    groups = random_groups(policy)
    for one in (policy, by_hand):
        learner = TorchLearner(one, recipe)
        batch = make_batch(groups)
        learner.accumulate(batch, learner.advantages(groups, batch))
    assert len(sums) == 14
    ours = gradients(policy)
    for name, one in sums.items():
        for part, theirs in (("A", one.down), ("B", one.up)):
            assert float(theirs.grad.abs().max()) > 1e-3
            found = ours[f"model.{name}.lora_{part}.default.weight"]
            torch.testing.assert_close(found, theirs.grad, rtol=0, atol=1e-6)


def test_only_the_adapter_has_gradients_and_moments_and_changes(qwen):
    recipe = adapted_recipe(qwen, kl={"coefficient": 0.1})
    policy = adapted_policy(recipe)
    before = {name: tensor.clone() for name, tensor in policy.state_dict().items()}
    learner = TorchLearner(policy, recipe)
    for _ in range(2):
        assert not learner.step(random_groups(policy)).metrics["skipped"]
    assert all((parameter.grad is not None) == is_of_adapter(name) for name, parameter in policy.named_parameters())
    assert all(torch.equal(tensor, before[name]) != is_of_adapter(name) for name, tensor in policy.state_dict().items())
    number = sum(parameter.numel() for name, parameter in policy.named_parameters() if is_of_adapter(name))
    state = learner.state_dict()
    moments = [value for one in state["adam"]["state"].values() for key, value in one.items() if key != "step"]
    assert sum(tensor.numel() for tensor in state["policy"].values()) == number
    assert sum(tensor.numel() for tensor in moments) == 2 * number
    # The reference is the model without the adapter, so a checkpoint does without it.
    assert learner.reference is not None
    assert state.keys() == {"policy", "adam", "version", "bad_steps", "loss_scale", "statistics", "critic"}


def test_copies_share_the_weights_that_are_never_trained_and_no_others(qwen):
    policy = adapted_policy(adapted_recipe(qwen))
    copy = frozen_copy(policy)
    for (name, ours), theirs in zip(policy.named_parameters(), copy.parameters(), strict=True):
        assert (ours.data_ptr() == theirs.data_ptr()) != is_of_adapter(name)
    own = {parameter.data_ptr() for parameter in policy.parameters()}
    assert all(parameter.data_ptr() in own for parameter in policy.start_policy().parameters())


@pytest.mark.parametrize("parameters", ["mixed", "bf16", "fp16"])
def test_in_every_precision_copies_decode_what_the_learner_scores(qwen, parameters):
    policy = adapted_policy(adapted_recipe(qwen, parameters=parameters))
    with torch.no_grad():
        ours = policy.score(TOKENS, 1.0).logprobs_BT
        assert torch.equal(frozen_copy(policy).score(TOKENS, 1.0).logprobs_BT, ours)
    types = {parameter.dtype for parameter in policy.parameters()}
    assert types == {torch.bfloat16 if parameters == "bf16" else torch.float32}


def test_an_adapter_on_some_layers_is_on_those_of_every_block(qwen):
    policy = adapted_policy(adapted_recipe(qwen, {"targets": ["v_proj", "q_proj"]}))
    layers = {name for name, _ in policy.adapted_layers()}
    assert layers == {f"model.layers.{block}.self_attn.{name}" for block in (0, 1) for name in ("q_proj", "v_proj")}
