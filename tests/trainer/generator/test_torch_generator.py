"""The built-in generator alone: sampling, limits, versions, state; `test_conformance.py` has what all generators do."""

import io
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from trainer.tiny import fixed_policy, make_prompt, random_policy, tiny_recipe

from scalerl.errors import Diverged
from scalerl.generator.make import draw_cuts
from scalerl.generator.random_numbers import draw_seeds
from scalerl.generator.request import NEVER, Request
from scalerl.generator.torch_generator import TorchGenerator
from scalerl.model.build import new_policy
from scalerl.recipe import Generation
from scalerl.tokens.symbols import END_THINK_ID, EOS_ID, SymbolTokenizer

RECIPE = tiny_recipe(model={"hidden": 24, "layers": 2, "heads": 3, "mlp": 24})
LIMITS = Generation(thinking=12, answer=5)
PHRASE = (20, 21, END_THINK_ID)


def make_generator(policy, *, slots=5, limits=LIMITS, phrase=(END_THINK_ID,)):
    generator = TorchGenerator(
        new_policy(RECIPE),
        limits,
        SymbolTokenizer(),
        slots=slots,
        max_prompt=9,
        phrase=phrase,
    )
    generator.set_weights(policy.exported_weights(), version=0)
    return generator


def lively_policy(seed):
    """A random policy that ends sequences about one time in eight, so that lengths are uneven."""
    policy = random_policy(RECIPE, seed)
    with torch.no_grad():
        policy.head[EOS_ID] = policy.head[4:40].mean(0) + 2 * policy.head[EOS_ID]
    return policy


def many_requests(count, seed=0, cut=False):
    """Groups of three rollouts on prompts of one to nine tokens."""
    rng = np.random.default_rng(seed)
    requests = []
    for number in range(count // 3):
        prompt = make_prompt(f"p{number}", tuple(rng.integers(4, 40, size=1 + number % 9).tolist()))
        cuts = rng.integers(1, 13, size=3) if cut else [NEVER] * 3
        seeds = draw_seeds(rng, 3)
        requests += [Request(prompt=prompt, group=number, index=i, seed=seeds[i], cut=int(cuts[i])) for i in range(3)]
    return requests


def run(generator, requests, *, chunk=4, between=None):
    """Submit `chunk` requests at a time while decoding; `between(step)` runs before every decode step."""
    waiting, finished, step = list(requests), [], 0
    while waiting or generator.busy:
        if step % 2 == 0:
            generator.submit(waiting[:chunk])
            waiting = waiting[chunk:]
        if between:
            between(step)
        finished += generator.step()[0]
        step += 1
    return finished


def forward_logprobs(policy, rollout, temperature=1.0):
    tokens = torch.tensor([[*rollout.prompt.tokens, *rollout.tokens.tolist()]])
    with torch.no_grad():
        return policy.score(tokens, temperature).logprobs_BT[0, len(rollout.prompt.tokens) :].numpy()


def test_behaviour_logprobs_equal_a_forward_pass_of_the_finished_sequence_at_its_temperature():
    policy, temperature = lively_policy(0), 0.7
    limits = LIMITS.model_copy(update={"temperature": temperature})
    finished = run(make_generator(policy, limits=limits), many_requests(60))
    lengths = Counter(len(one.rollout.tokens) for one in finished)
    assert len(lengths) > 8
    for one in finished:
        np.testing.assert_allclose(
            one.rollout.logprobs, forward_logprobs(policy, one.rollout, temperature), rtol=0, atol=1e-5
        )


def test_a_step_says_how_much_work_it_was():
    generator = make_generator(fixed_policy(RECIPE, {5: 0.0}), slots=3)
    prompt = make_prompt("p", (6, 4, 7, 2))
    generator.submit([Request(prompt=prompt, group=0, index=i, seed=i) for i in range(4)])
    work = [generator.step()[1] for _ in range(2)]
    assert [(w.sequences, w.prefill_tokens, w.context_tokens) for w in work] == [(3, 4, 12), (3, 0, 15)]


def test_sampled_frequencies_match_the_softmax():
    logits = {5: 0.0, 6: 1.0, 7: -1.5, 8: 0.5, 9: -3.0}
    expected = {token: np.exp(logit / 0.8) for token, logit in logits.items()}
    total = sum(expected.values())
    policy = fixed_policy(RECIPE, logits)
    limits = Generation(thinking=20, answer=20, temperature=0.8)
    generator = make_generator(policy, slots=200, limits=limits)
    generator.submit([Request(prompt=make_prompt("p"), group=0, index=i, seed=i) for i in range(600)])
    rollouts = []
    while generator.busy:
        rollouts += [one.rollout for one in generator.step()[0]]
    drawn = np.concatenate([rollout.tokens for rollout in rollouts])
    counts = Counter(drawn.tolist())
    assert set(counts) == set(logits)
    assert len(drawn) == 600 * 41
    share = [expected[token] / total for token in logits]
    assert chisquare([counts[token] for token in logits], [p * len(drawn) for p in share]).pvalue > 0.01
    # Neighbouring rows and neighbouring tokens are drawn independently of each other.
    together = Counter(pair for rollout in rollouts for pair in pairwise(rollout.tokens.tolist()))
    table = [together[a, b] for a in logits for b in logits]
    assert chisquare(table, [p * q * sum(table) for p in share for q in share]).pvalue > 0.01
    logprob = dict(zip(logits, np.log(share), strict=True))
    np.testing.assert_allclose(rollouts[0].logprobs, [logprob[t] for t in rollouts[0].tokens], atol=1e-5)


def test_another_seed_gives_another_rollout():
    prompt = make_prompt("p")
    requests = [Request(prompt=prompt, group=0, index=i, seed=seed) for i, seed in enumerate((5, 5, 6))]
    policy = fixed_policy(RECIPE, dict.fromkeys(range(5, 37), 0.0))  # never ends: 12 + 5 tokens of 32 equal ones
    finished = run(make_generator(policy), requests)
    first, again, other = sorted(finished, key=lambda one: one.request.index)
    assert first.rollout.tokens.tolist() == again.rollout.tokens.tolist()
    assert first.rollout.tokens.tolist() != other.rollout.tokens.tolist()


# --- ends -----------------------------------------------------------------------------------------------------------


def test_an_end_of_sequence_is_kept_and_is_not_a_truncation_even_at_the_limit():
    policy = fixed_policy(RECIPE, {5: 0.0, EOS_ID: -2.0})
    finished = run(make_generator(policy, slots=50), many_requests(600))
    assert {len(one.rollout.tokens) for one in finished} == set(range(1, 19))
    for one in finished:
        tokens = one.rollout.tokens.tolist()
        assert EOS_ID not in tokens[:-1]
        assert one.rollout.truncated == (tokens[-1] != EOS_ID)
        assert one.rollout.truncated <= (len(tokens) == 18)


# --- interruptions --------------------------------------------------------------------------------------------------


def test_cuts_are_uniform_between_the_earliest_and_the_whole_budget():
    interrupted = tiny_recipe(length_control={"type": "interruption", "earliest": 0.5}, generation={"thinking": 8})
    counts = Counter(draw_cuts(interrupted, np.random.default_rng(0), 5000))
    assert set(counts) == {4, 5, 6, 7, 8}
    assert chisquare([counts[cut] for cut in range(4, 9)]).pvalue > 0.01
    penalised = tiny_recipe(length_control={"type": "penalty"})
    assert draw_cuts(penalised, np.random.default_rng(0), 2) == [NEVER] * 2


# --- weights that change between decode steps -----------------------------------------------------------------------


def test_the_generator_keeps_its_own_copy_of_the_weights():
    policy = lively_policy(0)
    generator = make_generator(policy)
    expected = [one.rollout.logprobs for one in run(make_generator(policy), many_requests(6))]
    with torch.no_grad():
        policy.head.zero_()
    finished = run(generator, many_requests(6))
    assert all(np.array_equal(a.rollout.logprobs, b) for a, b in zip(finished, expected, strict=True))


def test_a_generator_that_decodes_the_learner_sees_its_weights_at_once_and_copies_nothing():
    moved, learner = lively_policy(1), lively_policy(0)
    generator = TorchGenerator(learner, LIMITS, SymbolTokenizer(), slots=5, max_prompt=9, decodes_learner=True)
    learner.load_state_dict(moved.state_dict())
    generator.set_weights({}, version=7)  # what it is given does not matter: the policy has it
    finished = run(generator, many_requests(6))
    expected = run(make_generator(moved), many_requests(6))
    for ours, theirs in zip(finished, expected, strict=True):
        assert np.array_equal(ours.rollout.logprobs, theirs.rollout.logprobs)
        assert set(ours.rollout.versions.tolist()) == {7}


# --- state ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stop", [1, 13])
def test_a_generator_goes_on_bit_for_bit_where_its_state_was_taken(stop):
    policies = [lively_policy(seed) for seed in range(2)]
    generator = make_generator(policies[0], phrase=PHRASE)
    generator.submit(many_requests(30, cut=True))
    for step in range(stop):
        if step == 4:
            generator.set_weights(policies[1].exported_weights(), version=1)
        generator.step()
    assert generator.active > 1
    assert generator.waiting
    file = io.BytesIO()
    torch.save(generator.state_dict(), file)
    file.seek(0)
    other = make_generator(lively_policy(9), phrase=PHRASE)
    other.submit(many_requests(9))
    other.step()
    other.load_state_dict(torch.load(file, weights_only=False))
    while generator.busy or other.busy:
        if generator.version < 2 and not generator.waiting:
            for one in (generator, other):
                one.set_weights(policies[0].exported_weights(), version=2)
        (ours, our_work), (theirs, their_work) = generator.step(), other.step()
        assert our_work == their_work
        assert [one.request for one in ours] == [one.request for one in theirs]
        for a, b in zip(ours, theirs, strict=True):
            assert a.rollout.truncated == b.rollout.truncated
            for name in ("tokens", "logprobs", "versions", "forced"):
                np.testing.assert_array_equal(getattr(a.rollout, name), getattr(b.rollout, name))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_no_numbers_end_as_diverged(value):
    policy = random_policy(RECIPE, 0)
    with torch.no_grad():
        policy.head[7] = value
    generator = make_generator(policy)
    generator.submit(many_requests(3))
    with pytest.raises(Diverged, match=r"probabilities are NaN; use a smaller optimiser.learning_rate"):
        generator.step()
