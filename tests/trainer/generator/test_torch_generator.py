"""The generator against a full forward pass, and against a naive decoder where weights change mid-sequence."""

import io
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from trainer.naive_llama import log_softmax, next_logits
from trainer.tiny import fixed_policy, make_prompt, random_policy, tiny_recipe

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
        return policy.token_logprobs(tokens, temperature)[0][0, len(rollout.prompt.tokens) :].numpy()


@pytest.mark.parametrize(("slots", "temperature"), [(1, 1.0), (5, 1.0), (5, 0.7), (64, 1.0)])
def test_behaviour_logprobs_equal_a_forward_pass_of_the_finished_sequence(slots, temperature):
    policy = lively_policy(0)
    limits = LIMITS.model_copy(update={"temperature": temperature})
    finished = run(make_generator(policy, slots=slots, limits=limits), many_requests(60))
    lengths = Counter(len(one.rollout.tokens) for one in finished)
    assert len(lengths) > 8
    for one in finished:
        np.testing.assert_allclose(
            one.rollout.logprobs, forward_logprobs(policy, one.rollout, temperature), rtol=0, atol=1e-5
        )


def test_every_request_is_answered_exactly_once():
    finished = run(make_generator(lively_policy(0)), many_requests(60))
    assert sorted((one.request.group, one.request.index) for one in finished) == [
        (group, index) for group in range(20) for index in range(3)
    ]
    assert all(one.rollout.prompt is one.request.prompt for one in finished)


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


def test_a_request_gets_the_same_rollout_from_any_generator_and_beside_any_others():
    requests = many_requests(60, cut=True)
    alone = run(make_generator(lively_policy(0), slots=1), requests)
    beside = run(make_generator(lively_policy(0), slots=64), requests[::-1], chunk=7)
    tokens = [
        {(one.request.group, one.request.index): one.rollout.tokens.tolist() for one in finished}
        for finished in (alone, beside)
    ]
    assert tokens[0] == tokens[1]


def test_another_seed_gives_another_rollout():
    prompt = make_prompt("p")
    requests = [Request(prompt=prompt, group=0, index=i, seed=seed) for i, seed in enumerate((5, 5, 6))]
    policy = fixed_policy(RECIPE, dict.fromkeys(range(5, 37), 0.0))  # never ends: 12 + 5 tokens of 32 equal ones
    finished = run(make_generator(policy), requests)
    first, again, other = sorted(finished, key=lambda one: one.request.index)
    assert first.rollout.tokens.tolist() == again.rollout.tokens.tolist()
    assert first.rollout.tokens.tolist() != other.rollout.tokens.tolist()


# --- ends -----------------------------------------------------------------------------------------------------------


def test_the_token_limit_truncates():
    finished = run(make_generator(fixed_policy(RECIPE, {5: 0.0})), many_requests(6))
    for one in finished:
        assert one.rollout.tokens.tolist() == [5] * 18  # 12 thinking + the end of thinking + 5 answer
        assert one.rollout.truncated


def test_the_answer_is_truncated_at_its_own_limit():
    generator = make_generator(fixed_policy(RECIPE, {5: 0.0, END_THINK_ID: -1.0}), slots=50)
    finished = run(generator, many_requests(300))
    thoughts = Counter()
    for one in finished:
        tokens = one.rollout.tokens.tolist()
        assert one.rollout.truncated
        if END_THINK_ID in tokens:
            thought = tokens.index(END_THINK_ID)
            thoughts[thought] += 1
            assert len(tokens) == min(18, thought + 1 + 5)
        else:
            assert len(tokens) == 18
    assert set(range(10)) <= set(thoughts)


def test_an_answer_that_ends_on_its_last_token_is_whole():
    policy = fixed_policy(RECIPE, {5: 0.0, END_THINK_ID: 0.0, EOS_ID: -1.5})
    finished = run(make_generator(policy, slots=50), many_requests(600))
    lengths = Counter()
    for one in finished:
        tokens = one.rollout.tokens.tolist()
        if END_THINK_ID in tokens[:12]:
            answer = tokens[tokens.index(END_THINK_ID) + 1 :]
            assert one.rollout.truncated == (answer[-1:] != [EOS_ID])
            lengths[len(answer), one.rollout.truncated] += 1
    assert set(lengths) == {(n, False) for n in range(1, 6)} | {(5, True)}


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


@pytest.mark.parametrize("phrase", [(END_THINK_ID,), PHRASE])
def test_the_phrase_is_forced_at_the_cut_and_the_answer_follows(phrase):
    generator = make_generator(fixed_policy(RECIPE, {5: 0.0}), phrase=phrase)
    prompt = make_prompt("p")
    cuts = [1, 4, 7, 12, NEVER]
    generator.submit([Request(prompt=prompt, group=0, index=i, seed=i, cut=cut) for i, cut in enumerate(cuts)])
    finished = []
    while generator.busy:
        finished += generator.step()[0]
    limit = 12 + len(phrase) + 5  # of all tokens; the answer alone has 5
    for one in finished:
        cut = one.request.cut
        if cut == NEVER:
            assert one.rollout.tokens.tolist() == [5] * limit
            assert not one.rollout.forced.any()
            continue
        assert one.rollout.tokens.tolist() == [5] * cut + [*phrase] + [5] * 5
        assert np.flatnonzero(one.rollout.forced).tolist() == list(range(cut, cut + len(phrase)))
        assert (one.rollout.logprobs[one.rollout.forced] == 0).all()


@pytest.mark.parametrize("phrase", [(END_THINK_ID,), PHRASE])
def test_an_interrupted_sequence_is_conditioned_on_the_forced_phrase(phrase):
    policy = lively_policy(0)
    finished = run(make_generator(policy, phrase=phrase), many_requests(60, cut=True))
    interrupted = [one for one in finished if one.rollout.forced.any()]
    assert 10 < len(interrupted) < 60
    for one in finished:
        own = ~one.rollout.forced
        expected = forward_logprobs(policy, one.rollout)
        np.testing.assert_allclose(one.rollout.logprobs[own], expected[own], rtol=0, atol=1e-5)
        assert (one.rollout.logprobs[~own] == 0).all()
        if one.rollout.forced.any():
            assert one.rollout.tokens[~own].tolist() == list(phrase)[: (~own).sum()]
            assert np.flatnonzero(~own)[0] == one.request.cut


def test_thinking_that_ends_before_the_cut_is_left_alone():
    policy = fixed_policy(RECIPE, {5: 0.0, END_THINK_ID: 0.0})
    generator = make_generator(policy, slots=100)
    generator.submit([Request(prompt=make_prompt("p"), group=0, index=i, seed=i, cut=4) for i in range(100)])
    finished = []
    while generator.busy:
        finished += generator.step()[0]
    for one in finished:
        thought = one.rollout.tokens[:4].tolist()
        assert one.rollout.forced.tolist() == [
            i == 4 and END_THINK_ID not in thought for i in range(len(one.rollout.tokens))
        ]
    assert 0 < sum(one.rollout.forced.any() for one in finished) < 30  # (1/2)^4 of 100 on average


# --- weights that change between decode steps -----------------------------------------------------------------------


def naive_logprobs(policies, rollout):
    """Log-probs of a rollout by the naive decoder: every token under its own version, cached positions kept."""
    weights = [
        {name: tensor.double().numpy() for name, tensor in policy.exported_weights().items()} for policy in policies
    ]
    heads, layers = RECIPE.model.heads, RECIPE.model.layers
    cache = [[] for _ in range(layers)]
    for token in rollout.prompt.tokens[:-1]:
        next_logits(weights[rollout.versions[0]], heads, cache, token)
    last, result = rollout.prompt.tokens[-1], []
    for token, version in zip(rollout.tokens.tolist(), rollout.versions.tolist(), strict=True):
        result.append(log_softmax(next_logits(weights[version], heads, cache, last))[token])
        last = token
    return np.array(result)


def test_old_keys_and_values_stay_when_weights_change_mid_sequence():
    policies = [lively_policy(seed) for seed in range(4)]
    generator = make_generator(policies[0])

    def swap(step):
        if step in (3, 8, 17):
            version = generator.version + 1
            generator.set_weights(policies[version].exported_weights(), version)

    finished = run(generator, many_requests(30, cut=True), between=swap)
    mixed = [one for one in finished if len(set(one.rollout.versions.tolist())) > 1]
    assert len(mixed) > 5
    for one in finished:
        own = ~one.rollout.forced
        np.testing.assert_allclose(
            one.rollout.logprobs[own], naive_logprobs(policies, one.rollout)[own], rtol=0, atol=1e-5
        )
    # The check can tell: the newest weights on a fresh cache give other numbers.
    fresh = [
        np.abs(forward_logprobs(policies[one.rollout.versions[-1]], one.rollout)[-1] - one.rollout.logprobs[-1])
        for one in mixed
    ]
    assert max(fresh) > 0.1


def test_the_naive_decoder_is_the_policy_when_weights_stay():
    policy = lively_policy(0)
    for one in run(make_generator(policy), many_requests(12)):
        np.testing.assert_allclose(
            naive_logprobs([policy], one.rollout), forward_logprobs(policy, one.rollout), rtol=0, atol=1e-5
        )


def test_each_token_carries_the_version_that_chose_it():
    policy = fixed_policy(RECIPE, {5: 0.0})
    generator = make_generator(policy, slots=2)
    generator.submit([Request(prompt=make_prompt("p"), group=0, index=i, seed=i) for i in range(3)])
    finished, step = [], 0
    while generator.busy:
        if step % 4 == 0:
            generator.set_weights(policy.exported_weights(), version=10 + step // 4)
        finished += generator.step()[0]
        step += 1
    first = [10 + step // 4 for step in range(18)]
    assert [one.rollout.versions.tolist() for one in finished] == [first, first, [10 + s // 4 for s in range(18, 36)]]


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


@pytest.mark.parametrize("stop", [1, 7, 13])
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
