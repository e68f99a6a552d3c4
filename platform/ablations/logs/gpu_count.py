"""The number of GPUs that a trainer's own throughput implies, beside the one that was given."""

from collections.abc import Mapping, Sequence

import numpy as np

from ablations.logs.presets import Preset

MOST_OFF = 0.05
"""Largest relative difference that rounding explains."""


def gpus_note(columns: Mapping[str, np.ndarray], preset: Preset, seconds: Sequence[str], gpus: float) -> str:
    """A note if tokens / (seconds * throughput), the throughput being that of one GPU, is not `gpus`."""
    names = [*preset.throughput, *seconds]
    if not preset.throughput or len(seconds) != 1 or any(name not in columns for name in names):
        return ""
    tokens, throughput, time = (columns[name] for name in names)
    if not tokens.size == throughput.size == time.size:
        return ""
    known = (tokens > 0) & (throughput > 0) & (time > 0)
    if not known.any():
        return ""
    found = float(np.median(tokens[known] / throughput[known] / time[known]))
    if abs(found - gpus) <= MOST_OFF * gpus:
        return ""
    return (
        f"{preset.throughput[1]} is that of {found:.3g} GPUs, but --gpus says {gpus:g}; compute counts the latter, so "
        'correct --gpus, or give each run its own with --compute, as in "cumsum(' + seconds[0] + ") * "
        f'{found:.3g} / 3600"'
    )
