"""Numbers and messages as people read them."""

import re
from collections.abc import Mapping
from typing import Any

from scalerl.quantities import counted as counted

MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86400


def duration_text(seconds: float, *, digits: int = 3) -> str:
    """A duration in its own unit: `0.5 min`, `30 min`, `1.5 h`, `72 h`, `12.5 days`. An estimate deserves two digits.

    `humanize` writes "an hour" for 80 minutes or "2 hours, 29 minutes and 24 seconds", neither of which is a limit's
    "1.33 h" nor an estimate's "2.5 h".
    """
    unit, length = "days", DAY_S
    if seconds <= 3 * DAY_S:
        unit, length = ("h", HOUR_S) if seconds >= HOUR_S else ("min", MINUTE_S)
    return f"{float(f'{seconds / length:.{digits}g}'):g} {unit}"


def four_digits(number: float) -> str:
    """`0.2513`, `1200`, `80000`: never a power of ten."""
    return f"{float(f'{number:.4g}'):.10g}"


def setting_text(value: Any) -> str:
    """A setting of a recipe as YAML has it on one line: `dapo`, `0.0001`, `true`, `{type: grpo, clip: 0.1}`."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.10g}"
        case Mapping():
            return "{" + ", ".join(f"{name}: {setting_text(inner)}" for name, inner in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(setting_text(inner) for inner in value) + "]"
    return str(value)


def changes_text(overrides: Mapping[str, Any]) -> str:
    """What a variant changes of the reference: `loss.type = dapo, batch.prompts = 32`; empty for the reference."""
    return ", ".join(f"{path} = {setting_text(value)}" for path, value in overrides.items())


LEAST_PLAIN, LEAST_POWER = 1e-4, 1e9
"""Computes between these are shown without a power of ten."""


def compute_text(compute: float) -> str:
    """Compute, in any unit, as tables and sentences show it: four digits, 10,380 or 0.2513; 1.038e+21 from 1e9 on."""
    if compute and not LEAST_PLAIN <= abs(compute) < LEAST_POWER:
        return f"{compute:.4g}"
    return f"{float(f'{compute:.4g}'):,.10g}"


def interval_text(estimate: float | None, lo: float | None, hi: float | None, form: str) -> str:
    """`0.610 [0.590, 0.633]`; an end that is not bounded reads `…`, an estimate that is not given is left out."""
    return _interval(*(None if number is None else format(number, form) for number in (estimate, lo, hi)))


def compute_interval_text(estimate: float | None, lo: float | None, hi: float | None) -> str:
    """The same of computes: `10,380 [9,512, 12,040]`."""
    return _interval(*(None if number is None else compute_text(number) for number in (estimate, lo, hi)))


def _interval(estimate: str | None, lo: str | None, hi: str | None) -> str:
    if lo is None and hi is None:
        return estimate or ""
    return f"{estimate or ''} [{lo or '…'}, {hi or '…'}]".strip()


DIFFERING = re.compile(
    r"0x[0-9a-f]+|tmp[\w]{8}\b|\b(?=[a-z]*\d)[0-9a-f]{7,}\b|\d+(?:\.\d+)?(?:e[+-]?\d+)?", re.IGNORECASE
)
"""What the same error says differently of each run: addresses, temporary names, run ids and hashes, numbers."""


def cause(message: str) -> str:
    """What two runs that failed alike have in common: `"step # of run #"` of `"step 12 of run 81d2f0a95c3b"`."""
    return DIFFERING.sub("#", message)
