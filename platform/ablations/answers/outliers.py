"""Outlying runs and variants: collapsed runs, and variants whose seeds scatter more than other variants' seeds.

The common spread leaves out collapsed runs, and variants whose seeds scatter more by an F test (`run_to_run`), which
get wider intervals. The outlying run is named, with the evaluation at which it left its siblings.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from ablations.answers.level import levels_of, reaching, read_at_of
from ablations.answers.run_to_run import RunToRun
from ablations.fit.result import Fit


@dataclass(frozen=True, kw_only=True)
class Unlike:
    """A variant with an outlying run or spread.

    Unlike(variant="loo-loss", num_seeds=3, collapsed=("loo-loss-s2",), ratio=0.0, run="", apart=0.0, since=None)
    """

    variant: str
    num_seeds: int
    collapsed: tuple[str, ...] = ()
    """Names of its collapsed runs."""
    ratio: float = 0.0
    """Standard deviation of its levels divided by that of all variants, if it stands out; else 0."""
    run: str = ""
    """Name of the run that lies far from its siblings; empty for two seeds, since either could be the outlier."""
    apart: float = 0.0
    """Level of the outlying run minus the mean of its siblings."""
    since: float | None = None
    """Compute of the first evaluation since which the run has stayed apart from its siblings."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"collapsed": list(self.collapsed)}


def unlike_siblings(
    curves_by_variant: Mapping[str, Sequence[Fit]], compute: float, spread: RunToRun
) -> tuple[Unlike, ...]:
    """Variants with a collapsed run, and variants that stand out at the `compute` of the comparison; `spread` is the
    run-to-run spread of levels.
    """
    found = (_unlike(name, fits, compute, spread) for name, fits in curves_by_variant.items())
    return tuple(one for one in found if one.collapsed or one.ratio)


def _unlike(name: str, fits: Sequence[Fit], compute: float, spread: RunToRun) -> Unlike:
    collapsed = tuple(fit.curve.name for fit in fits if fit.verdict == "collapsed")
    whole = Unlike(variant=name, num_seeds=len(fits), collapsed=collapsed)
    compute = read_at_of(fits, compute)
    some = [fit for fit in reaching(fits, compute) if fit.verdict != "collapsed"]
    levels = levels_of(some, compute)
    if levels is None or not levels.freedom or not (ratio := spread.stands_out(levels)):
        return whole
    values = np.array(levels.values)
    if values.size == 2:
        return replace(whole, ratio=ratio, apart=float(abs(values[0] - values[1])))
    apart = (values - values.mean()) * values.size / (values.size - 1)  # from the mean of the others
    worst = int(np.argmax(np.abs(apart)))
    others = [fit for number, fit in enumerate(some) if number != worst]
    since = _since(some[worst], others, float(apart[worst]), compute)
    return replace(whole, ratio=ratio, run=some[worst].curve.name, apart=float(apart[worst]), since=since)


def _since(fit: Fit, others: Sequence[Fit], apart: float, compute: float) -> float | None:
    """The first evaluation from which the run has stayed at least half as far away, on the same side."""
    own = fit.curve
    read = own.compute <= compute
    siblings = np.mean([np.interp(own.compute[read], one.curve.compute, one.curve.score) for one in others], axis=0)
    is_away = (own.score[read] - siblings) * np.sign(apart) > abs(apart) / 2
    near = np.flatnonzero(~is_away)
    first = int(near[-1]) + 1 if near.size else 0
    return float(own.compute[read][first]) if first < is_away.size else None
