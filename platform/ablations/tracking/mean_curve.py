"""The mean pass rate of a variant's seeds against compute, for the variant's own run in MLflow."""

from collections.abc import Sequence

import numpy as np

from ablations.fit.curve import Curve


def mean_curve(curves: Sequence[Curve]) -> list[tuple[int, float, float]]:
    """The mean over curves at each reading of the first curve, and at the compute that all reach, where it ends; linear
    between readings.

    Each entry is step, compute and pass rate. The step is the first curve's, or the number of its readings so far; that
    of the end lies between two of them, in the proportion of their compute. Without curves the list is empty.

    >>> one, two = (Curve(name="", compute=[0, 10, 20], score=[0.3, end, end]) for end in (0.5, 0.7))
    >>> mean_curve([one, two])[1]
    (1, 10.0, 0.6)
    """
    if not curves:
        return []
    first, end = curves[0], min(float(curve.compute[-1]) for curve in curves)
    compute = first.compute[first.compute <= end]
    steps = np.arange(first.compute.size) if first.step is None else first.step
    kept = steps[: compute.size].astype(int).tolist()
    if compute.size and compute[-1] < end:
        compute = np.append(compute, end)
        kept.append(max(kept[-1] + 1, round(float(np.interp(end, first.compute, steps)))))
    mean = np.mean([np.interp(compute, curve.compute, curve.score) for curve in curves], axis=0)
    return list(zip(kept, compute.tolist(), mean.tolist(), strict=True))
