"""The promise of a campaign: the chance of two false keeps, and levels by LORD++."""

import math

import numpy as np
import pytest

from ablations.answers.promise import AFTER, BEFORE, FDR, keep_level, lord_weight


def test_at_most_one_keep_is_false_in_95_percent_of_campaigns_of_equal_proposals():
    rng, num, proposals = np.random.default_rng(5), 40_000, 200
    kept = np.zeros(num, int)
    for number in range(1, proposals + 1):
        none, some = (keep_level("at_most_one", number, before, proposals=proposals) for before in ((), (1,)))
        kept += rng.random(num) < np.where(kept > 0, some, none)
    a, b = BEFORE, AFTER
    of_poisson = 1 - math.exp(-a) - a * math.exp(-b) * (1 - math.exp(-(a - b))) / (a - b)
    assert np.mean(kept > 1) == pytest.approx(of_poisson, abs=0.003)
    assert np.mean(kept > 1) < 0.05


def test_weights_of_lord_add_up_to_less_than_one():
    # The sum to 1e6, and from there the integral: with u = sqrt(ln x) that of 2 u^3 e^-u.
    u = math.sqrt(math.log(1e6))
    rest = lord_weight(1) / math.log(2) * 2 * (u**3 + 3 * u**2 + 6 * u + 6) * math.exp(-u)
    assert sum(map(lord_weight, range(1, 1_000_001))) + rest == pytest.approx(1, abs=0.002)
    assert sum(map(lord_weight, range(1, 1_000_001))) + rest < 1


def test_a_keep_earns_level_for_later_proposals_by_lord():
    w = FDR / 2
    assert keep_level("fdr", 1, (), proposals=200) == pytest.approx(w * lord_weight(1))
    assert keep_level("fdr", 7, (3, 5), proposals=200) == pytest.approx(
        w * lord_weight(7) + (FDR - w) * lord_weight(4) + FDR * lord_weight(2)
    )
    assert keep_level("fdr", 3, (3, 5), proposals=200) == pytest.approx(w * lord_weight(3))  # kept after it had begun


@pytest.mark.parametrize("share", [0.0, 0.1])
def test_false_keeps_stay_below_the_promised_share_under_lord(share):
    rng = np.random.default_rng(7)
    false_shares = []
    for _ in range(400):
        kept, false = [], 0
        for number in range(1, 101):
            is_better = rng.random() < share
            if is_better or rng.random() < keep_level("fdr", number, kept, proposals=100):
                kept.append(number)
                false += not is_better
        false_shares.append(false / max(len(kept), 1))
    assert np.mean(false_shares) <= FDR
