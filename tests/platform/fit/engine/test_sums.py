"""Sums over readings against loops over them, for curves that share noises and for curves with one each."""

import numpy as np
import pytest

from ablations.fit.engine.sums import sums_of_each, weighted_sums

G = np.array([[0.1, 0.5, 0.9], [0.2, 0.3, 0.4]])
Y = np.array([0.3, 0.45, 0.6])
ONE = np.array([1.0, 0.8, 1.2])
PRECISIONS = np.array([[2.0, 1.0, 0.5], [4.0, 3.0, 0.25]])


def by_loops(curve, noise):
    """The six sums of one curve under one noise, over readings one by one."""
    names = ("u_u", "u_g", "g_g", "u_y", "g_y", "y_y")
    total = dict.fromkeys(names, 0.0)
    for reading in range(3):
        of = {"g": G[curve, reading], "y": Y[reading], "u": ONE[reading] - G[curve, reading]}
        for name in names:
            total[name] += PRECISIONS[noise, reading] * of[name[0]] * of[name[2]]
    return total


def test_sums_of_curves_that_share_noises_are_those_of_loops():
    sums = weighted_sums(G, Y, ONE, PRECISIONS)
    for noise in range(2):
        for curve in range(2):
            right = by_loops(curve, noise)
            found = {name: getattr(sums, name)[noise, 0 if name == "y_y" else curve] for name in right}
            assert found == pytest.approx(right, rel=1e-14)


def test_sums_of_curves_with_one_noise_each_are_those_of_loops():
    sums = sums_of_each(G, Y, ONE, PRECISIONS)
    for curve in range(2):
        right = by_loops(curve, curve)
        assert {name: getattr(sums, name)[curve] for name in right} == pytest.approx(right, rel=1e-14)
