"""The compute at which the runs of a comparison are compared, and the runs that have reached it.

    C = the greatest compute that at least half of all runs have reached

A run within 10 % of C counts too, since runs of one length seldom end at the same compute, and all are read where the
first of these ends. A run that ended before, because it failed, was cancelled or its log is short, is left out: it does
not decide at which compute the others are compared. It is not missing at random if its recipe ended it, as a collapse
does, so a remark names it, how far it came, and why it ended. A run that is still training is left out until it gets
there. A run that went further is read at C, so that all differences stand on one footing.

If no run of a variant has got that far, the variant is read at its own compute, the one up to which the most of
its training counts (number of runs times compute), and that compute stands wherever the number does: it may be compared
with the reference, which has been there, but not ranked among the others. If the reference itself has not come so far,
C is the reference's own compute, for all variants.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

MOST_APART = 1.1
"""Largest ratio of two last computes at which two runs count as equally long."""
NEARLY = 1.02
"""Largest ratio of two computes at which a level is the same."""


@dataclass(frozen=True, kw_only=True)
class Footing:
    """The compute at which each variant of a comparison is read: `Footing(compute=1875.0, own={"dapo": 422.0})`."""

    compute: float
    """The compute of the comparison."""
    own: Mapping[str, float] = field(default_factory=dict)
    """The compute of each variant that has no run at the comparison's compute."""

    def of(self, variant: str) -> float:
        """The compute at which a variant is read; runs that end earlier are left out."""
        return self.own.get(variant, self.compute)


def footing_of(ends: Mapping[str, Sequence[float]], reference: str | None = None) -> Footing | None:
    """The footing of variants by the last compute of each of their runs; None if no run has one.

    >>> footing_of({"scalerl": [100.0, 100.0], "dapo": [100.0, 22.0], "gspo": [22.0, 30.0]}, "scalerl")
    Footing(compute=100.0, own={'gspo': 22.0})
    """
    every = sorted((end for of_variant in ends.values() for end in of_variant), reverse=True)
    if not every:
        return None
    middle = every[(len(every) - 1) // 2]
    of_reference = ends.get(reference, ()) if reference is not None else ()
    if of_reference and max(of_reference) * MOST_APART < middle:
        middle = most_counts(of_reference)
    compute = min(end for end in every if end * MOST_APART >= middle)
    return Footing(
        compute=compute,
        own={name: at for name, some in ends.items() if some and (at := read_at(some, compute)) < compute},
    )


def read_at(ends: Sequence[float], compute: float) -> float:
    """The compute at which a variant is read, by the last compute of its runs and the compute of the comparison."""
    return compute if max(ends) >= compute else most_counts(ends)


def most_counts(ends: Sequence[float]) -> float:
    """The compute C with the largest product of C and the number of runs that have reached it, the least of equal ones.

    >>> most_counts([60.0, 60.0, 5.0])
    60.0
    """
    return max(sorted(ends), key=lambda end: end * sum(other >= end for other in ends))
