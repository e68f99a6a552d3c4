"""Remarks to read before the numbers: runs that collapsed or failed, studies that were shortened, and
the like.

The list is made once, here. The terminal, `--json`, the pages, the reports and MLflow all read it.

>>> [(one.weight, one.cell, one.text) for one in results.remarks]
[('error', 'collapsed 1 of 3', 'dapo: 1 of 3 seeds collapsed (seed 1: 0.703 at 1,000 to 0.609 at 1,250 GPU-hours; ...')]
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ablations.fit.curve import Curve
from ablations.fit.fall import Change, change_of, end_below_their_start, find_fall
from ablations.home.labels import run_name
from ablations.home.plan import Plan
from ablations.home.state import State
from ablations.home.stops import Stopped
from ablations.readings.fitted_run import FittedRun
from ablations.text import compute_text, counted, cut_message
from scalerl.run.idle_steps import ALL_REWARDS_EQUAL, IDLE_STEPS, UNCHANGED

if TYPE_CHECKING:
    from ablations.answers.compare import Comparison  # with SciPy's integration, which remarks on states do without
    from ablations.answers.outliers import Unlike

RemarkKind = Literal[
    "collapsed",
    "fell",
    "failed",
    "ended early",
    "read early",
    "trained on nothing",
    "shortened",
    "unfinished",
    "below its start",
    "code",
    "copies",
    "unlike",
    "stopped",
    "health",
    "no gradient",
    "one seed",
]
Weight = Literal["error", "warning", "note"]
WEIGHTS: tuple[Weight, ...] = ("error", "warning", "note")
"""Most serious first: an error spoils a run, a warning deserves a look, a note is expected."""
ANY_NUMBER = re.compile(r"\d+(?:\.\d+)?")
LEAST_DIFFERENT = 4
"""Two runs that agree in this many different scores cannot do so by chance."""
MOST_NAMED = 5
"""Limit on the runs named in one remark."""
MOST_CAUSE = 600
"""Limit on the characters of a failure's message."""


@dataclass(frozen=True, kw_only=True)
class Remark:
    """One remark about runs of a variant, or of a study.

    Remark(kind="collapsed", weight="error", variants=("dapo",), runs=("dapo-s1",), num_runs=3,
           text="dapo: 1 of 3 seeds collapsed (...).", clause="1 of 3 seeds collapsed (...)")
    """

    kind: RemarkKind
    weight: Weight
    text: str
    """The remark as sentences that name their subject."""
    variants: tuple[str, ...] = ()
    """The variants that the remark is about; empty for the whole study."""
    runs: tuple[str, ...] = ()
    """Names of the runs that the remark is about."""
    num_runs: int = 0
    """Total number of runs, including `runs`."""
    clause: str = ""
    """The first clause of the variant's sentence; empty if the remark does not appear there."""

    @property
    def cell(self) -> str:
        """The remark in a table cell: `collapsed 1 of 3`."""
        return f"{self.kind} {len(self.runs)} of {self.num_runs}"

    def to_json(self) -> dict[str, Any]:
        """Plain data for JSON: all fields but the clause."""
        found = asdict(self) | {"variants": list(self.variants), "runs": list(self.runs)}
        del found["clause"]
        return found


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
        *_collapsed(plan, runs),
        *_fell(plan, runs),
        *_failed(plan, runs),
        *_trained_on_nothing(runs),
        *_cut_message(plan),
        *_copies(runs),
        *_code(runs),
        *_unfinished(plan, runs, stopped),
        *_below_their_start(plan, runs),
        *([] if comparison is None else _unlike(plan, comparison.unlike)),
        *_stopped(plan, stops, stopped),
        *_health(runs),
        *_one_seed(runs),
    ]
    return by_weight(found)


def by_weight(remarks: Iterable[Remark]) -> tuple[Remark, ...]:
    """The remarks, the most serious first."""
    return tuple(sorted(remarks, key=lambda one: WEIGHTS.index(one.weight)))


def clauses_on(remarks: Iterable[Remark], variant: str) -> list[str]:
    """The clauses that begin the sentence on a variant."""
    return [one.clause for one in remarks if one.clause and (not one.variants or variant in one.variants)]


def cells_on(remarks: Iterable[Remark], variant: str) -> list[str]:
    """The remarks on a variant for a table cell: `collapsed 1 of 3`; only errors."""
    return [one.cell for one in remarks if variant in one.variants and one.weight == "error"]


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
        kind, weight, text = _judged(run, warning)
        found.append(Remark(kind=kind, weight=weight, text=text, runs=(run.name,), num_runs=1))
    return tuple(sorted(found, key=lambda one: WEIGHTS.index(one.weight)))


def warnings_of_run(run: FittedRun, hours_name: str) -> tuple[str, ...]:
    """The remarks on one run as sentences without a full stop."""
    return tuple(one.text for one in remarks_on_run(run, hours_name))


def unlike_said(one: "Unlike", compute_name: str) -> str:
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


def by_variant(runs: Sequence[FittedRun], holds: Callable[[FittedRun], bool]) -> list[tuple[str, list[FittedRun], int]]:
    """Each variant with runs that satisfy the condition: its name, these runs, and the number of all its runs."""
    groups: dict[str, list[FittedRun]] = {}
    for run in runs:
        groups.setdefault(run.variant, []).append(run)
    found = ((name, [run for run in all_of if holds(run)], len(all_of)) for name, all_of in groups.items())
    return [(name, some, number) for name, some, number in found if some]


def seeds_said(some: Sequence[FittedRun], num_runs: int) -> str:
    """`1 of 3 seeds`."""
    return f"{len(some)} of {counted(num_runs, 'seed')}"


def remark_on(
    kind: RemarkKind,
    variant: str,
    some: Sequence[FittedRun],
    num_runs: int,
    clause: str,
    after: str = "",
    weight: Weight = "error",
) -> Remark:
    """A remark about runs of one variant: `dapo: 1 of 3 seeds collapsed (seed 1: ...). After.`"""
    names = tuple(run.name for run in some)
    text = f"{variant}: {clause}.{after}"
    return Remark(
        kind=kind, weight=weight, text=text, variants=(variant,), runs=names, num_runs=num_runs, clause=clause
    )


def _collapsed(plan: Plan, runs: Sequence[FittedRun]) -> Iterable[Remark]:
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


def _fell(plan: Plan, runs: Sequence[FittedRun]) -> Iterable[Remark]:
    for name, some, number in by_variant(runs, lambda run: bool(fall_of(run, ""))):
        falls = "; ".join(f"seed {run.seed}: {fall_of(run, plan.hours_name)}" for run in some)
        yield remark_on("fell", name, some, number, f"{seeds_said(some, number)} fell ({falls})")


def _below_their_start(plan: Plan, runs: Sequence[FittedRun]) -> Iterable[Remark]:
    """The variants whose runs end below their first evaluation; if all do, the training harms the model."""
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


def _copies(runs: Sequence[FittedRun]) -> Iterable[Remark]:
    """The runs whose evaluations are those of another: one log under two names, or a seed or setting without effect."""
    first: dict[tuple[bytes, bytes], FittedRun] = {}
    for run in runs:
        if run.curve is None or np.unique(run.curve.score).size < LEAST_DIFFERENT:
            continue
        other = first.setdefault((run.curve.compute.tobytes(), run.curve.score.tobytes()), run)
        if other is run:
            continue
        idle = "seed" if other.variant == run.variant else "setting"
        text = (
            f"{other.name} and {run.name} have the same evaluations; one log may stand under two names, or the {idle} "
            "has no effect."
        )
        variants = tuple(dict.fromkeys((other.variant, run.variant)))
        names = (other.name, run.name)
        yield Remark(kind="copies", weight="warning", text=text, variants=variants, runs=names, num_runs=len(runs))


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


def _trained_on_nothing(runs: Sequence[FittedRun]) -> Iterable[Remark]:
    for name, some, number in by_variant(runs, lambda run: any(UNCHANGED in text for text in run.warnings)):
        said = "; ".join(f"seed {run.seed}: {text}" for run in some for text in run.warnings if UNCHANGED in text)
        yield remark_on(
            "trained on nothing", name, some, number, f"{seeds_said(some, number)} trained on nothing ({said})"
        )


def _cut_message(plan: Plan) -> Iterable[Remark]:
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
        if text := unlike_said(one, plan.compute_name):
            runs = (one.run,) if one.run else ()
            yield Remark(
                kind="unlike", weight="warning", text=text, variants=(one.variant,), runs=runs, num_runs=one.num_seeds
            )


def _stopped(plan: Plan, stops: Mapping[str, Stopped], stopped: Mapping[str, Stopped]) -> Iterable[Remark]:
    for stop in stops.values():
        if stop.run in stopped or not stop.ends_run:
            text = f"{run_name(stop.variant, stop.seed)}: {stop.text(plan)}."
            yield Remark(kind="stopped", weight="warning", text=text, variants=(stop.variant,))


def _health(runs: Sequence[FittedRun]) -> Iterable[Remark]:
    """The warnings of trainers and readings; warnings that differ only in numbers are joined."""
    groups: dict[tuple[RemarkKind, Weight, str], list[tuple[FittedRun, str]]] = {}
    for run in runs:
        for text in run.warnings:
            kind, weight, text = _judged(run, text)
            if kind != "trained on nothing":
                groups.setdefault((kind, weight, ANY_NUMBER.sub("#", text)), []).append((run, text))
    for (kind, weight, _), members in groups.items():
        names = tuple(dict.fromkeys(run.name for run, _ in members))
        said = ranged([text for _, text in members])
        subject = members[0][0].name
        if len(names) > 1:
            named = f" ({', '.join(names)})" if len(names) < len(runs) and len(names) <= MOST_NAMED else ""
            subject = f"{len(names)} of {len(runs)} runs{named}"
        variants = tuple(dict.fromkeys(run.variant for run, _ in members))
        yield Remark(
            kind=kind, weight=weight, text=f"{subject}: {said}.", variants=variants, runs=names, num_runs=len(runs)
        )


def _judged(run: FittedRun, text: str) -> tuple[RemarkKind, Weight, str]:
    """A warning with its kind and weight: steps without a gradient are expected of a run that has learned its task."""
    if UNCHANGED in text:
        return "trained on nothing", "error", text
    found = IDLE_STEPS.fullmatch(text)
    if found is None or found["why"] != ALL_REWARDS_EQUAL:
        return "health", "warning", text
    said = f"{found['idle']} of the last {found['steps']} steps had no gradient (every group all right or all wrong)"
    if run.fit is not None and run.fit.rises and run.fit.verdict != "collapsed":
        return "no gradient", "note", f"{said}; expected near the ceiling"
    return "no gradient", "warning", said


def ranged(texts: Sequence[str]) -> str:
    """One text for several that differ only in numbers: `6 to 14 of the last 20 steps`."""
    columns = zip(*(ANY_NUMBER.findall(text) for text in texts), strict=True)
    ranges = [
        ends[0] if float(ends[0]) == float(ends[1]) else f"{ends[0]} to {ends[1]}"
        for column in columns
        for ends in [(min(column, key=float), max(column, key=float))]
    ]
    return "".join(part + number for part, number in zip(ANY_NUMBER.split(texts[0]), [*ranges, ""], strict=True))


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
