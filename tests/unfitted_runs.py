"""Runs of a sweep with curves and without fits, for remarks on curves."""

import numpy as np

from ablations.fit.curve import Curve
from ablations.readings.fitted_run import FittedRun


def unfitted_run(variant: str, seed: int, *, compute, score, step=None, samples=None) -> FittedRun:
    """A run with this curve."""
    name = f"{variant}-s{seed}"
    curve = Curve(
        name=name,
        compute=np.array(compute, dtype=float),
        score=np.array(score, dtype=float),
        step=None if step is None else np.array(step, dtype=float),
        samples=None if samples is None else np.array(samples, dtype=float),
    )
    return FittedRun(
        name=name,
        curve=curve,
        fit=None,
        variant=variant,
        seed=seed,
        id=name,
        cost_gpu_hours=float(curve.compute[-1]),
        code_versions=(),
    )
