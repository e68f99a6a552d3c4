"""Runs that share evaluations are named: whole copies, and seeds that continue a checkpoint of another."""

import numpy as np
import pytest
from unfitted_runs import unfitted_run

from ablations.findings.copies import remarks_on_copies

COMPUTE = np.arange(20.0)


def scores(seed: int, answers: int = 1000) -> np.ndarray:
    """A rising curve, of which each evaluation judges so many answers."""
    return np.random.default_rng(seed).binomial(answers, 0.2 + 0.4 * COMPUTE / (COMPUTE + 5)) / answers


def said(*curves, variants=("dapo", "dapo")) -> list[str]:
    runs = [
        unfitted_run(variant, seed, compute=COMPUTE[: len(score)], score=score)
        for seed, (variant, score) in enumerate(zip(variants, curves, strict=True))
    ]
    return [one.text for one in remarks_on_copies(runs, "GPU-hours")]


@pytest.mark.parametrize("size", [5, 12, 19])
def test_a_seed_that_continues_a_checkpoint_of_another_is_named_with_the_compute_of_the_fork(size):
    forked = np.concatenate([scores(1)[:size], scores(2)[size:]])
    (text,) = said(scores(1), forked)
    assert text.startswith(
        f"dapo-s0 and dapo-s1 have the same first {size} evaluations, up to {size - 1} GPU-hours: one continues"
    )


def test_a_seed_that_is_the_first_part_of_another_is_named():
    (text,) = said(scores(1), scores(1)[:8])
    assert text.startswith("dapo-s0 and dapo-s1 have the same first 8 evaluations, up to 7 GPU-hours")


def test_a_whole_copy_is_named_once():
    (text,) = said(scores(1), scores(1))
    assert text.startswith("dapo-s0 and dapo-s1 have the same evaluations")


def test_variants_may_begin_alike_since_a_setting_may_act_later():
    assert not said(scores(1), np.concatenate([scores(1)[:12], scores(2)[12:]]), variants=("dapo", "grpo"))


def test_independent_seeds_are_not_named_however_few_answers_an_evaluation_has():
    for answers in (10, 30, 100, 10_000):
        for seed in range(0, 400, 2):
            assert not said(scores(seed, answers), scores(seed + 1, answers))
