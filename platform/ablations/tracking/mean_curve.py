"""The mean pass rate of a variant's seeds against compute, for the variant's own run in MLflow."""

from collections.abc import Sequence

import numpy as np

from ablations.fit.curve import Curve


def mean_curve(curves: Sequence[Curve]) -> list[tuple[int, float, float]]:
    """The mean over curves at each reading of the first curve, up to the compute that all reach; linear between
    readings.

    Each entry is step, compute and pass rate. The step is the first curve's, or the number of its readings so far.
    Without curves the list is empty.

    >>> one, two = (Curve(name="", compute=[0, 10, 20], score=[0.3, end, end]) for end in (0.5, 0.7))
    >>> mean_curve([one, two])[1]
    (1, 10.0, 0.6)
    """
    if not curves:
        return []
    first = curves[0]
    compute = first.compute[first.compute <= min(float(curve.compute[-1]) for curve in curves)]
    mean = np.mean([np.interp(compute, curve.compute, curve.score) for curve in curves], axis=0)
    steps = np.arange(first.compute.size) if first.step is None else first.step
    return list(zip(steps[: compute.size].astype(int).tolist(), compute.tolist(), mean.tolist(), strict=True))
