"""Remarks on runs that are not independent: one has the evaluations of another, all of them or up to some compute.

Two scores agree by chance with a probability q = (equal pairs + 1) / (pairs + 2), where the pairs are the later
evaluations of both runs and the neighbours within each. A first part of k equal evaluations is no chance if q^k is
below one in a million.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from ablations.findings.remark import Remark
from ablations.readings.fitted_run import FittedRun
from ablations.text import compute_text

LEAST_DIFFERENT = 4
"""Two runs that agree in this many different scores cannot do so by chance."""
BY_CHANCE = 1e-6
"""Largest probability of an equal first part that counts as no chance."""


def remarks_on_copies(runs: Sequence[FittedRun], compute_name: str) -> Iterator[Remark]:
    """A remark for each run that equals an earlier one, or that begins as another seed of its variant did."""
    first: dict[tuple[bytes, bytes], FittedRun] = {}
    own: dict[str, list[FittedRun]] = {}
    for run in runs:
        if run.curve is None or np.unique(run.curve.score).size < LEAST_DIFFERENT:
            continue
        other = first.setdefault((run.curve.compute.tobytes(), run.curve.score.tobytes()), run)
        if other is run:
            own.setdefault(run.variant, []).append(run)
            continue
        idle = "seed" if other.variant == run.variant else "setting"
        text = (
            f"{other.name} and {run.name} have the same evaluations; one log may appear under two names, or the {idle} "
            "has no effect."
        )
        yield _remark(other, run, text, len(runs))
    for of_variant in own.values():
        forked: set[str] = set()
        for one, other in combinations(of_variant, 2):
            if other.name in forked or not (size := _equal_at_first(one, other)):
                continue
            forked.add(other.name)
            assert other.curve is not None
            until = f"{compute_text(other.curve.compute[size - 1])} {compute_name}"
            text = (
                f"{one.name} and {other.name} have the same first {size} evaluations, up to {until}: one continues a "
                "checkpoint of the other, or the seed had no effect until then. They are not independent, so the "
                "intervals are too narrow."
            )
            yield _remark(one, other, text, len(runs))


def _remark(one: FittedRun, other: FittedRun, text: str, num_runs: int) -> Remark:
    variants = tuple(dict.fromkeys((one.variant, other.variant)))
    names = (one.name, other.name)
    return Remark(kind="copies", weight="warning", text=text, variants=variants, runs=names, num_runs=num_runs)


def _equal_at_first(one: FittedRun, other: FittedRun) -> int:
    """The number of first evaluations that two runs share beyond chance; 0 if they do not."""
    assert one.curve is not None
    assert other.curve is not None
    size = min(one.curve.score.size, other.curve.score.size)
    a, b = one.curve.score[:size], other.curve.score[:size]
    equal = a == b
    first = size if equal.all() else int(np.argmin(equal))
    if np.unique(a[:first]).size < LEAST_DIFFERENT:
        return 0
    pairs = np.concatenate([equal[first:], a[1:] == a[:-1], b[1:] == b[:-1]])
    return first if ((pairs.sum() + 1) / (pairs.size + 2)) ** first < BY_CHANCE else 0
