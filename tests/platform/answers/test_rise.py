"""A variant rises if its seeds do together; a flat seed is no seed that wanders."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ablations.answers.compare import compare
from ablations.answers.rise import rise_together, verdict_together
from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve


@pytest.mark.parametrize(
    ("deviances", "rises"),
    [
        ([7.82], True),  # 95 % points of chi-squared, from a printed table: 7.815, 12.592 and 16.919
        ([7.81], False),
        ([10.0, 2.6], True),
        ([10.0, 2.5], False),
        ([12.0, 4.0, 1.0], True),
        ([12.0, 4.0, 0.8], False),
    ],
)
def test_likelihood_ratios_of_seeds_add_up(deviances, rises):
    wandering: list[Any] = [
        SimpleNamespace(rise_deviance=one, later_rise_deviance=one, verdict="too noisy to tell") for one in deviances
    ]
    assert rise_together(wandering) is rises
    assert verdict_together(wandering, 0.5, 0.6) == ("roughly known" if rises else "too noisy to tell")


def test_a_flat_or_a_collapsed_seed_speaks_for_its_variant():
    verdicts = ("resolved", "no rise", "collapsed")
    seeds: list[Any] = [SimpleNamespace(rise_deviance=90.0, later_rise_deviance=90.0, verdict=one) for one in verdicts]
    assert verdict_together(seeds[:1], 0.5, 0.52) == "resolved"
    assert verdict_together(seeds[:2], 0.5, 0.52) == "no rise"
    assert verdict_together(seeds, 0.5, 0.52) == "collapsed"


@pytest.mark.parametrize(("later", "verdict"), [([7.0, 7.0], "resolved"), ([6.0, 6.0], "level only")])
def test_seeds_show_their_rise_together(later, verdict):
    # Neither passes 7.815 alone; together they must pass 12.592.
    seeds: list[Any] = [
        SimpleNamespace(rise_deviance=90.0, later_rise_deviance=one, verdict="roughly known") for one in later
    ]
    assert verdict_together(seeds, 0.5, 0.52) == verdict
    assert verdict_together(seeds, 0.5, 0.6) == "roughly known"


def test_a_variant_that_rose_before_its_third_evaluation_keeps_its_place_in_the_levels():
    compute = np.linspace(0, 189, 21)

    def seeds(A, C_mid):
        law = 0.2 + (A - 0.2) / (1 + (C_mid / np.maximum(compute, 1e-9)) ** 1.9)
        scores = [law + 0.003 * np.random.default_rng(seed).standard_normal(21) for seed in (1, 2, 3)]
        return [fit_curve(Curve(name="run", compute=compute, score=score)) for score in scores]

    fits = {"reference": seeds(0.6, 20.0), "early": seeds(0.7, 0.8)}
    reference, early = compare(fits, dict.fromkeys(fits, 1.0), "reference").variants
    assert [fit.verdict for fit in fits["early"]] == ["level only"] * 3
    assert (reference.fit_verdict, early.fit_verdict) == ("resolved", "level only")
    # Eq. 1 of the reference over the last third, from 126: .6 - .4 / (1 + (C / 20)^1.9), .009 below .6 on average.
    assert early.answers["level"].estimate == pytest.approx(0.109, abs=0.005)
    assert early.answers["level"].verdict == "level up"
    assert pytest.approx(0.7, abs=0.005) == early.asymptote.A


def test_one_seed_that_wanders_takes_no_compute_ratio_away():
    compute = np.arange(13) * 100.0
    law = 0.3 + 0.2 / (1 + (np.maximum(compute, 1e-9) / 300) ** -1.5)

    def seeds(*sds):
        rng = np.random.default_rng(3)
        scores = [law + sd * rng.standard_normal(compute.size) for sd in sds]
        return [
            fit_curve(Curve(name="run", compute=compute, score=score, samples=np.full(13, 400.0), start=f"seed {seed}"))
            for seed, score in enumerate(scores)
        ]

    wandering, calm = seeds(0.01, 0.01, 0.07), seeds(0.012, 0.01, 0.01)
    assert [fit.rises for fit in wandering] == [True, True, False]
    found = compare({"reference": calm, "variant": wandering}, {"reference": 1.0, "variant": 1.0}, "reference")
    answer = found.variants[1].answers["compute"]
    assert found.variants[1].asymptote.rises
    assert answer.lo < 1 < answer.hi
