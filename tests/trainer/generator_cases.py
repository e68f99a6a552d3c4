"""Requests, policies and engines for tests of generators, and rollouts scored again by float64 loops."""

from contextlib import contextmanager

import numpy as np
import torch
from trainer.naive_llama import log_softmax, next_logits
from trainer.tiny import make_prompt, random_policy, tiny_recipe

from scalerl.generator.interruption_phrase import tokens_with_phrase
from scalerl.generator.make import DRIVERS
from scalerl.generator.random_numbers import draw_seeds
from scalerl.generator.request import NEVER, Request
from scalerl.generator.vllm_engine import engine_arguments
from scalerl.generator.vllm_generator import VllmGenerator
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
