"""Variants that begin elsewhere than the reference are named with both scores, and runs that begin late."""

import numpy as np
from unfitted_runs import unfitted_run

from ablations.findings.starts import remarks_on_starts


def runs(variant: str, *starts: float, first: float = 0.0):
    curve = np.array([0.0, 0.1, 0.2, 0.25])
    return [
        unfitted_run(variant, seed, compute=first + np.arange(4), score=np.clip(start + curve, 0, 1))
        for seed, start in enumerate(starts)
    ]


def said(*found) -> list[str]:
    return [one.text for one in remarks_on_starts("base", [run for some in found for run in some])]


def test_percent_beside_a_fraction_and_another_model_are_named():
    (text,) = said(runs("base", 0.20, 0.21, 0.19), runs("new", 0.002, 0.0021, 0.0019))
    assert text.startswith(
        "The scores before training differ from that of base, 0.200: new 0.002. Look for another unit"
    )
    (text,) = said(runs("base", 0.20, 0.21, 0.19), runs("new", 0.35, 0.36, 0.34))
    assert text.startswith("The scores before training differ from that of base, 0.200: new 0.350. Look")


def test_starts_that_differ_by_noise_are_not_named():
    rng = np.random.default_rng(1)
    for _ in range(300):
        assert not said(*(runs(name, *(0.3 + rng.normal(0, 0.05, 3))) for name in ("base", "new", "other")))


def test_only_scores_before_training_are_compared():
    assert not said(runs("base", 0.20, 0.21), runs("new", 0.35, 0.36, first=2.0))


def test_runs_that_begin_late_are_named_with_their_first_steps():
    continued = unfitted_run("new", 1, compute=range(4), score=[0.5, 0.6, 0.6, 0.6], step=range(200, 240, 10))
    (text,) = said(runs("base", 0.20, 0.21), runs("new", 0.20), [continued])
    assert text == (
        "new: the evaluations of 1 of 2 seeds begin late (seed 1 at step 200), those of most runs at 0. A run that "
        "begins with a checkpoint of another is no run of its own."
    )


def test_runs_without_an_evaluation_before_training_do_not_begin_late():
    first = unfitted_run("new", 0, compute=range(1, 5), score=[0.3, 0.4, 0.5, 0.6], step=range(40, 200, 40))
    assert not said(runs("base", 0.20, 0.21), [first])
    late = unfitted_run("late", 0, compute=range(4), score=[0.5, 0.6, 0.6, 0.6], step=range(200, 240, 10))
    assert not said([late, first])


def test_many_variants_that_begin_elsewhere_are_one_remark():
    (text,) = said(runs("base", 0.2), *(runs(f"v{number}", 0.4 + number / 100) for number in range(7)))
    assert "0.200: v0 0.400, v1 0.410, v2 0.420, v3 0.430, v4 0.440 and 2 more variants. Look" in text
