"""Log-probs of vLLM over two updates, scored again: on two workers, and with a cache too small for all rollouts."""

import re
from itertools import pairwise

import pytest
from trainer.generator_cases import (
    LOOPS,
    POLICIES,
    RECIPE,
    SLOTS,
    VERSIONS,
    block_of,
    engine_of,
    gap,
    requests_of,
    run,
    swaps,
    with_engine,
)
from trainer.naive_llama import log_softmax, next_logits

pytestmark = [pytest.mark.engines, pytest.mark.timeout(600)]

CLOSE = 1e-4
BLOCK = RECIPE.generator.block_size


def recipe_of(**generator):
    return RECIPE.model_copy(update={"generator": RECIPE.generator.model_copy(update=generator)})


@pytest.fixture(params=["steps", "async"])
def driver(request):
    return request.param


def over_two_updates(engine, first, **options):
    generator = with_engine(engine, **options)
    generator.set_weights(POLICIES[0].exported_weights(), version=0)
    finished = run(generator, requests_of(20, first=first, cut=True), between=swaps(generator))
    mixed = [one.rollout for one in finished if len(set(one.rollout.versions.tolist())) > 1]
    assert len(mixed) > 5
    return generator, finished, mixed


def test_two_workers_decode_with_the_weights_that_each_token_names(tmp_path, driver):
    with engine_of(driver, tmp_path, recipe_of(tensor_parallel=2)) as engine:
        generator, finished, mixed = over_two_updates(engine, 0)
        kept = max(gap(one.rollout, block=block_of(generator)) for one in finished)
        print("kept", kept)
        wrong = max(gap(one, recompute=True) for one in mixed)
        print("kept, scored as recomputed", wrong)
        assert kept < CLOSE
        assert wrong > 0.1
        generator, finished, mixed = over_two_updates(engine, 100, recompute=True)
        made = max(gap(one.rollout, recompute=True) for one in finished)
        print("recomputed", made)
        wrong = max(gap(rollout) for rollout in mixed)
        print("recomputed, scored as kept", wrong)
        assert made < CLOSE
        assert wrong > 0.1


def preempted(rollout):
    """How often a rollout's keys and values were computed again, if its log-probs follow from some such history: after
    each, whole blocks of the old ones are left, or none. The rollout has no forced token."""
    heads, places = RECIPE.model.heads, range(RECIPE.model.layers)
    tokens, times = [*rollout.prompt.tokens, *rollout.tokens.tolist()], 0
    cache = [[] for _ in places]

    def scored(kept, version, place):
        """The log-prob of the token at `place` on the first `kept` of the cache, and the cache with the rest of it."""
        here = [list(positions[:kept]) for positions in cache]
        for token in tokens[kept : place - 1]:
            next_logits(LOOPS[version % VERSIONS], heads, here, token)
        return log_softmax(next_logits(LOOPS[version % VERSIONS], heads, here, tokens[place - 1]))[tokens[place]], here

    versions = rollout.versions.tolist()
    for number, (version, recorded) in enumerate(zip(versions, rollout.logprobs, strict=True)):
        place = len(rollout.prompt.tokens) + number
        filled = len(cache[0])
        for kept in [filled, *range(filled // BLOCK * BLOCK, -1, -BLOCK)]:
            logprob, after = scored(kept, version, place)
            if abs(logprob - recorded) < CLOSE:
                break
        else:
            pytest.fail(f"token {place} of {rollout.prompt.id} has the log-prob of no history")
        times, cache = times + (kept != filled), after
    return times


def test_a_rollout_without_room_in_the_cache_is_preempted_counted_and_scored_by_its_own_history(
    tmp_path, driver, capsys
):
    # Twelve rollouts of up to two blocks in twelve blocks, with new weights at every fourth step.
    with engine_of(driver, tmp_path, recipe_of(cache_tokens=SLOTS * BLOCK)) as engine:
        generator = with_engine(engine)
        generator.set_weights(POLICIES[0].exported_weights(), version=0)

        def update(step):
            if step % 4 == 3:
                version = generator.version + 1
                generator.set_weights(POLICIES[version % VERSIONS].exported_weights(), version)

        finished = run(generator, requests_of(40), between=update)
        counted = engine.preemptions.count
    times = [preempted(one.rollout) for one in finished]
    warned = [int(count) for count in re.findall(r"cache has been full (\d+) times", capsys.readouterr().out)]
    print("preemptions", counted, "that changed a log-prob", sum(times))
    assert len(finished) == 120
    assert 0 < sum(times) <= counted
    assert warned[0] <= 12
    assert counted / 2 < warned[-1] <= counted
    assert all(later >= 2 * earlier for earlier, later in pairwise(warned))
