"""Tries a user's own curriculum on made-up prompts: at the start of a run, and after some have been answered."""

import timeit
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from scalerl.checks.own_inputs import seeded
from scalerl.prompts.own_pool import CurriculumInputs, weights_of_prompts
from scalerl.recipe import Own

NUM_PROMPTS = 1000
MOST_MS = 20.0
"""Time for one draw above which a curriculum is refused: a run draws thousands of prompts."""


def trial_of_curriculum(own: Own) -> Iterator[tuple[str, str]]:
    """Problems of a curriculum, each with its remedy, and its time."""
    for given in made_up_prompts():
        yield from curriculum_problems(own, given)
    ms = 1000 * min(timeit.repeat(lambda: weights_of_prompts(own, made_up_prompts()[-1]), number=1, repeat=5))
    remedy = "use operations on whole arrays instead of loops over prompts" if ms > MOST_MS else ""
    yield f"takes {ms:.2g} ms for a draw from {NUM_PROMPTS:,} prompts", remedy


def made_up_prompts() -> tuple[CurriculumInputs, CurriculumInputs]:
    """Prompts before the first draw, and later, when the first half has been answered with all pass rates."""
    drawn = np.random.default_rng(0)
    none = np.zeros(NUM_PROMPTS, np.int64)
    start = CurriculumInputs(
        difficulty_N=drawn.integers(0, 5, NUM_PROMPTS).astype(np.float64),
        length_N=drawn.integers(5, 60, NUM_PROMPTS),
        draws_N=none,
        groups_N=none.copy(),
        pass_rate_N=np.zeros(NUM_PROMPTS),
    )
    is_answered_N = np.arange(NUM_PROMPTS) < NUM_PROMPTS // 2
    draws_N = np.where(is_answered_N, drawn.integers(1, 4, NUM_PROMPTS), 0)
    pass_rate_N = np.where(is_answered_N, np.linspace(0, 2, NUM_PROMPTS).clip(max=1), 0.0)
    return start, replace(start, draws_N=draws_N, groups_N=draws_N.copy(), pass_rate_N=pass_rate_N)


def curriculum_problems(own: Own, given: CurriculumInputs) -> Iterator[tuple[str, str]]:
    """Problems of a curriculum, each with its remedy; OwnFailed for weights that no draw can use."""
    copies = {name: array.copy() for name, array in vars(given).items()}
    weight_N = seeded(0, weights_of_prompts, own, given)
    for name, array in copies.items():
        if not np.array_equal(array, getattr(given, name)):
            yield f"changes its input {name}", "compute on a copy, as in `x = x.copy()`"
    if not np.array_equal(weight_N, seeded(1, weights_of_prompts, own, replace(given, **copies))):
        yield (
            "returns something different when called again with the same inputs",
            "a run must be repeatable: compute from the inputs alone",
        )
