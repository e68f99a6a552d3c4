"""How much of the differences between variants goes with each setting alone, with its 95 % interval.

Variants are grouped by the value of a setting, numbers of many values into four groups of equal size; y_gi is the mean
of the runs of variant i of group g. With k groups and n variants, F = (S_b / (k - 1)) / (S_w / (n - k)) of the squares
between and within groups has a noncentral F distribution whose noncentrality is n s / (1 - s), where s is the share of
the variance that goes with the groups. So the interval of s is that of the noncentrality (Steiger 2004, Beyond the F
test, doi:10.1037/1082-989X.9.2.164), and its estimate is epsilon squared, 1 - (S_w / (n - k)) / (S / (n - 1)), which a
setting without effect has at 0 on average. What other settings change counts as chance.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import ncfdtr, ncfdtrinc

from ablations.answers.interval import TAIL, Interval
from ablations_dashboard.run_table.groups import counting_runs

LEAST_SETTINGS = 3
"""Least number of settings that vary; the effects of fewer are in the table of groups and in the grid."""
LEAST_WITHIN = 3
"""Least number of degrees of freedom within the groups."""
MOST_GROUPED = 6
"""Limit on the values of a number that are groups of their own."""
QUARTERS = 4


@dataclass(frozen=True, kw_only=True)
class Importance:
    """The share of one setting: `Importance(setting="loss.type", num_groups=2, share=Interval(...))`."""

    setting: str
    num_groups: int
    share: Interval


def shares_of_settings(table: pd.DataFrame, settings: list[str], measure: str) -> list[Importance]:
    """The share of each setting that varies and leaves `LEAST_WITHIN` degrees of freedom, the largest first."""
    known = counting_runs(table, measure)
    first = known.groupby("variant", sort=False).first()
    means = np.array([one[measure].mean() for _, one in known.groupby("variant", sort=False)], dtype=float)
    found = []
    for setting in settings:
        groups = groups_of_setting(pd.Series(first[setting])) if len(first) else np.array([])
        number = len(set(groups))
        if number > 1 and means.size - number >= LEAST_WITHIN and means.std() > 0:
            share = share_of_groups(means, groups)
            found.append(Importance(setting=setting, num_groups=number, share=share))
    return sorted(found, key=lambda one: -one.share.estimate)


def groups_of_setting(values: pd.Series) -> np.ndarray:
    """The group of each variant; one without the setting is in a group of its own kind."""
    if pd.api.types.is_numeric_dtype(values) and values.nunique() > MOST_GROUPED:
        values = pd.Series(pd.qcut(values, QUARTERS, labels=False, duplicates="drop"))
    return np.asarray(pd.factorize(values, use_na_sentinel=False)[0])


def share_of_groups(values: np.ndarray, groups: np.ndarray) -> Interval:
    """The share of the variance of the values that goes with their groups."""
    number, n = len(set(groups.tolist())), values.size
    of_group = np.unique(groups, return_inverse=True)[1]
    means = np.bincount(of_group, values) / np.bincount(of_group)
    within = float(((values - means[of_group]) ** 2).sum())
    between = float(((means[of_group] - values.mean()) ** 2).sum())
    freedom = (number - 1, n - number)
    if within <= 0:
        return Interval(estimate=1.0, lo=1.0, hi=1.0)
    F = (between / freedom[0]) / (within / freedom[1])
    estimate = 1 - (within / freedom[1]) / ((within + between) / (n - 1))
    lo, hi = (_share(F, freedom, tail, n) for tail in (1 - TAIL, TAIL))
    estimate = max(estimate, 0.0)
    return Interval(estimate=estimate, lo=min(lo, estimate), hi=max(hi, estimate))


def _share(F: float, freedom: tuple[int, int], tail: float, n: int) -> float:
    """The share at which an F of this size or less has the probability `tail`; 0 if it is less likely even without any
    effect."""
    if ncfdtr(*freedom, 0.0, F) <= tail:
        return 0.0
    noncentrality = float(ncfdtrinc(*freedom, tail, F))
    return noncentrality / (noncentrality + n)
