"""What every generator promises, held against float64 loops: the built-in one, and vLLM by each of its drivers.

One engine of each driver serves all of these tests.
"""

from contextlib import contextmanager
from functools import partial

import numpy as np
import pytest
import torch
from trainer.naive_llama import log_softmax, next_logits
from trainer.tiny import fixed_policy, make_prompt, random_policy, tiny_recipe

from scalerl.generator.interruption import tokens_with_phrase
from scalerl.generator.make import DRIVERS
from scalerl.generator.random_numbers import draw_seeds
from scalerl.generator.request import NEVER, Request
from scalerl.generator.torch_generator import TorchGenerator
from scalerl.generator.vllm_engine import engine_arguments
from scalerl.generator.vllm_generator import VllmGenerator
from scalerl.model.build import new_policy
from scalerl.recipe import Generation
from scalerl.tokens.symbols import END_THINK_ID, EOS_ID, SymbolTokenizer

RECIPE = tiny_recipe(model={"hidden": 64, "layers": 2, "heads": 2, "mlp": 64}, generator={"type": "vllm"})
LIMITS = Generation(thinking=40, answer=5)
PHRASE = (20, 21, END_THINK_ID)
SLOTS, MAX_PROMPT = 12, 9
VERSIONS = 3


def lively_policy(seed):
    """A random policy that ends sequences about one time in twenty, so that lengths are uneven."""
    policy = random_policy(RECIPE, seed)
    with torch.no_grad():
        policy.head[EOS_ID] = policy.head[4:40].mean(0) + policy.head[EOS_ID]
    return policy


POLICIES = [lively_policy(seed) for seed in range(VERSIONS)]
LOOPS = [{name: one.double().numpy() for name, one in policy.exported_weights().items()} for policy in POLICIES]


@contextmanager
def engine_of(driver, folder, recipe=RECIPE):
    """vLLM with the first of the policies, saved in `folder`."""
    POLICIES[0].save(folder, eos_token_id=EOS_ID)
    positions = MAX_PROMPT + tokens_with_phrase(LIMITS, PHRASE)
    arguments = engine_arguments(recipe, folder, slots=SLOTS, positions=positions)
    engine = DRIVERS[driver](arguments, temperature=LIMITS.temperature, eos=(EOS_ID,))
    try:
        yield engine
    finally:
        engine.close()


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


def with_engine(engine, **options):
    return VllmGenerator(
        engine,
        LIMITS,
        SymbolTokenizer(),
        slots=SLOTS,
        max_tokens=tokens_with_phrase(LIMITS, PHRASE),
        phrase=PHRASE,
        **options,
    )


def requests_of(groups, *, first=0, cut=False):
    """Groups of three rollouts on prompts of one to nine tokens; half of all are interrupted if they think so long."""
    rng = np.random.default_rng(first)
    requests = []
    for number in range(first, first + groups):
        prompt = make_prompt(f"p{number}", tuple(rng.integers(4, 40, size=1 + number % MAX_PROMPT).tolist()))
        cuts, seeds = rng.integers(1, 41, size=3) if cut else [NEVER] * 3, draw_seeds(rng, 3)
        requests += [Request(prompt=prompt, group=number, index=i, seed=seeds[i], cut=int(cuts[i])) for i in range(3)]
    return requests


def run(generator, requests, *, between=lambda step: None):
    """The rollouts of these requests; `between(step)` runs before every decode step."""
    generator.submit(requests)
    finished, step = [], 0
    while generator.busy:
        between(step)
        finished += generator.step()[0]
        step += 1
    assert len(finished) == len(requests)
    return finished


def rescored(rollout, *, recompute=False, block=None):
    """Log-probs of a rollout's tokens in float64: each under its version, with keys and values as they were cached, or
    computed again at every new version. With `block` those of a block that was not full when the rollout was
    interrupted are computed again then."""
    layers, heads = RECIPE.model.layers, RECIPE.model.heads
    prompt, versions = len(rollout.prompt.tokens), rollout.versions.tolist()
    tokens, result = [*rollout.prompt.tokens, *rollout.tokens.tolist()], []
    cache, of, interrupted_at = [[] for _ in range(layers)], versions[0], None
    if block and rollout.forced.any():  # the phrase is read with the weights that begin the answer
        (forced,) = np.nonzero(rollout.forced)
        interrupted_at = prompt + forced[0]
        versions[forced[0] : forced[-1] + 1] = [versions[forced[-1] + 1]] * len(forced)
    for place, version in enumerate(versions, start=prompt):
        if recompute and version != of:
            cache = [[] for _ in range(layers)]
        elif place == interrupted_at:
            cache = [positions[: (place - 1) // block * block] for positions in cache]
        of = version
        *before, last = tokens[len(cache[0]) : place]
        for token in before:
            next_logits(LOOPS[version], heads, cache, token)
        result.append(log_softmax(next_logits(LOOPS[version], heads, cache, last))[tokens[place]])
    return np.array(result)


def gap(rollout, **history):
    """Largest difference to the recorded log-probs, forced tokens left out."""
    own = ~rollout.forced
    assert (rollout.logprobs[~own] == 0).all()
    return np.abs(rescored(rollout, **history) - rollout.logprobs)[own].max()


def block_of(generator):
    """Tokens in a block of its cache, if it has blocks."""
    return RECIPE.generator.block_size if isinstance(generator, VllmGenerator) else None


def swaps(generator):
    """New weights before the 7th and the 19th decode step."""

    def between(step):
        if step in (6, 18):
            version = generator.version + 1
            generator.set_weights(POLICIES[version].exported_weights(), version)

    return between


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
