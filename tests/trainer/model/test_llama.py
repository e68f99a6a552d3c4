"""The policy is the Llama that `transformers` loads, and its head has one precision everywhere."""

import json
from typing import Any

import numpy as np
import pytest
import torch
from trainer.tiny import generator_of, random_policy, tiny_recipe

from scalerl.generator.request import Request
from scalerl.model.build import new_policy
from scalerl.tasks import make_task
from scalerl.tokens.symbols import EOS_ID, VOCABULARY, VOCABULARY_SIZE, SymbolTokenizer

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


def test_transformers_finds_every_weight_and_knows_every_one_it_finds(saved):
    from transformers import LlamaForCausalLM

    policy, folder = saved
    loaded: Any = LlamaForCausalLM.from_pretrained(folder, output_loading_info=True)
    llama, report = loaded
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    assert sum(p.numel() for p in llama.parameters()) == policy.num_parameters()


def test_the_number_of_parameters_is_llamas():
    # Embedding and head 48 x 48 each; per layer q, k, v, o 48 x 48 each, three mlp matrices 48 x 40, two norms; a norm.
    policy = new_policy(tiny_recipe(model=SHAPE))
    assert policy.num_parameters() == 2 * 48 * 48 + 3 * (4 * 48 * 48 + 3 * 48 * 40 + 2 * 48) + 48


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


def test_the_eos_token_is_written_where_transformers_looks(saved):
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(saved[1])
    assert (config.eos_token_id, config.pad_token_id, config.max_position_embeddings) == (EOS_ID, 0, 4096)


def test_the_tokenizer_encodes_as_ours(saved):
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(saved[1] / "tokenizer.json"))
    for text in ("3:k9a2", "0123456789:abcdefghijklmnopqrstuvwxyz", "z"):
        assert tuple(tokenizer.encode(text, add_special_tokens=False)) == SymbolTokenizer().encode(text)
    mixed = "3:k9a2<think>29a</think>a<eos>"
    ids = tokenizer.encode(mixed, add_special_tokens=False)
    assert [VOCABULARY[i] for i in ids] == [*"3:k9a2", "<think>", *"29a", "</think>", "a", "<eos>"]
    assert SymbolTokenizer().decode(ids) == mixed.removesuffix("<eos>")


def test_weights_come_back_as_they_were_saved(saved):
    policy, folder = saved
    again = new_policy(tiny_recipe(model=SHAPE))
    again.load_weights(folder)
    assert again.state_dict().keys() == policy.state_dict().keys()
    for name, tensor in policy.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor), name


def test_token_logprobs_are_those_of_the_shifted_softmax():
    policy = random_policy(tiny_recipe(model=SHAPE))
    tokens = torch.tensor([[3, 14, 15, 9, 2, 6]])
    logprobs, entropy = policy.token_logprobs(tokens, temperature=0.7)
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
    alone, together = policy.token_logprobs(row, 1.0)[0], policy.token_logprobs(padded, 1.0)[0]
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


def test_generator_and_trainer_share_the_heads_precision():
    gaps = {}
    for behaviour in ("fp32", "bf16"):
        recipe = tiny_recipe(logits=behaviour, length_control={"type": "none"})
        task = make_task(recipe.tasks[0], SymbolTokenizer())
        generator = generator_of(recipe, task, random_policy(recipe), slots=64)
        prompt = task.train[0]
        generator.submit([Request(prompt=prompt, group=0, index=i, seed=i) for i in range(64)])
        rollouts = []
        while generator.busy:
            rollouts += [finished.rollout for finished in generator.step()[0]]
        for ours in ("fp32", "bf16"):
            policy = random_policy(tiny_recipe(logits=ours))
            gap = []
            for rollout in rollouts:
                logprobs, _ = policy.token_logprobs(torch.tensor([[*prompt.tokens, *rollout.tokens.tolist()]]), 1.0)
                gap += (logprobs[0, len(prompt.tokens) :] - torch.from_numpy(rollout.logprobs)).abs().tolist()
            gaps[behaviour, ours] = sum(gap) / len(gap)
    assert gaps["fp32", "fp32"] < 1e-6
    # With BF16 on both sides only a hidden state whose last bit differs may fall on the other side of a rounding step.
    assert gaps["bf16", "bf16"] < gaps["bf16", "fp32"] / 10
    assert gaps["fp32", "bf16"] > 1e-3
    assert gaps["bf16", "fp32"] > 1e-3
