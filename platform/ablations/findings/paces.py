"""Remarks on the pace of runs, their compute per step, which a time in another unit, a wait or a lost time changes.

>>> [one.text for one in remarks_on_paces(runs, "GPU-hours")]
['new: 3 of 3 seeds took 1,000 times more compute a step than the other runs (82 against 0.082 GPU-hours). Look ...']
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ablations.findings.remark import Remark, by_variant, remark_on, seeds_said
from ablations.readings.fitted_run import FittedRun
from ablations.text import compute_text, counted

FAR_APART = 30.0
"""Ratio of the paces of two runs above which their times may be in different units: seconds to minutes are 60."""
SLOW_TIMES = 10.0
"""Ratio to the usual pace of a run above which an interval between two evaluations is slow."""
QUANTILE_OF_PACES = 0.25
"""Quantile of the paces of a run that counts as its usual one."""
LARGE_SHARE = 0.05
"""Share of a run's compute above which the excess of its slow intervals matters."""
FEWEST_INTERVALS = 4
"""Minimum number of intervals between evaluations that show a usual pace."""


def remarks_on_paces(runs: Sequence[FittedRun], compute_name: str) -> Iterator[Remark]:
    """A remark for each variant with runs whose steps cost far more or less than those of the other runs, and for each
    variant with runs of which some intervals are far slower than usual."""
    paces = {run.name: found for run in runs if (found := _paces(run)).size}
    usual = {name: float(np.quantile(found, QUANTILE_OF_PACES)) for name, found in paces.items()}
    every = sorted(usual.values())
    if not every or every[0] <= 0:
        return
    middle = every[(len(every) - 1) // 2]
    for is_more in (True, False):

        def is_far(run: FittedRun, is_more: bool = is_more) -> bool:
            pace = usual.get(run.name, middle)
            return pace > FAR_APART * middle if is_more else pace * FAR_APART < middle

        for name, some, number in by_variant(runs, is_far):
            own = float(np.median([usual[run.name] for run in some]))
            ratio, word = (own / middle, "more") if is_more else (middle / own, "less")
            said = (
                f"{seeds_said(some, number)} took {ratio:,.0f} times {word} compute a step than "
                f"the other runs ({compute_text(own)} against {compute_text(middle)} {compute_name})"
            )
            after = " Look for times in another unit, such as milliseconds, and for steps that count something else."
            yield remark_on("pace", name, some, number, said, after, weight="warning")
    slow = {name: text for name, text in ((run.name, _slow(run, paces, usual)) for run in runs) if text}
    for name, some, number in by_variant(runs, lambda run: run.name in slow):
        listed = "; ".join(f"seed {run.seed}: {slow[run.name]} {compute_name}" for run in some)
        said = f"{seeds_said(some, number)} took far more compute than usual for some steps ({listed})"
        after = " A wait, or a time in another unit, is no compute of training; it moves the scores along the axis."
        yield remark_on("pace", name, some, number, said, after, weight="warning")


def _paces(run: FittedRun) -> np.ndarray:
    """The compute per step between each two evaluations after the first; empty if there are too few, or no steps."""
    if run.curve is None or run.curve.step is None or run.curve.step.size <= FEWEST_INTERVALS:
        return np.zeros(0)
    steps = np.diff(run.curve.step)
    return np.zeros(0) if np.any(steps <= 0) else np.diff(run.curve.compute) / steps


def _slow(run: FittedRun, of_runs: Mapping[str, np.ndarray], usual_of: Mapping[str, float]) -> str:
    """Words on the slow intervals of a run, if they change its compute; the first may hold what begins a run."""
    if run.name not in of_runs:
        return ""
    assert run.curve is not None
    assert run.curve.step is not None
    paces, usual = of_runs[run.name], usual_of[run.name]
    slow = paces > SLOW_TIMES * usual
    slow[0] = False
    excess = float(np.sum(((paces - usual) * np.diff(run.curve.step))[slow]))
    spent = float(run.curve.compute[-1] - run.curve.compute[0])
    if excess <= LARGE_SHARE * spent:
        return ""
    first, times = int(np.argmax(slow)), float(np.max(paces[slow])) / usual
    where = f"{run.curve.step[first]:g} to {run.curve.step[first + 1]:g}"
    more = int(slow.sum()) - 1
    others = f" and {counted(more, 'later interval')}" if more else ""
    return f"steps {where}{others}, up to {times:,.0f} times, {compute_text(excess)} of {compute_text(spent)}"
