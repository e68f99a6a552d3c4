"""Standard normals between two ends, against SciPy's truncated normal."""

import numpy as np
import pytest
from scipy.stats import kstest, norm, truncnorm

from ablations.fit.engine.truncated import log_between, truncated_normals


@pytest.mark.parametrize(("lo", "hi"), [(-1.0, 2.0), (-30.0, 30.0), (3.0, 4.0), (8.0, 9.0), (-9.0, -8.0)])
def test_draws_are_those_of_a_truncated_normal(lo, hi):
    num = 20_000
    drawn, inside = truncated_normals(np.full(num, lo), np.full(num, hi), np.random.default_rng(0))
    assert kstest(drawn, truncnorm(lo, hi).cdf).pvalue > 0.01
    # sf keeps its digits in the upper tail, where a difference of cdf has none.
    expected = norm.sf(lo) - norm.sf(hi) if lo > 0 else norm.cdf(hi) - norm.cdf(lo)
    assert inside == pytest.approx(np.full(num, expected), rel=1e-9)
    assert log_between(np.array([lo]), np.array([hi])) == pytest.approx(np.log(expected), rel=1e-9)


def test_beyond_the_arithmetic_a_draw_stays_in_its_range_and_has_no_probability():
    lo, hi = np.array([50.0, -60.0]), np.array([60.0, -50.0])
    drawn, inside = truncated_normals(lo, hi, np.random.default_rng(0))
    assert ((lo <= drawn) & (drawn <= hi)).all()
    assert inside.tolist() == [0.0, 0.0]
