"""Standard normals between two ends, against SciPy's truncated normal."""

import mpmath
import numpy as np
import pytest
from scipy.stats import kstest, norm, truncnorm

from ablations.fit.engine.truncated import log_between, truncated_normals


@pytest.mark.parametrize(("lo", "hi"), [(-1.0, 2.0), (-30.0, 30.0), (3.0, 4.0), (8.0, 9.0), (-9.0, -8.0)])
def test_draws_are_those_of_a_truncated_normal(lo, hi):
    num = 20_000
    ends = np.full(num, lo), np.full(num, hi), np.full(num, hi - lo)
    distance, inside = truncated_normals(*ends, np.random.default_rng(0))
    assert kstest(lo + distance, truncnorm(lo, hi).cdf).pvalue > 0.01
    # sf keeps its digits in the upper tail, where a difference of cdf has none.
    expected = norm.sf(lo) - norm.sf(hi) if lo > 0 else norm.cdf(hi) - norm.cdf(lo)
    assert inside == pytest.approx(np.full(num, expected), rel=1e-9)
    assert log_between(*(end[:1] for end in ends)) == pytest.approx(np.log(expected), rel=1e-9)


@pytest.mark.parametrize("lo", [0.0, -0.7, 2.3, -9.0, 30.0])
@pytest.mark.parametrize("width", [1e-4, 1.1e-8, 0.9e-8, 1e-12, 1e-16, 1e-30, 1e-90])
def test_a_narrow_interval_keeps_its_probability(lo, width):
    with mpmath.workdps(150):
        exact_lo, exact_hi = mpmath.mpf(lo), mpmath.mpf(lo) + mpmath.mpf(width)
        upper = [mpmath.erfc(end / mpmath.sqrt(2)) / 2 for end in (exact_lo, exact_hi)]
        expected = float(mpmath.log(upper[0] - upper[1]))
    ends = np.array([lo]), np.array([lo + width]), np.array([width])
    assert log_between(*ends) == pytest.approx(expected, abs=1e-6)
    many = ends[0].repeat(1000), ends[1].repeat(1000), ends[2].repeat(1000)
    distance, inside = truncated_normals(*many, np.random.default_rng(0))
    assert np.log(inside) == pytest.approx(np.full(1000, expected), abs=1e-6)
    assert distance.mean() / width == pytest.approx(0.5, abs=0.05)
    assert ((distance >= 0) & (distance <= width)).all()


def test_beyond_the_arithmetic_a_draw_stays_in_its_range_and_has_no_probability():
    lo, hi = np.array([50.0, -60.0]), np.array([60.0, -50.0])
    distance, inside = truncated_normals(lo, hi, hi - lo, np.random.default_rng(0))
    assert ((distance >= 0) & (distance <= hi - lo)).all()
    assert inside.tolist() == [0.0, 0.0]
