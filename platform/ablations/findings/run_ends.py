"""Remarks on runs that ended before the others of a comparison, and on the compute at which levels are read
(`ablations.answers.footing`).

>>> [one.text for one in remarks_on_ends(plan, runs, comparison=comparison, short={"dapo-s2"}, due=1875.0)]
['dapo: 1 of 3 seeds ended early (seed 2 was cancelled at 422 modelled GPU-hours) and does not count.']
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from ablations.answers.compare import Comparison
from ablations.answers.footing import MOST_APART, NEARLY
from ablations.answers.level import last_compute, level_of
from ablations.findings.declines import collapse_of, fall_of
from ablations.findings.remark import Remark, Weight, by_variant, remark_on, seeds_said
from ablations.findings.remarks import has_failed
from ablations.home.plan import Plan
from ablations.home.state import State
from ablations.readings.fitted_run import FittedRun
from ablations.text import compute_text

ENDED_BY_ITS_RECIPE = re.compile(r"diverge|not finite|non-finite|\b(?:nan|inf)\b", re.IGNORECASE)
"""Messages of runs that ended because of what they trained, not because of the machine."""


def remarks_on_ends(
    plan: Plan, runs: Sequence[FittedRun], *, comparison: Comparison, short: Collection[str], due: float
) -> list[Remark]:
    """The remarks on a comparison; `short` names the runs that end before their variant is read, and `due` is the
    compute at which levels would be read if all runs had reached their end.
    """
    return [
        *_read_early(plan, runs, comparison, due),
        *_ended_early(plan, runs, short),
        *_without_level(plan, runs, comparison, short),
    ]


def once_per_run(remarks: Sequence[Remark]) -> list[Remark]:
    """The remarks to show: of runs that failed and so do not count, one instead of two."""
    ended = {one.runs: one for one in remarks if one.kind == "ended early"}
    joined = {one.runs: one for one in remarks if one.kind == "failed" and one.runs in ended}
    return [
        replace(one, text=f"{one.text} {_not_counting(ended[one.runs])}")
        if one.runs in joined and one.kind == "failed"
        else one
        for one in remarks
        if one.kind != "ended early" or one.runs not in joined
    ]


def _not_counting(ended: Remark) -> str:
    """`It does not count. A run that its recipe ends is not missing by chance: ...`"""
    (variant,) = ended.variants
    does = "It does" if len(ended.runs) == 1 else "They do"
    return f"{does} not count.{ended.text.removeprefix(f'{variant}: {ended.clause}.')}"


def _read_early(plan: Plan, runs: Sequence[FittedRun], comparison: Comparison, due: float) -> Iterator[Remark]:
    """The compute at which levels are read, of the comparison and of single variants, if that is less than was due."""
    footing, unit, reference = comparison.footing, plan.compute_name, comparison.reference
    if footing.compute * NEARLY < due:
        ends = [last_compute(run.fit) for run in runs if run.fit is not None]
        is_by_reference = 2 * sum(end > footing.compute * MOST_APART for end in ends) >= len(ends)
        why = f"no run of {reference} got" if is_by_reference else "fewer than half of the runs got"
        later = " As runs go on, that compute changes." if any(map(_goes_on, runs)) else ""
        text = f"Levels are read at {compute_text(footing.compute)} of {compute_text(due)} {unit}; {why} much farther."
        yield Remark(kind="read early", weight="warning", text=f"{text}{later}")
    for name, at in footing.own.items():
        of_variant = [run for run in runs if run.variant == name]
        some = [run for run in of_variant if run.fit is not None]
        said = f"read at {compute_text(at)} {unit}, since none of its runs has reached {compute_text(footing.compute)}"
        after = f" So is {reference} beside it; {name} has no place in the ranking."
        yield remark_on("read early", name, some, len(of_variant), said, after, weight=_weight(some))


def _ended_early(plan: Plan, runs: Sequence[FittedRun], short: Collection[str]) -> Iterator[Remark]:
    """The runs whose levels do not count, how far each has come, and how it ended."""
    for name, some, number in by_variant(runs, lambda run: run.name in short):
        ends = "; ".join(
            f"seed {run.seed} {_end_of(run)} at {compute_text(run.cost_gpu_hours)} {plan.hours_name}" for run in some
        )
        does = "does" if len(some) == 1 else "do"
        of_what = " for the level" if any(run.state == State.STOPPED for run in some) else ""
        said = f"{seeds_said(some, number)} ended early ({ends}) and {does} not count{of_what}"
        yield remark_on("ended early", name, some, number, said, _no_chance(name, some), weight=_weight(some))


def _without_level(
    plan: Plan, runs: Sequence[FittedRun], comparison: Comparison, short: Collection[str]
) -> Iterator[Remark]:
    """The runs with too few evaluations where their variant is read, so that it has no level."""

    def is_without(run: FittedRun) -> bool:
        at = comparison.footing.of(run.variant)
        return run.fit is not None and run.name not in short and level_of(run.fit.curve, at) is None

    for name, some, number in by_variant(runs, is_without):
        at = f"{compute_text(comparison.footing.of(name))} {plan.compute_name}"
        said = (
            f"{seeds_said(some, number)} {'has' if number == 1 else 'have'} too few evaluations up to {at} for a level"
        )
        after = f" Evaluate more often, or compare runs that have all been evaluated several times before {at}."
        yield remark_on("no level", name, some, number, said, after, weight="warning")


def _weight(runs: Sequence[FittedRun]) -> Weight:
    """An error if a run was spoiled; runs that go on, or have ended as they were told to, were not."""
    return "warning" if all(_goes_on(run) or run.state in (State.DONE, State.STOPPED) for run in runs) else "error"


def _no_chance(name: str, some: Sequence[FittedRun]) -> str:
    """A warning if a run that does not count was ended by its recipe, so that it is not missing at random."""
    ended = [run for run in some if collapse_of(run, "") or fall_of(run, "") or ENDED_BY_ITS_RECIPE.search(run.message)]
    return f" A run that its recipe ends is not missing by chance: the others may flatter {name}." if ended else ""


def _goes_on(run: FittedRun) -> bool:
    """True if the run is training, or will be."""
    return run.state is not None and (run.state.is_active or run.state.waits or run.state == State.PREEMPTED)


def _end_of(run: FittedRun) -> str:
    """How a run ended: `failed`, `was cancelled`; `ends` for a run of another trainer."""
    if run.state is None:
        return "ends"
    if has_failed(run):
        return "failed"
    if run.state == State.DONE:
        return "ended"
    return f"is {run.state}" if _goes_on(run) else f"was {run.state}"
