"""Random numbers of a request, which do not depend on the generator, the rest of the batch, or pauses.

SplitMix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators"): number t of seed s is a
bijection of s + (t + 1) gamma, so a rollout carries no generator state.

    z = s + (t + 1) gamma
    z = (z ^ (z >> 30)) 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) 0x94D049BB133111EB
    z ^ (z >> 31)                                          modulo 2^64
"""

import numpy as np
from numpy.typing import NDArray

GAMMA = np.uint64(0x9E3779B97F4A7C15)
"""Odd number close to 2^64 over the golden ratio."""


def split_mix_64(seed_n: NDArray[np.uint64], number_n: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Number `number_n` of each seed's stream, counted from 0; [n] in and out, uniform over 64 bits."""
    z = seed_n + (number_n + np.uint64(1)) * GAMMA
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def one_split_mix_64(seed: int, number: int) -> int:
    """One number of one seed's stream, in a tenth of the time of an array."""
    z = (seed + (number + 1) * int(GAMMA)) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def uniform(seed_n: NDArray[np.uint64], number_n: NDArray[np.uint64]) -> NDArray[np.float64]:
    """Uniform float64 in [0, 1) from the upper 53 bits of `split_mix_64`."""
    return (split_mix_64(seed_n, number_n) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def draw_seeds(rng: np.random.Generator, count: int) -> list[int]:
    """Draw `count` seeds of 64 random bits each."""
    return rng.integers(2**64, size=count, dtype=np.uint64).tolist()
