"""Compiled hidden states and gradients of the built-in policy, against a float64 loop over sequences."""

import numpy as np
import pytest
import torch

from scalerl.model.llama import Llama
from scalerl.model.llama_files import RMS_EPS, ROPE_BASE
from scalerl.model.packing import Packing
from scalerl.model.policy import Precision
from scalerl.recipe import LlamaModel

VOCABULARY = 23
SHAPES = [LlamaModel(hidden=64, layers=4, heads=2, mlp=192), LlamaModel(hidden=24, layers=2, heads=3, mlp=20)]


def policy_of(shape):
    policy, generator = Llama(shape, VOCABULARY, torch.device("cpu")), torch.Generator().manual_seed(1)
    policy.init_weights(generator)
    with torch.no_grad():
        for name, parameter in policy.named_parameters():
            if "norm" in name:
                parameter.normal_(1.0, 0.3, generator=generator)
    return policy


def in_float64(policy, sequences):
    """Hidden states of each sequence by itself, and a copy of the weights that they depend on."""
    weights = {name: one.detach().double().requires_grad_() for name, one in policy.named_parameters()}
    shape = policy.shape
    size = shape.hidden // shape.heads

    def norm(x, weight):
        return x / (x.square().mean(-1, keepdim=True) + RMS_EPS).sqrt() * weight

    def turned(x):
        angle = torch.arange(len(x))[:, None] * torch.tensor([ROPE_BASE ** (-2 * i / size) for i in range(size // 2)])
        even, odd = x[:, 0::2], x[:, 1::2]
        real, imaginary = even * angle.cos() - odd * angle.sin(), even * angle.sin() + odd * angle.cos()
        return torch.stack((real, imaginary), dim=-1).flatten(1)

    def states(tokens):
        x = weights["embedding"][tokens]
        for layer in range(shape.layers):
            own = {name.split(".")[2]: one for name, one in weights.items() if name.startswith(f"blocks.{layer}.")}
            heads = (norm(x, own["attention_norm"]) @ own["qkv"].T).chunk(shape.heads, dim=1)
            attended = []
            for head in heads:
                q, k, v = head.chunk(3, dim=1)
                scores = turned(q) @ turned(k).T / size**0.5
                later = torch.ones_like(scores, dtype=torch.bool).triu(1)
                attended.append(scores.masked_fill(later, -torch.inf).softmax(-1) @ v)
            x = x + torch.cat(attended, dim=1) @ own["out"].T
            gate, up = (norm(x, own["mlp_norm"]) @ own["gate_up"].T).chunk(2, dim=1)
            x = x + (gate * gate.sigmoid() * up) @ own["down"].T
        return norm(x, weights["norm"])

    return [states(tokens) for tokens in sequences], weights


def assert_close(policy, ours, theirs, weights):
    """States and, from a weighted sum of them, gradients agree to 1e-5 of the largest."""
    factor = torch.randn(ours.shape, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(ours.double(), theirs, rtol=0, atol=1e-5 * float(theirs.detach().abs().max()))
    policy.zero_grad(set_to_none=True)
    (ours * factor).sum().backward()
    (theirs * factor.double()).sum().backward()
    for name, parameter in policy.named_parameters():
        expected = weights[name].grad
        if name == "head":
            assert parameter.grad is None
            continue
        error = (parameter.grad.double() - expected).abs().max()
        assert error <= 1e-5 * expected.abs().max(), (name, float(error), float(expected.abs().max()))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_row_with_shared_prompts_agrees_with_float64(shape):
    policy, rng = policy_of(shape), np.random.default_rng(3)
    group = np.repeat(np.arange(40), 5)
    prompt = np.repeat(rng.integers(1, 12, 40), 5)
    length = prompt + rng.integers(0, 10, len(group))  # some answers are empty
    order = rng.permutation(len(group))  # groups need not be side by side
    group, prompt, length = group[order], prompt[order], length[order]
    tokens = torch.from_numpy(rng.integers(0, VOCABULARY, (len(group), length.max())))
    for one in range(40):
        rows = np.flatnonzero(group == one)
        tokens[rows, : prompt[rows[0]]] = tokens[rows[0], : prompt[rows[0]]].clone()
    packing = Packing.with_shared_prompts(*(torch.from_numpy(part) for part in (length, prompt, group)))
    ours = policy.packed_states(packing.packed(tokens), packing).hidden
    assert len(ours) > 1024, "rows of several products of a weight's gradient"
    theirs, weights = in_float64(policy, [row[:n] for row, n in zip(tokens, length, strict=True)])
    padded = torch.nn.utils.rnn.pad_sequence(theirs, batch_first=True)
    assert_close(policy, ours, packing.packed(padded), weights)


@pytest.mark.parametrize("shape", SHAPES)
def test_long_sequences_agree_with_float64(shape):
    policy, rng = policy_of(shape), np.random.default_rng(4)
    lengths = torch.tensor([150, 1, 64, 65])  # queries are attended 64 at once
    tokens = torch.from_numpy(rng.integers(0, VOCABULARY, (4, 150)))
    packing = Packing.of(lengths)
    theirs, weights = in_float64(policy, [row[:n] for row, n in zip(tokens, lengths.tolist(), strict=True)])
    assert_close(policy, policy.packed_states(packing.packed(tokens), packing).hidden, torch.cat(theirs), weights)


@pytest.mark.parametrize("shape", SHAPES)
def test_padded_rows_agree_with_float64(shape):
    policy, rng = policy_of(shape), np.random.default_rng(5)
    tokens = torch.from_numpy(rng.integers(0, VOCABULARY, (7, 19)))
    theirs, weights = in_float64(policy, list(tokens))
    assert_close(policy, policy.states(tokens).hidden, torch.stack(theirs), weights)


def test_the_same_pass_twice_gives_the_same_bits_and_without_a_gradient_too():
    policy = policy_of(SHAPES[0])
    tokens = torch.arange(60).view(4, 15) % VOCABULARY
    results = []
    for _ in range(2):
        policy.zero_grad(set_to_none=True)
        states = policy.states(tokens).hidden
        states.square().sum().backward()
        results.append([states.detach(), *(one.grad for one in policy.parameters() if one.grad is not None)])
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))
    with torch.no_grad():
        assert torch.equal(policy.states(tokens).hidden, results[0][0])


def test_only_a_first_gradient_exists_and_only_once():
    policy = policy_of(SHAPES[1])
    states = policy.states(torch.arange(12).view(2, 6)).hidden
    with pytest.raises(RuntimeError, match="first gradient only"):
        torch.autograd.grad(states.square().sum(), policy.norm, create_graph=True)
    states = policy.states(torch.arange(12).view(2, 6)).hidden.sum()
    states.backward()
    with pytest.raises(RuntimeError, match="second time"):
        states.backward()


def test_a_nan_stays_in_its_sequence_and_reaches_the_gradient():
    policy = policy_of(SHAPES[1])
    with torch.no_grad():
        policy.embedding[3] = torch.nan
    states = policy.states(torch.tensor([[1, 3, 5], [1, 2, 5]])).hidden
    assert states[0, 1:].isnan().all()
    assert states[1].isfinite().all()
    states.sum().backward()
    gradient = next(policy.layers()).qkv.grad
    assert gradient is not None
    assert gradient.isnan().any()


def test_a_token_outside_the_vocabulary_is_refused():
    with pytest.raises(IndexError, match="index out of range"):
        policy_of(SHAPES[1]).states(torch.tensor([[1, VOCABULARY]]))


def test_kernels_compute_plain_fp32_weights_with_nothing_attached():
    policy = policy_of(SHAPES[1])
    assert policy.is_plain
    hook = policy.blocks[1].register_forward_pre_hook(lambda module, inputs: None)
    assert not policy.is_plain
    hook.remove()
    assert policy.is_plain
    policy.recompute = True
    assert not policy.is_plain
    policy.recompute = False
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert not policy.is_plain
    assert not policy_of(SHAPES[1]).to(torch.bfloat16).is_plain
    rounded = Precision(weights=torch.float32, products=torch.bfloat16, head=torch.float32)
    assert not Llama(SHAPES[1], VOCABULARY, torch.device("cpu"), rounded).is_plain


def test_both_paths_agree_with_each_other(monkeypatch):
    policy = policy_of(SHAPES[0])
    tokens = torch.arange(120).view(6, 20) % VOCABULARY
    found = []
    for is_plain in (True, False):
        monkeypatch.setattr(Llama, "is_plain", is_plain)
        policy.zero_grad(set_to_none=True)
        states = policy.states(tokens).hidden
        states.square().sum().backward()
        found.append([states.detach(), *(one.grad for one in policy.parameters() if one.grad is not None)])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5 * float(theirs.abs().max()))
