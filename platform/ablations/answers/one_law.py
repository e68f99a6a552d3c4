"""Ceilings of several runs under one law, unknown but the same for all of them.

The weight of a family differs from run to run, though the runs share a law: readings that end nearer to the bend say
less about it. If each fit kept its own weights, a slower variant would keep the families that its readings do not
reject, end higher under them, and pass for a higher ceiling. So each family has one weight for all runs of a
difference, the average of their weights. The benchmark `pairs` in benchmarks/law_doubt.py shows the effect.

A run without an upper end counts with the level it has reached, which rests on no law (`differences`). Such a run has
no say in the law of the others, since it would give families without a ceiling to a reference that rejects them.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from ablations.fit.engine.family import FAMILIES
from ablations.fit.result import Fit


def ceilings_under_one_law(fits: Sequence[Fit]) -> list[np.ndarray]:
    """Draws of A of each fit, shape (num_draws,) each; draw i of all fits comes from one family.

        w_k = mean of the weight of family k over the fits that have an upper end, over all if none has

    Family k has a share w_k of the draws, each fit's own under that family. A fit that rejects a family has draws of
    eq. 1 in its place.
    """
    having = [fit for fit in fits if fit.ceiling.hi is not None] or fits
    weights = [float(np.mean([fit.alternatives.weights[family.name] for fit in having])) for family in FAMILIES]
    num_draws = fits[0].draws.A.size
    ends = np.rint(num_draws * np.cumsum([0.0, *weights])).astype(int)
    shares = (slice(int(start), int(end)) for start, end in pairwise(ends))
    rows = {family.name: share for family, share in zip(FAMILIES, shares, strict=True)}
    return [_drawn(fit, rows) for fit in fits]


def _drawn(fit: Fit, rows: dict[str, slice]) -> np.ndarray:
    draws = fit.draws.A.copy()
    for other in fit.alternatives.others:
        share = rows[other.family.name]
        draws[share] = np.resize(other.ceilings, share.stop - share.start)  # repeats draws if there are too few
    return draws
