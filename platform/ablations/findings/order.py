"""Variants of a comparison in another order."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from ablations.findings.fitted_variant import FittedVariant
    from ablations.findings.results import Results

OrderBy = Literal["level", "ceiling", "compute", "name"]


def in_order(results: "Results", by: OrderBy) -> "Results":
    """The results with the variants best first, or by name; the reference keeps its own place among them.

    `level` puts the largest difference in level first. `ceiling` puts the highest lower end of A first, since every
    A has one, and then the variants that do not rise. `compute` puts the smallest compute to the common target first.
    Variants without that number come last, in the plan's order.
    """
    ranked = sorted(results.variants, key=lambda variant: _rank(results, variant, by))
    return replace(results, variants=tuple(ranked))


def _rank(results: "Results", variant: "FittedVariant", by: OrderBy) -> tuple[bool, float, str]:
    """The place of a variant; one that is read at another compute than the others comes behind them."""
    if by == "name":
        return False, 0.0, variant.name
    if by == "ceiling":
        found = results.asymptote(variant)
        return False, (math.inf if found is None or not found.rises else -found.lo), ""
    line = results.compared(variant.name)
    answer = line and line.answers[by]
    if answer is None or answer.estimate is None:
        return True, math.inf, ""
    return answer.read_at is not None, (-answer.estimate if by == "level" else answer.estimate), ""
