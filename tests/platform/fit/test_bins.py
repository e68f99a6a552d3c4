"""Thousands of readings are fitted by their means in bins, and what the fit says does not change."""

import numpy as np
import pytest

from ablations.fit import bins
from ablations.fit.bins import binned
from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_curve
from ablations.fit.words import in_words

A, B, C_MID, R_0 = 0.61, 1.92, 2542.0, 0.3


def many(num, *, sd=0.01, seed=0, samples=None):
    compute = np.linspace(0, 8000, num + 1)
    law = np.append(R_0, R_0 + (A - R_0) / (1 + (C_MID / compute[1:]) ** B))
    score = np.clip(law + sd * np.random.default_rng(seed).standard_normal(num + 1), 0, 1)
    return Curve(name="c", compute=compute, score=score, samples=samples and np.full(num + 1, samples))


def test_bins_hold_means_and_sums_and_end_where_the_window_does():
    curve = many(3000, samples=160)
    means = binned(curve, 1000.0, 7500.0)
    assert (means.compute[0], means.score[0], means.samples[0]) == (0.0, curve.score[0], 160)
    inside = (curve.compute > 1000) & (curve.compute <= 7500)
    in_window = (means.compute > 1000) & (means.compute <= 7500)
    assert np.count_nonzero(inside) == 2437
    assert np.count_nonzero(in_window) == 271  # nine in each, as 300 bins of eight would not hold them
    assert means.samples.sum() == curve.samples.sum()
    assert means.score[in_window] @ means.samples[in_window] == pytest.approx(160 * curve.score[inside].sum())
    first = np.flatnonzero(inside)[:9]
    assert means.score[in_window][0] == pytest.approx(curve.score[first].mean())
    assert means.compute[in_window][0] == pytest.approx(curve.compute[first].mean())


def test_bins_say_what_the_readings_say(monkeypatch):
    curve = many(900)
    whole = fit_curve(curve)
    monkeypatch.setattr(bins, "MOST_READINGS", 500)
    means = fit_curve(curve)
    assert (whole.binned_from, means.binned_from, means.points) == (None, 900, 300)
    for name in ("A", "B", "C_mid"):
        lo, hi = getattr(whole, f"{name}_lo"), getattr(whole, f"{name}_hi")
        assert getattr(means, name) == pytest.approx(getattr(whole, name), abs=0.1 * (hi - lo)), name
        for end in ("lo", "hi"):
            found, wanted = getattr(means, f"{name}_{end}"), getattr(whole, f"{name}_{end}")
            assert found == pytest.approx(wanted, abs=0.25 * (hi - lo)), (name, end)


def test_twenty_thousand_readings_are_fitted_and_the_words_say_how():
    fit = fit_curve(many(20_000, sd=0.05, samples=100), fit_from=1500)
    assert fit.eq1_lo < A < fit.eq1_hi
    assert fit.verdict == "resolved"
    # 55 in each, as 300 bins of 54 would not hold them.
    assert "Eq. 1 on 296 bins that average 16,250 evaluations from 1,5" in in_words(fit)
