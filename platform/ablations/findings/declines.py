"""Remarks on runs whose pass rate collapsed or fell, and on variants that end below their start."""

from collections.abc import Iterable, Sequence

import numpy as np

from ablations.findings.remark import MOST_NAMED, Remark, by_variant, remark_on, seeds_said
from ablations.fit.curve import Curve
from ablations.fit.fall import Change, change_of, end_below_their_start, find_fall
from ablations.home.plan import Plan
from ablations.readings.fitted_run import FittedRun
from ablations.text import compute_text


def collapse_of(run: FittedRun, hours_name: str) -> str:
    """The decline of a collapsed run, from the last reading fitted to the last one due: `0.703 at 1,000 to 0.609 at
    1,250 GPU-hours`; empty for any other run.
    """
    if run.fit is None or run.curve is None or run.fit.verdict != "collapsed":
        return ""
    compute = run.curve.compute
    first, last = (
        int(np.searchsorted(compute, end, side="right")) - 1 for end in (run.fit.window[1], run.fit.settings.fit_to)
    )
    return _from_to(run.curve, first, last, hours_name)


def fall_of(run: FittedRun, hours_name: str) -> str:
    """The fall of a run that has not collapsed, with a fit or too short for one, from its highest reading to its last
    one due: `0.959 at 0 to 0.367 at 400 GPU-hours`; empty if it did not fall.
    """
    if run.curve is None or (run.fit is not None and run.fit.verdict != "fell"):
        return ""
    fit_to = np.inf if run.fit is None else run.fit.settings.fit_to
    if (fall := find_fall(run.curve, fit_to)) is not None:
        return _from_to(run.curve, fall.peak, fall.last, hours_name)
    if run.fit is None:
        return ""
    last = int(np.searchsorted(run.curve.compute, fit_to, side="right")) - 1
    return _from_to(run.curve, int(np.argmax(run.curve.score[: last + 1])), last, hours_name)


def _from_to(curve: Curve, first: int, last: int, hours_name: str) -> str:
    before, after = (f"{curve.score[at]:.3f} at {compute_text(float(curve.compute[at]))}" for at in (first, last))
    return f"{before} to {after} {hours_name}"


def remarks_on_collapses(plan: Plan, runs: Sequence[FittedRun]) -> Iterable[Remark]:
    """A remark for each variant with collapsed runs, from what to what each of them fell."""
    for name, some, number in by_variant(runs, lambda run: bool(collapse_of(run, ""))):
        falls = "; ".join(f"seed {run.seed}: {collapse_of(run, plan.hours_name)}" for run in some)
        left_out = "the fall are left out of its fit" if len(some) == 1 else "the falls are left out of their fits"
        after = f" The intervals of {name} include this; those of other variants do not."
        yield remark_on(
            "collapsed",
            name,
            some,
            number,
            f"{seeds_said(some, number)} collapsed ({falls}; evaluations after {left_out})",
            after,
        )


def remarks_on_falls(plan: Plan, runs: Sequence[FittedRun]) -> Iterable[Remark]:
    """A remark for each variant with runs that fell without a collapse, from what to what each of them fell."""
    for name, some, number in by_variant(runs, lambda run: bool(fall_of(run, ""))):
        falls = "; ".join(f"seed {run.seed}: {fall_of(run, plan.hours_name)}" for run in some)
        yield remark_on("fell", name, some, number, f"{seeds_said(some, number)} fell ({falls})")


def remarks_on_ends_below_start(plan: Plan, runs: Sequence[FittedRun]) -> Iterable[Remark]:
    """The variants whose runs end below their first evaluation, in one remark; if all do, training harms the model."""
    changes: dict[str, list[Change]] = {run.variant: [] for run in runs}
    for run in runs:
        if run.curve is not None and (change := change_of(run.curve, plan.fit_to_gpu_hours)) is not None:
            changes[run.variant].append(change)
    if below := {name: some for name, some in changes.items() if end_below_their_start(some)}:
        numbers = ", ".join(
            f"{name} {np.mean([one.start for one in some]):.3f} to {np.mean([one.end for one in some]):.3f}"
            for name, some in below.items()
        )
        yield Remark(
            kind="below its start",
            weight="warning",
            text=f"{below_start_said(tuple(below), len(changes))} (first evaluation to last third: {numbers}).",
            variants=tuple(below),
            runs=tuple(run.name for run in runs if run.variant in below),
            num_runs=len(runs),
        )


def below_start_said(names: Sequence[str], num_variants: int) -> str:
    """`Both variants end below their start: RL makes this model worse`, or the names of the variants that do."""
    if len(names) == num_variants > 1:
        every = "Both" if num_variants == 2 else f"All {num_variants}"
        return f"{every} variants end below their start: RL makes this model worse"
    if len(names) > MOST_NAMED:
        return f"{len(names)} of {num_variants} variants end below their start"
    return f"{' and '.join(names)} {'ends below its' if len(names) == 1 else 'end below their'} start"
