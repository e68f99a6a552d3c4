"""Formats numbers and messages for people to read."""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from scalerl.quantities import counted as counted

MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86400


def duration_text(seconds: float, *, digits: int = 3) -> str:
    """A duration in a suitable unit: `0.04 s`, `0.5 min`, `30 min`, `1.5 h`, `72 h`, `12.5 days`. Use two digits for an
    estimate.

    `humanize` writes "an hour" for 80 minutes or "2 hours, 29 minutes and 24 seconds", neither of which is a limit's
    "1.33 h" nor an estimate's "2.5 h".
    """
    unit, length = "days", DAY_S
    if seconds <= 3 * DAY_S:
        unit, length = ("h", HOUR_S) if seconds >= HOUR_S else ("min", MINUTE_S) if seconds >= 6 else ("s", 1.0)
    return f"{float(f'{seconds / length:.{digits}g}'):g} {unit}"


def four_digits(number: float) -> str:
    """A number to four digits, never as a power of ten: `0.2513`, `1200`, `80000`."""
    return f"{float(f'{number:.4g}'):.10g}"


def at_scale(scale: str, *, before: str = "") -> str:
    """` at scale laptop`, after `before`; empty for a study whose trainer is a program, which has no scale."""
    return f"{before} at scale {scale}" if scale else ""


def setting_text(value: Any) -> str:
    """A recipe setting as one line of YAML: `dapo`, `0.0001`, `true`, `{type: grpo, clip: 0.1}`."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:.10g}" if math.isfinite(value) else float_word(value)
        case Mapping():
            return "{" + ", ".join(f"{name}: {setting_text(inner)}" for name, inner in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(setting_text(inner) for inner in value) + "]"
    return str(value)


def settings_json(value: Any) -> Any:
    """Settings as plain data for `--json`: numbers that JSON lacks become YAML's words `.inf`, `-.inf` and `.nan`."""
    match value:
        case float() if not math.isfinite(value):
            return float_word(value)
        case Mapping():
            return {name: settings_json(inner) for name, inner in value.items()}
        case list() | tuple():
            return [settings_json(inner) for inner in value]
    return value


def float_word(number: float) -> str:
    """YAML's word for a number that is not finite."""
    return ".nan" if math.isnan(number) else ".inf" if number > 0 else "-.inf"


def changes_text(overrides: Mapping[str, Any], own: Mapping[str, str] | None = None) -> str:
    """A variant's changes to the reference: `loss.type = dapo, batch.prompts = 32`; empty for the reference.

    `own` are the settings of the reference as text, which are then named: `loss.type = dapo instead of cispo`.
    """
    return ", ".join(_change_text(path, value, own or {}) for path, value in overrides.items())


def _change_text(path: str, value: Any, own: Mapping[str, str]) -> str:
    """One change; a block of which nothing but the type is given is named by its type."""
    if isinstance(value, Mapping) and list(value) == ["type"]:
        path, value = f"{path}.type", value["type"]
    said, before = f"{path} = {setting_text(value)}", own.get(path)
    return said if before in (None, setting_text(value)) else f"{said} instead of {before}"


LEAST_PLAIN, LEAST_POWER = 1e-4, 1e9
"""Compute between these is shown without a power of ten."""


def compute_text(compute: float) -> str:
    """Compute in any unit, to four digits, for tables and sentences: 10,380 or 0.2513; 1.038e+21 from 1e9 upwards."""
    if compute and not LEAST_PLAIN <= abs(compute) < LEAST_POWER:
        return f"{compute:.4g}"
    return f"{float(f'{compute:.4g}'):,.10g}"


def or_dots(compute: float | None) -> str:
    """The compute as text; `…` if there is none."""
    return "…" if compute is None else compute_text(compute)


def compute_title(compute_name: str) -> str:
    """The title of an axis of compute: "compute (GPU-hours)", or "compute" if the unit is unknown."""
    return "compute" if compute_name == "compute" else f"compute ({compute_name})"


RATIO = "ratio"
"""Format of ratios in tables and sentences, beside Python's own."""
TWO_DIGITS_FROM, TWO_DIGITS_TO = 0.0995, 99.995
"""Ratios between these are shown with two digits after the point, others to three digits."""


def ratio_text(ratio: float) -> str:
    """A ratio, for tables and sentences: 0.63, 1.31 or 12.50; to three digits where these would say little: 0.00104 or
    1,040.
    """
    if TWO_DIGITS_FROM <= ratio < TWO_DIGITS_TO:
        return f"{ratio:.2f}"
    short = float(f"{ratio:.3g}")
    return f"{short:,.10g}" if LEAST_PLAIN <= ratio < LEAST_POWER else f"{short:g}"


def formatted(number: float, form: str) -> str:
    """A number in a format of Python's, or as a ratio."""
    return ratio_text(number) if form == RATIO else format(number, form)


def interval_text(estimate: float | None, lo: float | None, hi: float | None, form: str) -> str:
    """An interval: `0.610 [0.590, 0.633]`. An unbounded end reads `…`; an estimate of None is left out."""
    return _interval(*(None if number is None else formatted(number, form) for number in (estimate, lo, hi)))


def compute_interval_text(estimate: float | None, lo: float | None, hi: float | None) -> str:
    """An interval of compute: `10,380 [9,512, 12,040]`."""
    return _interval(*(None if number is None else compute_text(number) for number in (estimate, lo, hi)))


def _interval(estimate: str | None, lo: str | None, hi: str | None) -> str:
    if lo is None and hi is None:
        return estimate or ""
    return f"{estimate or ''} [{lo or '…'}, {hi or '…'}]".strip()


DIFFERING = re.compile(
    r"0x[0-9a-f]+|tmp[\w]{8}\b|\b(?=[a-z]*\d)[0-9a-f]{7,}\b|\d+(?:\.\d+)?(?:e[+-]?\d+)?", re.IGNORECASE
)
"""Parts of an error message that differ between runs: addresses, temporary names, run ids, hashes and numbers."""


TOGETHER = "+"
"""Separator between two names of variants in the name of the variant with both changes."""


def parts_of(both: str, names: Iterable[str]) -> tuple[str, str] | None:
    """The two variants whose changes this one combines, by its name `a+b`; None if there are no two such variants."""
    known = set(names)
    for place, character in enumerate(both):
        if character == TOGETHER and (first := both[:place]) in known and (second := both[place + 1 :]) in known:
            return first, second
    return None


def capitalised(text: str) -> str:
    """The text with a capital first letter; the others stay as they are."""
    return f"{text[:1].upper()}{text[1:]}"


def cut_message(text: str, most: int) -> str:
    """A message on one line of at most `most` characters, cut in its middle: its beginning says what happened, and its
    end what to do.
    """
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    head = (most - len(" ... ")) * 3 // 5
    return f"{line[:head].rstrip()} ... {line[len(line) - (most - len(' ... ') - head) :].lstrip()}"


def cause(message: str) -> str:
    """The part that equal failures share: `"step # of run #"` for `"step 12 of run 81d2f0a95c3b"`."""
    return DIFFERING.sub("#", message)
