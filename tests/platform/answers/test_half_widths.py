"""What is foretold, against SciPy's noncentral t and against studies that are simulated and compared one by one."""

import math

import numpy as np
import pytest
from curves import eq1
from scipy.stats import nct, t

from ablations.answers.half_widths import Sizes, ceiling_sight, level_sight, sight_of
from ablations.answers.known_scale import KnownScale, RunSpread
from ablations.answers.repeats import Repeats
from ablations.answers.run_to_run import run_to_run
from ablations.answers.simulated_runs import SimulatedRuns
from ablations.answers.student import interval_of
from ablations.fit.options import FitSettings

COMPUTE = np.arange(0.0, 16_001.0, 800.0)
SAMPLES = 16_000
PLAIN = FitSettings()


def known(sd: float, *, run_sd: float = 0.0045, rho: float = 0.4) -> KnownScale:
    spread = RunSpread(level=sd, ceiling=sd, compute=None, freedom=0)
    return KnownScale(law=eq1, run_sd=run_sd, autocorrelation=rho, prompts=1000, sampling_share=1.0, spread=spread)


@pytest.mark.parametrize("freedom", [2.0, 4.0, 10.0, 18.0])
def test_a_difference_that_is_seen_has_the_power_of_a_noncentral_t(freedom):
    sight = sight_of(0.01**2, freedom)
    assert sight.half_width == pytest.approx(0.01 * t(freedom).ppf(0.975))
    power = nct(freedom, sight.seen / 0.01).sf(t(freedom).ppf(0.975))
    assert power == pytest.approx(0.8, abs=0.05)


def test_one_seed_sees_nothing_unless_other_sweeps_tell_the_spread():
    pilot = Repeats.of([0.6, 0.62, 0.61, 0.59], [0.0] * 4)
    assert Sizes(num_variants=9, num_seeds=1).freedom([]) == 0
    assert Sizes(num_variants=9, num_seeds=1).freedom([pilot]) == 3
    assert level_sight(simulated_runs(sd=0.01), Sizes(num_variants=9, num_seeds=1)).seen is None


@pytest.mark.parametrize(("num_variants", "num_seeds", "sd"), [(9, 3, 0.015), (2, 5, 0.0075)])
def test_four_in_five_levels_that_differ_by_the_smallest_difference_are_seen(num_variants, num_seeds, sd):
    sight = level_sight(simulated_runs(sd=sd), Sizes(num_variants=num_variants, num_seeds=num_seeds))
    late = COMPUTE[COMPUTE >= 16_000 * 2 / 3]
    own_variance = float(np.mean(eq1(late) * (1 - eq1(late)))) / SAMPLES / 6.667  # a third of 20 intervals of 800
    rng = np.random.default_rng([16, num_variants, num_seeds])
    seen, half_widths = [], []
    for _ in range(400):
        levels = 0.55 + math.hypot(sd, math.sqrt(own_variance)) * rng.standard_normal((num_variants, num_seeds))
        levels[1] += sight.seen
        starts = [f"{i}" for i in range(num_seeds)]
        runs = [Repeats.of(variant, [own_variance] * num_seeds, starts) for variant in levels]
        difference = run_to_run(runs).of_difference(runs[1], runs[0])
        found = interval_of([difference], difference.estimate)
        seen.append(found.lo > 0)
        half_widths.append((found.hi - found.lo) / 2)
    assert np.mean(seen) == pytest.approx(0.8, abs=0.08)
    assert sight.half_width == pytest.approx(np.median(half_widths), rel=0.12)


def simulated_runs(settings=PLAIN, *, compute=COMPUTE, sd=0.0075):
    return SimulatedRuns(known=known(sd), compute=compute, samples=SAMPLES, settings=settings)


def test_a_ceiling_of_the_task_bounds_the_fits_and_one_below_the_curves_is_left_out(monkeypatch):
    monkeypatch.setattr("ablations.answers.simulated_runs.NUM_CURVES", 2)
    below, above = (simulated_runs(FitSettings(ceiling=ceiling)).reference for ceiling in (0.5, 0.7))
    assert [fit.settings.ceiling for fit in below] == [None, None]  # the law ends at .60
    assert [fit.settings.ceiling for fit in above] == [0.7, 0.7]


def test_a_ceiling_holds_the_error_of_each_fit_and_the_spread_of_runs():
    sizes = Sizes(num_variants=4, num_seeds=3)
    quiet, loud = (ceiling_sight(simulated_runs(sd=sd), sizes) for sd in (0.0, 0.03))
    assert quiet.half_width is not None
    assert 0 < quiet.half_width < 0.03
    spread = t(sizes.freedom([])).ppf(0.975) * 0.03 * math.sqrt(2 / 3)
    assert loud.half_width == pytest.approx(math.hypot(quiet.half_width, spread), rel=0.01)


def test_readings_that_end_at_the_bend_bound_no_ceiling():
    sight = ceiling_sight(simulated_runs(compute=np.arange(0.0, 2_501.0, 125.0)), Sizes(num_variants=4, num_seeds=2))
    assert sight.open > 0.5
    assert (sight.half_width, sight.seen) == (None, None)
