"""The policy is the Llama that `transformers` loads, and its head has one precision everywhere."""

import json

import numpy as np
import pytest
import torch
from trainer.tiny import random_policy, tiny_recipe

from scalerl.tokens.symbols import EOS_ID, VOCABULARY_SIZE, SymbolTokenizer

SHAPE = {"hidden": 48, "layers": 3, "heads": 4, "mlp": 40}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A policy and the folder it was saved to."""
    folder = tmp_path_factory.mktemp("model")
    policy = random_policy(tiny_recipe(model=SHAPE))
    policy.save(folder, eos_token_id=EOS_ID)
    SymbolTokenizer().save(folder)
    return policy, folder


def test_logits_equal_those_of_transformers(saved):
    from transformers import LlamaForCausalLM

    policy, folder = saved
    llama = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    tokens = torch.from_numpy(np.random.default_rng(0).integers(VOCABULARY_SIZE, size=(5, 33)))
    with torch.no_grad():
        ours, theirs = policy.logits(policy.hidden(tokens)), llama(tokens).logits
    assert theirs.std() > 1  # far from a flat output, on which everything would agree
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_the_configuration_is_that_which_transformers_writes(saved, tmp_path):
    from transformers import LlamaConfig

    written = LlamaConfig(
        architectures=["LlamaForCausalLM"], vocab_size=VOCABULARY_SIZE, hidden_size=48, intermediate_size=40,
        num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=4, max_position_embeddings=4096,
        rms_norm_eps=1e-6, rope_parameters={"rope_type": "default", "rope_theta": 10000.0}, tie_word_embeddings=False,
        bos_token_id=None, eos_token_id=EOS_ID, pad_token_id=0,
    )  # fmt: skip
    written.save_pretrained(tmp_path)
    theirs = json.loads((tmp_path / "config.json").read_text())
    ours = json.loads((saved[1] / "config.json").read_text())
    assert ours == {name: value for name, value in theirs.items() if name != "transformers_version"}


def test_token_logprobs_are_those_of_the_shifted_softmax():
    policy = random_policy(tiny_recipe(model=SHAPE))
    tokens = torch.tensor([[3, 14, 15, 9, 2, 6]])
    scores = policy.score(tokens, 0.7)
    logprobs, entropy = scores.logprobs_BT, scores.entropy_BT
    logits = policy.logits(policy.hidden(tokens))[0].double() / 0.7
    assert (logprobs[0, 0], entropy[0, 0]) == (0, 0)
    for t in range(1, 6):
        distribution = logits[t - 1].exp() / logits[t - 1].exp().sum()
        assert logprobs[0, t].item() == pytest.approx(distribution[tokens[0, t]].log().item(), abs=1e-5)
        assert entropy[0, t].item() == pytest.approx(-(distribution * distribution.log()).sum().item(), abs=1e-5)


def test_padding_does_not_change_what_stands_before_it():
    policy = random_policy(tiny_recipe(model=SHAPE))
    row = torch.tensor([[3, 14, 15, 9]])
    padded = torch.tensor([[3, 14, 15, 9, 0, 0, 0], [5, 5, 5, 5, 5, 5, 5]])
    alone, together = policy.score(row, 1.0).logprobs_BT, policy.score(padded, 1.0).logprobs_BT
    torch.testing.assert_close(together[0, :4], alone[0], rtol=1e-5, atol=1e-6)


def test_the_bf16_head_rounds_what_the_fp32_head_does_not():
    exact, rounded = (random_policy(tiny_recipe(model=SHAPE, logits=logits)) for logits in ("fp32", "bf16"))
    hidden = exact.hidden(torch.tensor([[3, 14, 15, 9]]))
    fp32, bf16 = exact.logits(hidden), rounded.logits(hidden)
    assert fp32.dtype == bf16.dtype == torch.float32
    # BF16 keeps 8 bits: the product of rounded factors, itself rounded.
    by_hand = (hidden.bfloat16().double() @ exact.head.bfloat16().double().T).bfloat16().float()
    torch.testing.assert_close(bf16, by_hand, rtol=2**-7, atol=1e-3)
    assert torch.equal(bf16, bf16.bfloat16().float())
    assert 1e-4 < (fp32 - bf16).abs().max() < 0.2


@pytest.mark.parametrize("change", ["in place", "other memory"])
def test_a_decode_step_uses_the_weights_of_its_time(change):
    policy = random_policy(tiny_recipe())
    tokens, position = torch.tensor([3, 5]), torch.tensor([0, 0])
    cache = policy.new_cache(slots=2, positions=4)
    with torch.inference_mode():
        before = cache.logits(tokens, position)
    with torch.no_grad():
        for block in policy.layers():
            if change == "in place":
                block.gate_up.mul_(2.0)
            else:
                block.gate_up = torch.nn.Parameter(block.gate_up * 2.0)
    with torch.inference_mode():
        after = cache.logits(tokens, position)
        expected = policy.new_cache(slots=2, positions=4).logits(tokens, position)
    torch.testing.assert_close(after, expected, rtol=0, atol=0)
    assert (after - before).abs().max() > 1e-3


@torch.inference_mode()
def test_a_cache_goes_on_when_kernels_can_no_longer_read_the_weights():
    policy = random_policy(tiny_recipe())
    policies = policy, random_policy(tiny_recipe())
    caches = [one.new_cache(slots=40, positions=9) for one in policies]
    tokens = torch.arange(36) % 20
    for step in range(6):
        if step in (2, 4):  # a view of other memory, as a sharding engine leaves it, and back
            for block in policy.layers():
                turned = block.gate_up.t().contiguous().t() if step == 2 else block.gate_up.contiguous()
                block.gate_up = torch.nn.Parameter(turned, requires_grad=False)
        changed, steady = (one.logits((tokens + step) % 20, torch.full((36,), step)) for one in caches)
        assert [one.is_in_lanes for one in caches] == [step not in (2, 3), True]
        torch.testing.assert_close(changed, steady, rtol=1e-5, atol=1e-5)
        assert steady.std() > 0.1
