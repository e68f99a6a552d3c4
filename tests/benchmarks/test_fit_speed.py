"""How long fits take beside SciPy's `curve_fit`, measured in turns: limits on the ratios of benchmarks/fit_speed.py."""

import json

import pytest
from fit_speed import ratios, simulated_curves, typical_ms
from places import REPOSITORY

LIMITS = {"point_fit": 16.0, "profile": 190.0, "fit_with_posterior": 480.0, "find_collapse": 8.0}


def test_fits_take_no_more_than_a_known_multiple_of_curve_fit():
    found = ratios(typical_ms(simulated_curves(10)))
    assert found.keys() == LIMITS.keys()
    assert {name: ratio for name, ratio in found.items() if ratio > LIMITS[name]} == {}


@pytest.mark.parametrize("name", LIMITS)
def test_the_recorded_ratios_lie_well_below_the_limits(name):
    recorded = json.loads((REPOSITORY / "benchmarks" / "results" / "fit_speed.json").read_text())
    assert LIMITS[name] / 4 < recorded["over_curve_fit"][name] < LIMITS[name] / 1.5
