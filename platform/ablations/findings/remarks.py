"""All remarks to read before the numbers: runs that collapsed or failed, studies that were shortened, and the like.

The list is made once, here. The terminal, `--json`, the pages, the reports and MLflow all read it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ablations.findings.best_so_far import remarks_on_best_so_far
from ablations.findings.copies import remarks_on_copies
from ablations.findings.declines import (
    collapse_of,
    fall_of,
    remarks_on_collapses,
    remarks_on_ends_below_start,
    remarks_on_falls,
)
from ablations.findings.held_out_changes import remarks_on_held_out_changes
from ablations.findings.paces import remarks_on_paces
from ablations.findings.remark import MOST_NAMED, Remark, by_variant, by_weight, remark_on, seeds_said
from ablations.findings.starts import remarks_on_starts
from ablations.findings.trainer_warnings import judged_warning, remarks_on_idle_runs, remarks_on_warnings
from ablations.home.labels import named_runs, run_name
from ablations.home.plan import Plan
from ablations.home.state import State
from ablations.home.stops import Stopped
from ablations.readings.fitted_run import FittedRun
from ablations.text import compute_text, counted, cut_message

if TYPE_CHECKING:
    from ablations.answers.compare import Comparison  # with SciPy's integration, which remarks on states do without
    from ablations.answers.outliers import Unlike

MOST_CAUSE = 600
"""Limit on the characters of a failure's message."""


def remarks_of(
    plan: Plan,
    runs: Sequence[FittedRun],
    *,
    comparison: "Comparison | None" = None,
    stops: Mapping[str, Stopped] | None = None,
    stopped: Mapping[str, Stopped] | None = None,
) -> tuple[Remark, ...]:
    """All remarks on these runs, the most serious first; `stopped` are the `stops` that ended a run before the
    budget."""
    stops, stopped = stops or {}, stopped or {}
    found = [
        *remarks_on_collapses(plan, runs),
        *remarks_on_falls(plan, runs),
        *_failed(plan, runs),
        *remarks_on_idle_runs(runs),
        *_shortened(plan),
        *_left_out(plan),
        *remarks_on_copies(runs, plan.compute_name),
        *remarks_on_paces(runs, plan.compute_name),
        *remarks_on_starts(plan.reference, runs),
        *remarks_on_held_out_changes(runs, plan.compute_name),
        *remarks_on_best_so_far(runs),
        *_code(runs),
        *_unfinished(plan, runs, stopped),
        *remarks_on_ends_below_start(plan, runs),
        *([] if comparison is None else _unlike(plan, comparison.unlike)),
        *_stopped(plan, stops, stopped),
        *remarks_on_warnings(runs),
        *_one_seed(runs),
    ]
    return by_weight(found)


def remarks_on_run(run: FittedRun, hours_name: str) -> tuple[Remark, ...]:
    """The remarks on one run by itself, the most serious first: its collapse or fall, and the warnings of its
    trainer."""
    found = []
    if decline := collapse_of(run, hours_name):
        text = f"the pass rate collapsed ({decline}); evaluations after the fall are left out of the fit"
        found.append(Remark(kind="collapsed", weight="error", text=text, runs=(run.name,), num_runs=1))
    if fall := fall_of(run, hours_name):
        text = f"the pass rate fell ({fall})"
        found.append(Remark(kind="fell", weight="error", text=text, runs=(run.name,), num_runs=1))
    for warning in run.warnings:
        kind, weight, text = judged_warning(run, warning)
        found.append(Remark(kind=kind, weight=weight, text=text, runs=(run.name,), num_runs=1))
    return by_weight(found)


def warnings_of_run(run: FittedRun, hours_name: str) -> tuple[str, ...]:
    """The remarks on one run as sentences without a full stop."""
    return tuple(one.text for one in remarks_on_run(run, hours_name))


def _failed(plan: Plan, runs: Sequence[FittedRun]) -> Iterable[Remark]:
    for name, some, number in by_variant(runs, has_failed):
        said = "; ".join(
            f"seed {run.seed} at {compute_text(run.cost_gpu_hours)} of {compute_text(plan.budget_gpu_hours)} "
            f"{plan.hours_name}: {_cause(run)}"
            for run in some
        )
        yield remark_on("failed", name, some, number, f"{seeds_said(some, number)} failed ({said})")


def has_failed(run: FittedRun) -> bool:
    """True if the run ended early without being asked to, or its process died without a message."""
    return run.state is not None and (run.state.is_failure or run.state == State.STALE)


def _cause(run: FittedRun) -> str:
    if run.state == State.STALE:
        return "its process died without a message"
    return cut_message(run.message, MOST_CAUSE).rstrip(".") or str(run.state)


def _left_out(plan: Plan) -> Iterable[Remark]:
    """A warning of seeds that the study has trained and no longer counts, and a note on runs with other settings."""
    if not plan.left_out:
        return
    own = {variant.name for variant in plan.variants}
    now = set(plan.run_names)
    seeds = [name for name in plan.left_out.values() if name not in now and name.rpartition("-s")[0] in own]
    others = [name for name in plan.left_out.values() if name not in seeds]
    if seeds:
        text = f"{plan.sweep} leaves out trained seeds, which count in none of its numbers: {named_runs(seeds)}."
        clause = f"without {counted(len(seeds), 'trained seed')}"
        yield Remark(kind="shortened", weight="warning", text=text, clause=clause)
    if others:
        text = (
            f"{counted(len(others), 'run')} of {plan.sweep} with other settings or code, or of other variants, count "
            f"no longer: {named_runs(others)}."
        )
        yield Remark(kind="left out", weight="note", text=text)


def _shortened(plan: Plan) -> Iterable[Remark]:
    if plan.begun is None:
        return
    is_narrower = plan.size.num_variants < plan.begun.num_variants
    begun, now = (plan.size_text(one, with_variants=is_narrower) for one in (plan.begun, plan.size))
    text = f"{plan.sweep} is shortened: the study started with {begun}; with --shorten its results use {now}."
    clause = f"shortened to {now}"
    yield Remark(kind="shortened", weight="warning", text=text, clause=clause)


def _code(runs: Sequence[FittedRun]) -> Iterable[Remark]:
    versions = sorted({version for run in runs for version in run.code_versions})
    if len(versions) > 1:
        text = f"The runs were trained with {len(versions)} versions of the code: {', '.join(versions)}."
        yield Remark(kind="code", weight="warning", text=text)
    if any(version.endswith("+dirty") for version in versions):
        text = "Some runs were trained with code that had been edited since its commit (+dirty)."
        yield Remark(kind="code", weight="warning", text=text)


def _unfinished(plan: Plan, runs: Sequence[FittedRun], stopped: Mapping[str, Stopped]) -> Iterable[Remark]:
    if plan.imported:  # the budget of another trainer is unknown
        return
    some = [
        run
        for run in runs
        if run.cost_gpu_hours < plan.budget_gpu_hours and run.id not in stopped and not has_failed(run)
    ]
    if some:
        have = "has" if len(some) == 1 else "have"
        text = f"{len(some)} of {counted(len(runs), 'run')} {have} not reached the budget."
        names = tuple(run.name for run in some)
        yield Remark(kind="unfinished", weight="warning", text=text, runs=names, num_runs=len(runs))


def _unlike(plan: Plan, found: "Sequence[Unlike]") -> Iterable[Remark]:
    for one in found:
        if text := _unlike_said(one, plan.compute_name):
            runs = (one.run,) if one.run else ()
            yield Remark(
                kind="unlike", weight="warning", text=text, variants=(one.variant,), runs=runs, num_runs=one.num_seeds
            )


def _unlike_said(one: "Unlike", compute_name: str) -> str:
    """How a variant's seeds stand out, and the effect on its intervals; empty if its runs have merely collapsed."""
    said = []
    if one.ratio:
        said.append(
            f"its seeds lie {one.ratio:.1f} times as far apart as those of the others, so its intervals are wider"
        )
    if one.run:
        side = "below" if one.apart < 0 else "above"
        since = "" if one.since is None else f" since the evaluation at {compute_text(one.since)} {compute_name}"
        said.append(f"{one.run} has been {abs(one.apart):.3f} {side} its siblings{since}")
    return f"{one.variant}: {'; '.join(said)}." if said else ""


def _stopped(plan: Plan, stops: Mapping[str, Stopped], stopped: Mapping[str, Stopped]) -> Iterable[Remark]:
    for stop in stops.values():
        if stop.run in stopped or not stop.ends_run:
            text = f"{run_name(stop.variant, stop.seed)}: {stop.text(plan)}."
            yield Remark(kind="stopped", weight="warning", text=text, variants=(stop.variant,))


def _one_seed(runs: Sequence[FittedRun]) -> Iterable[Remark]:
    lone = [some[0] for _, some, number in by_variant(runs, lambda _: True) if number == 1]
    if not lone:
        return
    variants = tuple(run.variant for run in lone)
    number = len({run.variant for run in runs})
    named = f" ({', '.join(variants)})" if len(lone) < number and len(lone) <= MOST_NAMED else ""
    have = "has" if len(lone) == 1 else "have"
    text = f"{len(lone)} of {counted(number, 'variant')}{named} {have} one seed only."
    names = tuple(run.name for run in lone)
    yield Remark(
        kind="one seed",
        weight="note",
        text=text,
        variants=variants,
        runs=names,
        num_runs=len(runs),
        clause="one seed only" if len(lone) < number else "",  # else every verdict says so
    )
