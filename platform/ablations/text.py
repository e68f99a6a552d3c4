"""Numbers and messages as people read them."""

import re


def counted(number: int, thing: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


LEAST_PLAIN, LEAST_POWER = 1e-4, 1e9
"""Computes between these are shown without a power of ten."""


def compute_text(compute: float) -> str:
    """Compute, in any unit, as tables and sentences show it: four digits, 10,380 or 0.2513; 1.038e+21 from 1e9 on."""
    if compute and not LEAST_PLAIN <= abs(compute) < LEAST_POWER:
        return f"{compute:.4g}"
    return f"{float(f'{compute:.4g}'):,.10g}"


DIFFERING = re.compile(
    r"0x[0-9a-f]+|tmp[\w]{8}\b|\b(?=[a-z]*\d)[0-9a-f]{7,}\b|\d+(?:\.\d+)?(?:e[+-]?\d+)?", re.IGNORECASE
)
"""What the same error says differently of each run: addresses, temporary names, run ids and hashes, numbers."""


def cause(message: str) -> str:
    """What two runs that failed alike have in common: `"step # of run #"` of `"step 12 of run 81d2f0a95c3b"`."""
    return DIFFERING.sub("#", message)
