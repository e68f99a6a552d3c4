"""The mean of each group of runs with its interval.

The interval is that of other seeds of the same variants: the squares left after the mean of each variant, over all runs
of the table, give one variance, and the mean of a group of n runs has that variance divided by n. So what the variants
of a group have apart from each other is no part of it. Runs that have not reached the budget do not count.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from ablations.answers.interval import TAIL, Interval


@dataclass(frozen=True, kw_only=True)
class RunGroup:
    """Runs with one value of a column: RunGroup(value="dapo", num_runs=15, num_counting=14, mean=Interval(...))."""

    value: object
    num_runs: int
    num_counting: int
    mean: Interval | None
    """None if no run counts; without ends if no variant of the table has a second run that counts."""
    lowest: float | None
    highest: float | None


@dataclass(frozen=True, kw_only=True)
class Spread:
    """The standard deviation of runs about the mean of their variant, with its degrees of freedom; 0 and 0 if no
    variant has two runs: `Spread(sd=0.0071, freedom=36)`."""

    sd: float
    freedom: int


def groups_of(table: pd.DataFrame, by: str, measure: str) -> list[RunGroup]:
    """A group per value of the column `by`, in the order of the values; rows without a value are left out."""
    spread = spread_within(table, measure)
    sizes = table.groupby(by, sort=True).size()
    known = counting_runs(table, measure).groupby(by)[measure].agg(["size", "mean", "min", "max"])
    numbers: dict[Any, Any] = dict(zip(known.index, known.itertuples(index=False), strict=True))
    return [_group(value, size, numbers.get(value), spread) for value, size in zip(sizes.index, sizes, strict=True)]


def _group(value: object, num_runs: int, numbers: Any, spread: Spread) -> RunGroup:
    if numbers is None:
        return RunGroup(value=value, num_runs=num_runs, num_counting=0, mean=None, lowest=None, highest=None)
    number, mean, lowest, highest = numbers
    half = float(stdtrit(spread.freedom, 1 - TAIL)) * spread.sd / math.sqrt(number) if spread.freedom else None
    lo, hi = (None, None) if half is None else (mean - half, mean + half)
    interval = Interval(estimate=mean, lo=lo, hi=hi)
    return RunGroup(
        value=value, num_runs=num_runs, num_counting=int(number), mean=interval, lowest=lowest, highest=highest
    )


def spread_within(table: pd.DataFrame, measure: str) -> Spread:
    """The spread of the runs that count about the mean of their variant."""
    known = counting_runs(table, measure)
    rates = known[measure].to_numpy(dtype=float)
    of_run, variants = pd.factorize(pd.Series(known["variant"]))
    freedom = rates.size - len(variants)
    if freedom == 0:
        return Spread(sd=0.0, freedom=0)
    means = np.bincount(of_run, rates) / np.bincount(of_run)
    return Spread(sd=math.sqrt(float(((rates - means[of_run]) ** 2).sum()) / freedom), freedom=freedom)


def counting_runs(table: pd.DataFrame, measure: str) -> pd.DataFrame:
    """The runs that have reached the budget and have the number."""
    return pd.DataFrame(table[(table["compute"] >= 1) & table[measure].notna()])
