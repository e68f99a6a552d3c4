"""Models of other families are trained and decoded as `transformers` computes them, or refused."""

from typing import Any

import numpy as np
import pytest
import torch
from trainer.generator.test_torch_generator import many_requests, run
from trainer.learner_cases import assert_same_gradients, gradients
from trainer.tiny_transformers import CONFIGS, CPU, make_folder
from transformers import AutoModelForCausalLM, Gemma2Config, Gemma3TextConfig

from scalerl.generator.torch_generator import TorchGenerator
from scalerl.model.packing import Packing
from scalerl.model.policy import FP32
from scalerl.model.transformers_load import empty
from scalerl.recipe import Generation
from scalerl.tokens.symbols import END_THINK_ID, VOCABULARY_SIZE, SymbolTokenizer

DENSE, EXPERTS = ("qwen2", "mixtral")
TOKENS = torch.from_numpy(np.random.default_rng(0).integers(VOCABULARY_SIZE, size=(5, 17)))
LENGTHS = torch.tensor([17, 3, 9, 1, 12])


@pytest.fixture(scope="module", params=list(CONFIGS))
def family(request, tmp_path_factory):
    """A model as `transformers` has it, its folder, and our policy of it."""
    folder = tmp_path_factory.mktemp("family")
    theirs = make_folder(folder, CONFIGS[request.param])
    policy = empty(theirs.config, CPU)
    policy.load_weights(folder)
    return theirs, folder, policy


def loaded(folder, name, precision=FP32):
    theirs = make_folder(folder, CONFIGS[name])
    policy = empty(theirs.config, CPU, precision)
    policy.load_weights(folder)
    return policy


def make_generator(policy, *, slots=5, limits=None):
    own = empty(policy.config, CPU, policy.precision)
    generator = TorchGenerator(
        own,
        limits or Generation(thinking=12, answer=5),
        SymbolTokenizer(),
        slots=slots,
        max_prompt=9,
        phrase=(END_THINK_ID,),
    )
    generator.set_weights(policy.exported_weights(), version=0)
    return generator


def their_logprobs(model, rollout):
    """Of the rollout's tokens, by the library's own forward pass over prompt and answer."""
    tokens = torch.tensor([[*rollout.prompt.tokens, *rollout.tokens.tolist()]])
    with torch.no_grad():
        logprobs = model(tokens).logits[0, :-1].log_softmax(-1).gather(-1, tokens[0, 1:, None])[:, 0]
    return logprobs[len(rollout.prompt.tokens) - 1 :].numpy()


def test_logits_are_the_models_own(family):
    theirs, _, policy = family
    with torch.no_grad():
        ours, expected = policy.logits(policy.hidden(TOKENS)), theirs(TOKENS).logits
    assert expected.std() > 0.5
    torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-5)


def test_generated_logprobs_are_those_of_the_models_own_forward_pass(family):
    theirs, _, policy = family
    finished = run(make_generator(policy), many_requests(30, cut=True))
    assert len({len(one.rollout.tokens) for one in finished}) > 3
    for one in finished:
        own = ~one.rollout.forced
        expected = their_logprobs(theirs, one.rollout)[own]
        np.testing.assert_allclose(one.rollout.logprobs[own], expected, rtol=0, atol=2e-5)


def test_packed_rows_have_the_logprobs_and_gradients_of_padded_ones(family):
    _, _, policy = family
    both = []
    for packing in (None, Packing.of(LENGTHS)):
        policy.zero_grad(set_to_none=True)
        scores = policy.score(TOKENS, 0.9, length_B=LENGTHS, packing=packing, entropy_gradient=True)
        valid_BT = torch.arange(TOKENS.shape[1]) < LENGTHS[:, None]
        logprobs, entropy = (part * valid_BT for part in (scores.logprobs_BT, scores.entropy_BT))
        weight_BT = torch.linspace(-1, 1, TOKENS.numel()).view(TOKENS.shape)
        (weight_BT * (logprobs + 0.3 * entropy)).sum().div(LENGTHS.sum()).backward()  # the scale of an average
        both.append((logprobs.detach(), entropy.detach(), gradients(policy)))
    torch.testing.assert_close(both[1][0], both[0][0], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(both[1][1], both[0][1], rtol=1e-5, atol=1e-5)
    assert_same_gradients(both[1][2], both[0][2])


def test_answers_to_one_prompt_may_share_it(family):
    _, _, policy = family
    tokens, prompt_B, group_B = TOKENS.clone(), torch.tensor([3, 3, 3, 1, 1]), torch.tensor([0, 0, 0, 1, 1])
    tokens[1:3, :3], tokens[4, 0] = tokens[0, :3], tokens[3, 0]
    length_B, column_T = torch.tensor([17, 4, 9, 2, 12]), torch.arange(tokens.shape[1])
    answer_BT = (column_T >= prompt_B[:, None]) & (column_T < length_B[:, None])
    both = []
    for packing in (None, Packing.with_shared_prompts(length_B, prompt_B, group_B)):
        policy.zero_grad(set_to_none=True)
        logprobs = policy.score(tokens, 1.0, packing=packing).logprobs_BT[answer_BT]
        (logprobs * torch.linspace(-1, 1, len(logprobs))).sum().div(len(logprobs)).backward()
        both.append((logprobs.detach(), gradients(policy)))
    torch.testing.assert_close(both[1][0], both[0][0], rtol=1e-5, atol=1e-5)
    assert_same_gradients(both[1][1], both[0][1])


def test_a_saved_policy_is_the_model_that_transformers_loads(family, tmp_path):
    theirs, _, policy = family
    policy.save(tmp_path, eos_token_id=1)
    again = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert type(again) is type(theirs)
    state = again.state_dict()
    assert state.keys() == theirs.state_dict().keys()
    assert all(torch.equal(tensor, state[name]) for name, tensor in theirs.state_dict().items())
    tied = theirs.config.tie_word_embeddings
    head, embedding = policy.head_weights()[0], policy.model.get_input_embeddings().weight
    assert tied == (head is embedding)
    assert policy.num_parameters() == theirs.num_parameters()
    assert tied == (again.get_output_embeddings().weight is again.get_input_embeddings().weight)


def test_gradient_checkpointing_computes_layers_again_and_gives_the_same_gradients(family):
    _, _, policy = family
    results, calls = [], []
    attention = policy.model.base_model.layers[0].self_attn
    hook = attention.register_forward_hook(lambda *_: calls.append(policy.recompute))
    for recompute in (False, True):
        policy.recompute = recompute
        policy.zero_grad(set_to_none=True)
        scores = policy.score(TOKENS, 1.0, length_B=LENGTHS)
        loss = scores.logprobs_BT.sum() + (0 if scores.balance_B is None else scores.balance_B.sum())
        loss.backward()
        results.append(gradients(policy))
    hook.remove()
    policy.recompute = False
    assert calls == [False, True, True]
    for name, gradient in results[0].items():
        torch.testing.assert_close(results[1][name], gradient, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", [DENSE, EXPERTS])
def test_a_generator_goes_on_bit_for_bit_where_its_state_was_taken(tmp_path, name):
    policy = loaded(tmp_path, name)
    generator, other = make_generator(policy), make_generator(policy)
    generator.submit(many_requests(12))
    for _ in range(7):
        generator.step()
    other.load_state_dict(generator.state_dict())
    while generator.busy:
        for ours, theirs in zip(generator.step()[0], other.step()[0], strict=True):
            assert ours.request == theirs.request
            np.testing.assert_array_equal(ours.rollout.logprobs, theirs.rollout.logprobs)
    assert not other.busy


def test_active_parameters_leave_out_the_experts_a_token_does_not_see(tmp_path):
    size = loaded(tmp_path, "mixtral").size
    # Four experts of three matrices 16 x 24 in each of two layers, two of them idle.
    assert size.parameters - size.active_parameters == 2 * 2 * 3 * 16 * 24
    assert size.attention_width == 2 * 4 * 4
    assert size.cache_width == 2 * 2 * 2 * 4  # keys and values of two layers, two of the four heads, four numbers each


SIZES: dict[str, Any] = {
    "vocab_size": VOCABULARY_SIZE, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128,
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "named"),
    [
        (Gemma2Config(**SIZES, head_dim=4), "final_logit_softcapping"),
        (Gemma3TextConfig(**SIZES, head_dim=4, final_logit_softcapping=1.0), "final_logit_softcapping"),
    ],
)
def test_a_model_that_does_something_else_to_its_logits_is_refused(tmp_path, config, named):
    theirs = make_folder(tmp_path, config)
    with pytest.raises(
        ValueError, match=f"differ from the model's own by .*; {named} is not supported; supported families are Llama"
    ):
        empty(theirs.config, CPU).load_weights(tmp_path)


def test_more_positions_than_the_model_knows_are_refused(tmp_path):
    policy = loaded(tmp_path, DENSE)
    with pytest.raises(ValueError, match="up to 129 tokens, but qwen2 supports 128 positions"):
        policy.new_cache(slots=1, positions=129)


def test_sharded_weights_are_read(tmp_path):
    theirs = make_folder(tmp_path / "whole", CONFIGS["mixtral"])
    theirs.save_pretrained(tmp_path / "parts", max_shard_size="4KB")
    assert len(list((tmp_path / "parts").glob("*.safetensors"))) > 2
    policy = empty(theirs.config, CPU)
    policy.load_weights(tmp_path / "parts")
    with torch.no_grad():
        torch.testing.assert_close(policy.logits(policy.hidden(TOKENS)), theirs(TOKENS).logits, rtol=1e-5, atol=1e-5)
