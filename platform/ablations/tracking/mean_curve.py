"""The mean pass rate of a variant's seeds against compute, for the variant's own run in MLflow.

>>> one, two = (Curve(name="", compute=[0, 10, 20], score=[0.3, end, end]) for end in (0.5, 0.7))
>>> mean_curve([one, two])[1]
MeanReading(step=1, compute=10.0, pass_rate=0.6)
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ablations.fit.curve import Curve


class MeanReading(NamedTuple):
    """One point: `MeanReading(step=120, compute=213.0, pass_rate=0.41)`."""

    step: int
    compute: float
    pass_rate: float


def mean_curve(curves: Sequence[Curve]) -> list[MeanReading]:
    """The mean over curves at each reading of the first curve, up to the compute that all reach; linear between
    readings.

    The step is the first curve's, or the number of its readings so far. Without curves the list is empty.
    """
    if not curves:
        return []
    first = curves[0]
    compute = first.compute[first.compute <= min(float(curve.compute[-1]) for curve in curves)]
    mean = np.mean([np.interp(compute, curve.compute, curve.score) for curve in curves], axis=0)
    steps = np.arange(first.compute.size) if first.step is None else first.step
    return [
        MeanReading(step=int(step), compute=float(at), pass_rate=float(score))
        for step, at, score in zip(steps[: compute.size], compute, mean, strict=True)
    ]
