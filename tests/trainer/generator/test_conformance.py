"""What every generator promises, held against float64 loops: the built-in one, and vLLM by each of its drivers.

One engine of each driver serves all of these tests.
"""

from functools import partial

import numpy as np
import pytest
from trainer.generator_cases import (
    LIMITS,
    LOOPS,
    MAX_PROMPT,
    PHRASE,
    POLICIES,
    RECIPE,
    SLOTS,
    block_of,
    engine_of,
    gap,
    requests_of,
    run,
    swaps,
    with_engine,
)
from trainer.naive_llama import log_softmax, next_logits
from trainer.tiny import fixed_policy, make_prompt

from scalerl.generator.request import Request
from scalerl.generator.torch_generator import TorchGenerator
from scalerl.model.build import new_policy
from scalerl.tokens.symbols import END_THINK_ID, SymbolTokenizer


@pytest.fixture(scope="module")
def stepped(tmp_path_factory):
    """vLLM in this process."""
    with engine_of("steps", tmp_path_factory.mktemp("model")) as engine:
        yield engine


@pytest.fixture(scope="module")
def running_ahead(tmp_path_factory):
    """vLLM in a process of its own."""
    with engine_of("async", tmp_path_factory.mktemp("model")) as engine:
        yield engine


ASYNC = pytest.param("running_ahead", marks=[pytest.mark.engines, pytest.mark.timeout(300)], id="vllm async")


@pytest.fixture(params=["torch", pytest.param("stepped", id="vllm"), ASYNC])
def make(request):
    """Makes a generator with the first of the policies."""
    return partial(generator_of, request)


@pytest.fixture
def generator(make):
    """The same, made."""
    return make()


def generator_of(request, **options):
    if request.param == "torch":
        made = TorchGenerator(
            new_policy(RECIPE),
            LIMITS,
            SymbolTokenizer(),
            slots=SLOTS,
            max_prompt=MAX_PROMPT,
            phrase=PHRASE,
            **options,
        )
    else:
        made = with_engine(request.getfixturevalue(request.param), **options)
    made.set_weights(POLICIES[0].exported_weights(), version=0)
    return made


def test_behaviour_logprobs_are_those_of_the_policy(generator):
    finished = run(generator, requests_of(12))
    assert len({len(one.rollout.tokens) for one in finished}) > 5
    assert max(gap(one.rollout) for one in finished) < 1e-5


def test_after_two_updates_every_token_is_that_of_its_weights_on_what_older_ones_cached(generator):
    finished = run(generator, requests_of(20, cut=True), between=swaps(generator))
    mixed = [one.rollout for one in finished if len(set(one.rollout.versions.tolist())) > 1]
    assert len(mixed) > 5
    assert max(gap(one.rollout, block=block_of(generator)) for one in finished) < 1e-4
    assert max(gap(rollout, recompute=True) for rollout in mixed) > 0.1


def test_keys_and_values_are_those_of_the_new_weights_where_they_are_recomputed(make):
    generator, requests = make(recompute=True), requests_of(20, cut=True)
    finished = run(generator, requests, between=swaps(generator))
    mixed = [one.rollout for one in finished if len(set(one.rollout.versions.tolist())) > 1]
    assert len(mixed) > 5
    assert max(gap(one.rollout, recompute=True) for one in finished) < 1e-4
    assert max(gap(rollout) for rollout in mixed) > 0.1


def test_no_token_is_of_weights_that_came_and_went_during_a_pause(generator):
    generator.submit(requests_of(12))
    finished = [one for _ in range(6) for one in generator.step()[0]]
    generator.pause()
    for version in (1, 2):
        generator.set_weights(POLICIES[version].exported_weights(), version)
    generator.resume()
    finished += run_on(generator)
    assert {int(version) for one in finished for version in one.rollout.versions} == {0, 2}
    assert max(gap(one.rollout) for one in finished) < 1e-4


@pytest.mark.parametrize("make", ["torch", pytest.param("stepped", id="vllm")], indirect=True)
def test_what_is_recomputed_is_work_of_the_next_step(make):
    generator = make(recompute=True)
    generator.submit(requests_of(1))
    for _ in range(3):
        generator.step()
    assert generator.active == 3
    generator.set_weights(POLICIES[1].exported_weights(), version=1)
    (prompt,) = {request.prompt for request in requests_of(1)}
    size = len(prompt.tokens) + 3
    _, work = generator.step()
    assert (work.prefill_tokens, work.prefill_context_tokens) == (3 * size, 3 * size * (size + 1) // 2)
    run_on(generator)


def test_scores_are_those_of_the_weights_and_leave_rollouts_alone(make):
    generator, tokens = make(), tuple(range(4, 24))
    generator.submit(requests_of(4))
    for version, weights in enumerate(LOOPS):
        generator.step()
        generator.set_weights(POLICIES[version].exported_weights(), version)
        cache = [[] for _ in range(RECIPE.model.layers)]
        logits = [next_logits(weights, RECIPE.model.heads, cache, token) for token in tokens[:-1]]
        expected = [log_softmax(of)[token] for of, token in zip(logits, tokens[1:], strict=True)]
        np.testing.assert_allclose(generator.score(tokens), expected, rtol=0, atol=1e-5)
    finished = run_on(generator)
    assert max(gap(one.rollout) for one in finished) < 1e-4


def test_a_prompt_that_was_answered_before_an_update_is_read_by_the_new_weights(generator):
    prompt = make_prompt("same", tuple(range(4, 4 + MAX_PROMPT)))
    for group in range(2):
        requests = [Request(prompt=prompt, group=group, index=i, seed=10 * group + i) for i in range(3)]
        finished = run(generator, requests)
        assert max(gap(one.rollout) for one in finished) < 1e-4
        generator.set_weights(POLICIES[group + 1].exported_weights(), version=group + 1)


def test_an_interruption_is_flagged_and_the_answer_knows_it(generator):
    finished = run(generator, requests_of(20, cut=True))
    interrupted = [one for one in finished if one.rollout.forced.any()]
    assert 10 < len(interrupted) < 60
    for one in finished:
        forced = one.rollout.forced
        assert gap(one.rollout) < 1e-5
        assert one.rollout.tokens[forced].tolist() == (list(PHRASE) if forced.any() else [])
        if forced.any():
            assert np.flatnonzero(forced)[0] == one.request.cut


def test_thinking_that_ends_before_the_cut_brings_no_phrase(generator):
    policy = fixed_policy(RECIPE, {5: 0.0, END_THINK_ID: 0.0})
    generator.set_weights(policy.exported_weights(), version=0)
    requests = [Request(prompt=make_prompt("p"), group=0, index=i, seed=i, cut=4) for i in range(60)]
    finished = run(generator, requests)
    for one in finished:
        thought, rollout = one.rollout.tokens[:4].tolist(), one.rollout
        if END_THINK_ID in thought:
            assert not rollout.forced.any()
            assert len(rollout.tokens) == thought.index(END_THINK_ID) + 1 + LIMITS.answer
        else:
            assert rollout.forced.tolist() == [False] * 4 + [True] * 3 + [False] * LIMITS.answer
        assert rollout.truncated
    assert 0 < sum(one.rollout.forced.any() for one in finished) < 20  # (1/2)^4 of 60 on average


def test_a_request_gets_the_same_rollout_alone_and_among_others(generator):
    requests = requests_of(6, cut=True)
    together = {(one.request.group, one.request.index): one.rollout for one in run(generator, requests)}
    for request in requests[::5]:
        (alone,) = run(generator, [request])
        assert alone.rollout.tokens.tolist() == together[request.group, request.index].tokens.tolist()


def test_a_generator_goes_on_with_the_tokens_of_a_state(generator):
    requests = requests_of(8, cut=True)
    generator.submit(requests)
    before = [one for _ in range(5) for one in generator.step()[0]]
    state = generator.state_dict()
    run_on(generator)
    generator.load_state_dict(state)
    assert generator.active > 3
    finished = before + run_on(generator)
    assert sorted((one.request.group, one.request.index) for one in finished) == [
        (request.group, request.index) for request in requests
    ]
    assert max(gap(one.rollout) for one in finished) < 1e-5


def run_on(generator):
    """What is left, to its end."""
    finished = []
    while generator.busy:
        finished += generator.step()[0]
    return finished


def test_the_work_of_a_step_is_that_of_its_tokens(generator):
    requests = requests_of(SLOTS // 3)
    generator.submit(requests)
    sequences = prefill = context = 0
    finished = []
    while generator.busy:
        ended, work = generator.step()
        finished += ended
        sequences, prefill = sequences + work.sequences, prefill + work.prefill_tokens
        context += work.context_tokens
    assert sequences == sum(len(one.rollout.tokens) for one in finished)
    assert prefill == sum(len(one.prompt.tokens) for one in requests[::3])
    assert context == sum(
        sum(range(size, size + len(one.rollout.tokens)))
        for one in finished
        for size in [len(one.request.prompt.tokens)]
    )
