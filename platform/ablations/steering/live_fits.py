"""Fits of a sweep's runs while they grow: a run log is read and fitted again once it has a new evaluation."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ablations.errors import AblationsError
from ablations.fit.curve import Curve
from ablations.fit.fitting import fit_with
from ablations.fit.options import FitSettings
from ablations.fit.result import Fit
from ablations.home.home import Home
from ablations.readings.run_reading import recipe_and_seed, start_of
from ablations.readings.task_curves import curve_of
from ablations.steering.stopping import recent_truncation
from ablations.study.expand import SweepRun
from scalerl.run.run_log import read_rows


@dataclass(frozen=True, kw_only=True, eq=False)
class ReadLog:
    """The content of a run log when it was last read; by default nothing, as before the first time."""

    size: int = -1
    """Bytes."""
    curve: Curve | None = None
    """None without readings."""
    truncation: float | None = None
    """Share of truncated answers over the last training steps."""


class LiveFits:
    """The fits of a sweep's growing runs.

    >>> if fits.refresh(run): fits.newest(run, 2)
    """

    def __init__(self, home: Home, settings: FitSettings) -> None:
        self._home, self._settings = home, settings
        self.logs: dict[str, ReadLog] = defaultdict(ReadLog)
        self._fits: dict[tuple[str, int], Fit | None] = {}

    def refresh(self, run: SweepRun) -> bool:
        """Read the log again if an evaluation is due; True if there is a new one."""
        folder, before = self._home.run(run.id), self.logs[run.id]
        size = folder.metrics.stat().st_size if folder.metrics.exists() else 0
        if before.size == size or not self._is_due(run, before):
            return False
        try:
            rows = list(read_rows(folder.metrics))
            curve = curve_of(rows, f"{run.variant}-s{run.seed}", self._settings.task)
            curve = curve and replace(curve, start=start_of(recipe_and_seed(folder)))
        except ValueError:  # a damaged log has no curve; `platform compare` reports the damage
            rows, curve = [], None
        truncated = [row["truncated"] for row in rows if row["kind"] == "train" and "truncated" in row]
        self.logs[run.id] = ReadLog(size=size, curve=curve, truncation=recent_truncation(truncated))
        return num_readings(curve) > num_readings(before.curve)

    def _is_due(self, run: SweepRun, before: ReadLog) -> bool:
        """True if the run has passed a point of its evaluation grid that the last read curve lacks."""
        if before.curve is None:
            return True
        every = run.recipe.evaluation.every * run.recipe.compute_unit_gpu_hours
        compute = self._home.run(run.id).read_status().compute_gpu_hours
        return math.floor(compute / every) > math.floor(before.curve.compute[-1] / every)

    def newest(self, run: SweepRun, count: int) -> list[Fit]:
        """The fits after each of the last `count` evaluations; none with too few readings."""
        curve = self.logs[run.id].curve
        if curve is None:
            return []
        sizes = range(max(1, curve.compute.size - count + 1), curve.compute.size + 1)
        return [fit for size in sizes if (fit := self._fit(run, curve, size))]

    def fits(self, runs: Sequence[SweepRun]) -> list[Fit]:
        """The newest fit of each run that has one; a collapsed curve predicts nothing and is left out."""
        newest = [fit for run in runs for fit in self.newest(run, 1)]
        return [fit for fit in newest if fit.verdict != "collapsed"]

    def _fit(self, run: SweepRun, curve: Curve, size: int) -> Fit | None:
        """The fit of the first `size` readings, cached."""
        key = (run.id, size)
        if key not in self._fits:
            try:
                self._fits[key] = fit_with(curve.first(size), self._settings)
            except AblationsError:  # too few readings
                self._fits[key] = None
        return self._fits[key]


def num_readings(curve: Curve | None) -> int:
    """Number of evaluations after step 0."""
    return 0 if curve is None else int((curve.compute > 0).sum())
