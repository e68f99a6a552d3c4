"""The share of the differences between variants that goes with a setting."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import f_oneway, ncf

from ablations_dashboard.run_table.importance import groups_of_setting, share_of_groups, shares_of_settings

LEVELS = np.array([0.50, 0.52, 0.51, 0.60, 0.61, 0.59, 0.55, 0.56, 0.57])
GROUPS = np.repeat([0, 1, 2], 3)


def test_the_estimate_is_epsilon_squared_and_the_ends_have_the_quantiles_of_a_noncentral_f():
    # Means .51, .60, .56, of all 5.01 / 9; squares within 6 x .0001.
    within, between = 0.0006, 3 * ((0.51 - 5.01 / 9) ** 2 + (0.60 - 5.01 / 9) ** 2 + (0.56 - 5.01 / 9) ** 2)
    share = share_of_groups(LEVELS, GROUPS)
    assert share.estimate == pytest.approx(1 - (within / 6) / ((within + between) / 8))
    F = f_oneway(LEVELS[:3], LEVELS[3:6], LEVELS[6:]).statistic
    for end, tail in ((share.lo, 0.975), (share.hi, 0.025)):
        assert ncf.cdf(F, 2, 6, 9 * end / (1 - end)) == pytest.approx(tail, abs=1e-4)


def test_the_interval_holds_the_true_share_in_95_percent_of_studies():
    rng = np.random.default_rng(52)
    means, sd, groups = np.array([0.0, 0.5, 1.0]), 1.0, np.repeat([0, 1, 2], 6)
    variance = float(np.mean((means - means.mean()) ** 2))
    truth, held = variance / (variance + sd**2), 0
    for _ in range(600):
        share = share_of_groups(means[groups] + sd * rng.standard_normal(18), groups)
        held += share.lo <= truth <= share.hi
    assert 0.95 - 3 * 0.0089 <= held / 600 <= 0.95 + 3 * 0.0089  # three standard errors of a share of 600


def test_a_setting_without_effect_reaches_0_and_the_one_with_it_is_first():
    rng = np.random.default_rng(1)
    cells = [(loss, lr, size) for loss in ("cispo", "dapo") for lr in (1e-4, 2e-4, 4e-4) for size in (16, 32)]
    table = pd.DataFrame(
        [
            {"variant": f"v{at}", "loss": loss, "lr": lr, "size": size, "compute": 1.0,
             "level": 0.6 - 0.05 * (loss == "dapo") + 0.004 * rng.standard_normal()}
            for at, (loss, lr, size) in enumerate(cells)
            for _ in range(2)
        ]
    )  # fmt: skip
    first, *others = shares_of_settings(table, ["size", "lr", "loss"], "level")
    assert (first.setting, first.num_groups) == ("loss", 2)
    assert first.share.lo > 0.7
    assert {one.setting for one in others} == {"lr", "size"}
    assert [one.share.lo for one in others] == [0.0, 0.0]


def test_settings_for_which_there_are_too_few_variants_have_no_share():
    table = pd.DataFrame(
        {
            "variant": list("abcd"),
            "loss": list("xyxy"),
            "lr": [1, 2, 3, 4],
            "compute": 1.0,
            "level": [0.1, 0.2, 0.3, 0.4],
        }
    )
    assert shares_of_settings(table, ["loss", "lr"], "level") == []
    assert shares_of_settings(table.assign(compute=0.5), ["loss"], "level") == []


def test_numbers_of_many_values_are_quarters_and_a_missing_setting_is_a_group():
    assert groups_of_setting(pd.Series(np.arange(8.0))).tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert groups_of_setting(pd.Series([1.0, 2.0, np.nan, 1.0])).tolist() == [0, 1, 2, 0]
