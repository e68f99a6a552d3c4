"""The random numbers of a request: SplitMix64 against published values, and no trace of a pattern across seeds."""

import numpy as np
from scipy.stats import kstest

from scalerl.generator.random_numbers import draw_seeds, one_split_mix_64, split_mix_64, uniform
from scalerl.generator.request import Request
from scalerl.generator.vllm_generator import seed_of
from scalerl.rollout import Prompt


def test_the_first_numbers_of_a_seed_are_the_published_ones():
    # rosettacode.org/wiki/Pseudo-random_numbers/Splitmix64, seed 1234567.
    published = [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    drawn = split_mix_64(np.full(5, 1234567, dtype=np.uint64), np.arange(5, dtype=np.uint64))
    assert drawn.tolist() == published
    assert [one_split_mix_64(1234567, number) for number in range(5)] == published


def test_numbers_are_uniform_along_a_stream_and_across_streams_of_neighbouring_seeds():
    count = 20_000
    along = uniform(np.full(count, 7, dtype=np.uint64), np.arange(count, dtype=np.uint64))
    across = uniform(np.arange(count, dtype=np.uint64), np.zeros(count, dtype=np.uint64))
    for drawn in (along, across):
        assert kstest(drawn, "uniform").pvalue > 0.01
        # The correlation of neighbours of independent numbers has a standard deviation of 1 / sqrt(n).
        assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 3 / np.sqrt(count)
        assert drawn.min() >= 0
        assert drawn.max() < 1


def test_seeds_have_64_bits():
    seeds = draw_seeds(np.random.default_rng(0), 4000)
    assert len(set(seeds)) == 4000
    for bit in range(64):
        share = sum(seed >> bit & 1 for seed in seeds) / 4000
        assert abs(share - 0.5) < 5 * 0.5 / np.sqrt(4000)


def test_seeds_for_vllm_are_far_apart_for_neighbouring_requests_and_tokens():
    """vLLM 0.32.0 gives completion i of a request seed + i, so neighbouring seeds would share completions."""
    prompt = Prompt(task="k_smallest", id="0", tokens=(1,), answer="2", difficulty=1)
    requests = [Request(prompt=prompt, group=0, index=seed, seed=seed) for seed in range(200)]
    seeds = sorted(seed_of(request, number) for request in requests for number in range(20))
    assert min(np.diff(np.array(seeds, dtype=np.uint64))) > 2**20
    assert seeds[0] >= 0
    assert seeds[-1] < 2**63
