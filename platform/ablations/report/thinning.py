"""Readings thinned for a screen: each point is the mean of neighbours."""

from collections.abc import Sequence

import numpy as np

from ablations.findings.results import Results

MOST_POINTS = 2400
"""Limit on the markers of a figure; more cannot be told apart on a screen."""
LEAST_POINTS_OF_RUN = 12


def most_points_of_run(num_runs: int) -> int:
    """Limit on the points of each run in a figure with this number of runs."""
    return max(LEAST_POINTS_OF_RUN, MOST_POINTS // max(num_runs, 1))


def thinned(compute: np.ndarray, score: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """At most `most` points: means of neighbouring readings in groups of nearly equal size, and the size of each group.

    thinned([1, 2, 3, 4], [.1, .3, .5, .7], 2) is ([1.5, 3.5], [.2, .6], [2, 2])
    """
    parts = min(most, compute.size)
    chunks = [(np.array_split(values, parts)) for values in (compute, score)]
    means = [np.array([part.mean() for part in chunk]) for chunk in chunks]
    return means[0], means[1], np.array([part.size for part in chunks[0]])


def thinned_note(results: Results, focus: Sequence[str]) -> str:
    """A note if the points of a figure of these variants are means of readings; else empty."""
    runs = [run for name in focus for run in results.variant(name).runs if run.curve is not None]
    most = most_points_of_run(len(runs))
    sizes = [run.curve.compute.size / most for run in runs if run.curve is not None]
    if max(sizes, default=0) <= 1:
        return ""
    return f"Each point is the mean of up to {int(np.ceil(max(sizes)))} neighbouring evaluations."
