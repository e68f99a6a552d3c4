"""The run-to-run spread of a study from its own runs, as its comparison estimates it, for designs based on them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ablations.answers.compare import run_to_run_spreads, that_count
from ablations.answers.known_scale import RunSpread
from ablations.answers.questions import LEVEL, asked_at
from ablations.answers.repeats import NO_OTHERS, OtherSweeps, Repeats
from ablations.answers.run_to_run import RunToRun
from ablations.fit.result import Fit


def own_spread(fits: Mapping[str, Sequence[Fit]], reference: str, others: OtherSweeps = NO_OTHERS) -> RunSpread | None:
    """The spread by the comparison's own function, from the fits of every variant and from other sweeps; None if
    nothing is repeated.

    In the study's own differences a variant whose seeds lie further apart than others counts with its own variance. A
    level needs no rise, so runs that do not rise count as they do in the comparison.
    """
    counted, footing = that_count(fits, reference) if fits else (dict(fits), None)
    compute, baseline = footing and footing.compute, counted.pop(reference, [])
    variants = [*([baseline] if baseline else []), *counted.values()]
    spreads = run_to_run_spreads(variants, baseline, others, compute)
    if not spreads["level"].is_known:
        return None
    contrasts = [
        found
        for some in counted.values()
        if baseline and (found := asked_at(LEVEL, compute).on_one_footing([some, baseline], "")) is not None
    ]
    spread = RunSpread.of(spreads)
    return replace(spread, level=_level_sd(spreads["level"], contrasts)) if contrasts else spread


def _level_sd(spread: RunToRun, contrasts: Sequence[Sequence[Repeats]]) -> float:
    """The standard deviation of levels behind these differences, without the errors of readings."""
    of_run = [
        spread.of_difference(variant, baseline).variance / (1 / len(variant.values) + 1 / len(baseline.values))
        for variant, baseline in contrasts
    ]
    own = [variance for sides in contrasts for side in sides for variance in side.own_variances]
    return float(np.sqrt(max(np.mean(of_run) - np.mean(own), 0.0)))
