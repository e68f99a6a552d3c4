"""What is foretold, against closed forms and against studies that are simulated and compared one by one."""

import math
from dataclasses import replace

import numpy as np
import pytest
from curves import eq1
from scipy.stats import norm

from ablations.answers.compare import compare
from ablations.answers.half_widths import (
    BLIND,
    OfLaw,
    Sight,
    Sizes,
    curve_sights,
    ends_and_sd,
    level_sight,
    looked_for,
    sight_of,
    smallest_seen,
    widest,
)
from ablations.answers.interval import Interval
from ablations.answers.known import KnownScale, RunSpread
from ablations.answers.level import Level, level_difference, level_repeats
from ablations.answers.run_to_run import run_to_run
from ablations.answers.simulated_runs import (
    SimulatedRuns,
    autoregressive,
    expected_curve,
    grid_difference,
    lower,
    slower,
)
from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve
from ablations.fit.options import FitSettings

COMPUTE = np.arange(0.0, 16_001.0, 800.0)
SAMPLES = 16_000
PLAIN = FitSettings()


def known(sd: float, *, run_sd: float = 0.0045, rho: float = 0.4) -> KnownScale:
    spread = RunSpread(level=sd, ceiling=sd, target=sd, freedom=0)
    return KnownScale(law=eq1, run_sd=run_sd, autocorrelation=rho, prompts=1000, sampling_share=1.0, spread=spread)


def test_of_one_half_width_the_smallest_difference_lies_a_quantile_beyond_it():
    assert smallest_seen(np.array([0.02, 0.02]), 0.01) == pytest.approx(0.02 + 0.01 * norm.ppf(0.8), abs=1e-9)


def test_of_several_half_widths_the_mean_power_counts():
    d = smallest_seen(np.array([0.01, 0.03]), 0.005)
    assert (norm.cdf((d - 0.01) / 0.005) + norm.cdf((d - 0.03) / 0.005)) / 2 == pytest.approx(0.8, abs=1e-9)


def test_intervals_without_an_end_see_nothing():
    endless = math.inf
    d = smallest_seen(np.array([0.02] * 9 + [endless]), 0.01)
    assert 0.9 * norm.cdf((d - 0.02) / 0.01) == pytest.approx(0.8, abs=1e-9)
    assert smallest_seen(np.array([0.02] * 3 + [endless]), 0.01) is None
    assert smallest_seen(np.array([endless, endless]), 0.01) is None
    assert sight_of(np.array([0.02] + [endless] * 3), 0.01) == Sight(half_width=None, seen=None, open=0.75)


def test_autoregressive_noise_has_variance_1_and_its_lag():
    x = autoregressive(np.random.default_rng(0).standard_normal(200_000), 0.6)
    assert x.var() == pytest.approx(1.0, abs=0.02)
    assert np.corrcoef(x[:-1], x[1:])[0, 1] == pytest.approx(0.6, abs=0.01)


@pytest.mark.parametrize(
    ("num_variants", "num_seeds", "sd"), [(9, 1, 0.0075), (2, 3, 0.0075), (9, 3, 0.015), (4, 2, 0.03)]
)
def test_four_in_five_levels_that_differ_by_the_smallest_difference_are_seen(num_variants, num_seeds, sd):
    scale = known(sd)
    sight = level_sight(
        expected_curve(eq1, COMPUTE, SAMPLES), scale, num_variants=num_variants, num_seeds=num_seeds, compute=16_000
    )
    late = COMPUTE[COMPUTE >= 16_000 * 2 / 3]
    own_variance = float(np.mean(eq1(late) * (1 - eq1(late)))) / SAMPLES / 6.667  # a third of 20 intervals of 800
    rng = np.random.default_rng([16, num_variants, num_seeds])
    seen, half_widths = [], []
    for _ in range(400):
        levels = 0.55 + math.hypot(sd, math.sqrt(own_variance)) * rng.standard_normal((num_variants, num_seeds))
        levels[1] += sight.seen
        runs = [[Level(value=float(one), variance=own_variance) for one in variant] for variant in levels]
        spread = run_to_run([level_repeats(variant) for variant in runs if num_seeds > 1])
        found = level_difference(runs[1], runs[0], spread)
        seen.append(found.lo > 0)
        half_widths.append((found.hi - found.lo) / 2)
    assert np.mean(seen) == pytest.approx(0.8, abs=0.06)  # three standard errors of 400 studies
    assert sight.half_width == pytest.approx(np.median(half_widths), rel=0.05)


def test_a_level_of_readings_that_begin_too_late_is_not_foretold():
    late = Curve(name="late", compute=np.array([9.0, 10.0]), score=np.array([0.5, 0.5]), samples=None)
    assert level_sight(late, known(0.0075), num_variants=2, num_seeds=3, compute=10.0) == BLIND


def test_four_times_the_samples_help_where_samples_are_the_noise():
    scale = known(0.001, run_sd=0.0)

    def seen(samples):
        curve = expected_curve(eq1, COMPUTE, samples)
        return level_sight(curve, scale, num_variants=9, num_seeds=3, compute=16_000).seen

    assert seen(400) / seen(1600) == pytest.approx(2.0, abs=0.35)


def test_a_ceiling_of_the_task_bounds_the_fits_and_one_below_the_curves_is_left_out(monkeypatch):
    monkeypatch.setattr("ablations.answers.simulated_runs.NUM_CURVES", 2)
    below, above = (simulated_runs(FitSettings(ceiling=ceiling)).reference for ceiling in (0.5, 0.7))
    assert [fit.settings.ceiling for fit in below] == [None, None]  # the law ends at .60
    assert [fit.settings.ceiling for fit in above] == [0.7, 0.7]


def simulated_runs(settings=PLAIN, *, compute=COMPUTE):
    return SimulatedRuns(known=known(0.0075), compute=compute, samples=SAMPLES, settings=settings)


def test_a_slower_variant_needs_more_compute_to_every_pass_rate():
    compute = np.array([0.0, 100.0, 2542.0, 16_000.0])
    found = slower(eq1, math.log(1.5))(1.5 * compute)
    # R_0; then .3 + .31 / (1 + (2542 / C)^1.92), half of the way at C_mid.
    assert found == pytest.approx([0.3, 0.3006203, 0.455, 0.6011921], abs=1e-6)


def test_a_variant_that_ends_lower_gets_there_as_fast():
    found = lower(eq1, 0.05)(np.array([0.0, 2542.0, 1e12]))
    assert found == pytest.approx([0.3, 0.3 + 0.26 / 2, 0.56], abs=1e-9)
    assert lower(eq1, 0.4)(np.array([0.0, 2542.0, 1e12])) == pytest.approx(0.3)  # no lower than it begins


@pytest.mark.parametrize(
    ("difference", "found"), [(0.001, 0.01), (0.01, 0.01), (0.027, 0.02), (0.029, 0.04), (0.3, 0.32)]
)
def test_variants_are_simulated_at_powers_of_two_of_a_hundredth(difference, found):
    assert grid_difference(difference) == pytest.approx(found)


def test_of_a_slower_variant_the_lower_end_counts_and_of_a_lower_one_the_upper():
    studies = [Interval(estimate=0.25, lo=0.10, hi=None), Interval(estimate=0.17, lo=0.05, hi=0.4)]
    ends, sd = ends_and_sd("compute", studies, 0.2, 0.0009)
    assert ends == pytest.approx([0.15, 0.12])
    assert sd == pytest.approx(math.sqrt((0.05**2 + 0.03**2) / 2 + 0.0009))
    studies = [Interval(estimate=-0.05, lo=-0.10, hi=None), Interval(estimate=-0.03, lo=None, hi=0.01)]
    ends, sd = ends_and_sd("ceiling", studies, 0.04, 0.0)
    assert ends == pytest.approx([math.inf, 0.04])
    assert sd == pytest.approx(0.01)  # an estimate without its end is none


def test_the_wider_kind_of_variant_gives_the_half_width():
    assert widest([[0.02, 0.04, 0.03], [0.05, 0.01, 0.04]]) == pytest.approx(0.04)
    assert widest([[0.02, 0.04, 0.03], [0.05, math.inf, math.inf]]) is None


def test_the_variant_differs_by_what_is_looked_for(monkeypatch):
    """Intervals that widen with the difference by a known rule; the difference seen is that of its own variant."""
    runs, between = simulated_runs(), 2 * 0.0075**2 / 3
    monkeypatch.setattr(SimulatedRuns, "variant", lambda self, kind, difference: (kind, difference))

    def studied(question, runs, variant, sizes):
        assert variant[0] == "ends lower"
        half_width = 0.02 + variant[1] / 2
        return [Interval(estimate=-variant[1], lo=-variant[1] - half_width, hi=-variant[1] + half_width)]

    monkeypatch.setattr("ablations.answers.half_widths.studied", studied)
    # From .04 on: .02 + .04 / 2 + .8416 sd = .0452, which is simulated at .04 again.
    found = looked_for("ceiling", runs, Sizes(num_variants=3, num_seeds=3))
    assert found == pytest.approx(0.04 + norm.ppf(0.8) * math.sqrt(between), abs=1e-6)
    # With one seed .0489 of .04, at .04 again; four times the spread lies at .0757, then at .08 .0957, at .08 again.
    wider = replace(known(0.03), run_sd=0.0045)
    runs = SimulatedRuns(known=wider, compute=COMPUTE, samples=SAMPLES, settings=PLAIN)
    found = looked_for("ceiling", runs, Sizes(num_variants=3, num_seeds=1))
    assert found == pytest.approx(0.06 + norm.ppf(0.8) * math.sqrt(2) * 0.03, abs=1e-6)


def test_a_variant_that_is_slower_has_open_ends_where_the_reference_has_none():
    """Readings to 3.5 times C_mid, of which a variant that needs twice the compute has seen half."""
    runs = simulated_runs(compute=np.arange(0.0, 9_001.0, 450.0))
    of_reference, of_variant = (
        np.mean([fit.ceiling.hi is not None for fit in fits])
        for fits in (runs.reference, runs.variant("slower", math.log(2)))
    )
    assert of_reference > 0.85
    assert of_variant < 0.75


@pytest.mark.slow
def test_sweeps_see_the_ceiling_and_the_compute_that_were_foretold():
    seeds = 2
    sights = curve_sights(simulated_runs(), num_variants=4, num_seeds=seeds)
    rng = np.random.default_rng(61)
    called: dict[OfLaw, list[bool]] = {"ceiling": [], "compute": []}
    for _ in range(16):
        for question in called:
            seen = sights[question].seen
            assert seen is not None
            shift = {"C_mid": 2542.0 * math.exp(seen)} if question == "compute" else {}
            fall = seen if question == "ceiling" else 0.0
            runs = {"reference": [simulated(rng, A=0.61) for _ in range(seeds)]}
            runs |= {name: [simulated(rng, A=0.61 - fall, **shift) for _ in range(seeds)] for name in "abc"}
            lines = compare(runs, dict.fromkeys(runs, 1.0), "reference").variants[1:]
            said = [line.answers[question].verdict for line in lines]
            called[question] += [verdict in ("ceiling down", "more compute") for verdict in said]
    # 48 pairs, three to a reference: a standard error of about .08.
    assert np.mean(called["ceiling"]) == pytest.approx(0.8, abs=0.2)
    assert np.mean(called["compute"]) == pytest.approx(0.8, abs=0.2)


def simulated(rng, *, A, **law):
    """A fit of one run whose own ceiling lies about A, noise written as a loop."""
    score = eq1(COMPUTE, A=A + 0.0075 * rng.standard_normal(), **law)
    noise, measured = 0.0, []
    for rate in score:
        noise = 0.4 * noise + 0.0045 * math.sqrt(1 - 0.4**2) * rng.standard_normal()
        measured.append(rng.binomial(SAMPLES, rate + noise) / SAMPLES)
    return fit_curve(
        Curve(name="run", compute=COMPUTE, score=np.array(measured), samples=np.full(COMPUTE.size, SAMPLES))
    )
