"""A pace far from usual is said: times in another unit, of a run or from a step on, and waits."""

import numpy as np
import pytest
from unfitted_runs import unfitted_run

from ablations.findings.paces import remarks_on_paces

STEPS = np.arange(0, 210, 10)


def run(variant: str, seed: int, seconds) -> object:
    """Twenty evaluations; `seconds` are those of each step on 10 GPUs, by step from 1."""
    of_steps = np.broadcast_to(seconds, (200,))
    compute = np.concatenate([[0.0], np.cumsum(of_steps) * 10 / 3600])[STEPS]
    return unfitted_run(variant, seed, compute=compute, score=np.linspace(0.2, 0.6, STEPS.size), step=STEPS)


def said(runs) -> list[str]:
    return [one.text for one in remarks_on_paces(runs, "GPU-hours")]


@pytest.mark.parametrize(
    ("times", "words"), [(1000, "1,000 times more"), (60, "60 times more"), (1 / 60, "60 times less")]
)
def test_a_variant_with_times_in_another_unit_is_named_with_both_paces(times, words):
    (text,) = said(
        [*(run("base", seed, 36.0) for seed in range(3)), *(run("new", seed, 36.0 * times) for seed in (0, 1))]
    )
    own = 0.1 * times
    assert text.startswith(
        f"new: 2 of 2 seeds took {words} compute a step than the other runs ({own:.4g} against 0.1 GPU"
    )


def test_one_seed_with_times_in_another_unit_is_named():
    (text,) = said([run("base", 0, 36.0), run("base", 1, 36000.0), run("new", 0, 40.0), run("new", 1, 40.0)])
    assert text.startswith("base: 1 of 2 seeds took 900 times more compute")  # 36,000 s against 40 s


def test_a_wait_within_a_step_is_named_with_the_compute_that_it_adds():
    waited = np.full(200, 36.0)
    waited[144] = 36.0 + 60 * 3600  # 60 hours on 10 GPUs
    (text,) = said([run("new", 0, 36.0), run("new", 1, waited)])
    assert (
        "new: 1 of 2 seeds took far more compute than usual for some steps (seed 1: steps 140 to 150, up to 601 times"
        in text
    )
    assert "600 of 620 GPU-hours" in text  # 200 steps of a tenth are 20


def test_a_unit_that_changes_within_a_run_is_named_from_its_first_step_on():
    (text,) = said([run("new", 0, np.where(np.arange(200) < 120, 36.0, 36000.0))])
    assert "seed 0: steps 120 to 130 and 7 later intervals, up to 1,000 times" in text
    (text,) = said([run("new", 0, np.where(np.arange(200) < 120, 36000.0, 36.0))])
    assert "seed 0: steps 10 to 20 and 10 later intervals, up to 1,000 times" in text


def test_paces_of_real_runs_are_not_named():
    longer = np.linspace(36.0, 160.0, 200)  # answers grow
    noisy = 36.0 * np.exp(np.random.default_rng(0).normal(0, 0.5, 200))
    first = np.concatenate([[1200.0], np.full(199, 36.0)])  # kernels are compiled in the first step
    larger = 36.0 * 16  # a model of 16 times the size
    assert not said([run(f"v{number}", 0, one) for number, one in enumerate((36.0, longer, noisy, first, larger))])


def test_curves_without_steps_or_with_few_evaluations_have_no_pace():
    short = unfitted_run("short", 0, compute=[0, 1, 1000], score=[0.1, 0.2, 0.3], step=[0, 10, 20])
    without = unfitted_run("without", 0, compute=np.arange(9) ** 6, score=np.linspace(0, 0.5, 9))
    assert not said([short, without])
