"""Polynomials through Chebyshev points, against functions that they are made from."""

import numpy as np
import pytest

from ablations.fit.engine.chebyshev import Polynomials, last_coefficients
from ablations.fit.engine.family import NO_SHAPE

BOX = ((-2.0, -1.7), (0.3, 0.7))


def smooth(p, q):
    return 1 / (1 + np.exp(np.exp(q) * p)) ** 2


def test_a_smooth_function_is_found_from_a_few_points():
    polynomials = Polynomials(box=BOX, num=15)
    coefficients = polynomials.coefficients(smooth(*polynomials.points()))
    p, q = np.linspace(*BOX[0], 41), np.linspace(*BOX[1], 31)
    expected = smooth(p[:, None], q).ravel()
    assert polynomials.on_grid(coefficients, p, q) == pytest.approx(expected, abs=1e-14)
    terms = polynomials.terms(np.repeat(p, 31), np.tile(q, 41))
    assert terms @ coefficients.ravel() == pytest.approx(expected, abs=1e-14)
    assert last_coefficients(coefficients) < 1e-13


def test_what_varies_along_p_alone_needs_no_points_along_q():
    polynomials = Polynomials(box=(BOX[0], NO_SHAPE), num=15)
    p, q = polynomials.points()
    assert p.size == 15
    assert not q.any()
    coefficients = polynomials.coefficients(smooth(p, 0.5))
    p = np.linspace(*BOX[0], 41)
    assert polynomials.on_grid(coefficients, p, np.zeros(1)) == pytest.approx(smooth(p, 0.5), abs=1e-14)
    assert last_coefficients(coefficients) < 1e-13


def test_a_function_with_a_kink_shows_it_in_its_last_coefficients():
    polynomials = Polynomials(box=BOX, num=15)
    p, q = polynomials.points()
    kinked = np.stack([np.abs(p + 1.83), np.abs(q - 0.51), smooth(p, q)])
    is_smooth = last_coefficients(polynomials.coefficients(kinked)) < 1e-13
    assert is_smooth.tolist() == [False, False, True]
