"""Remarks from the warnings of trainers; a warning of several runs is one remark with the range of its numbers."""

import re
from collections.abc import Iterable, Sequence

from ablations.findings.remark import MOST_NAMED, Remark, RemarkKind, Weight, by_variant, remark_on, seeds_said
from ablations.readings.fitted_run import FittedRun
from scalerl.run.idle_steps import ALL_REWARDS_EQUAL, IDLE_STEPS, UNCHANGED

ANY_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def remarks_on_idle_runs(runs: Sequence[FittedRun]) -> Iterable[Remark]:
    """A remark for each variant with runs in which no step changed the weights."""
    for name, some, number in by_variant(runs, lambda run: any(UNCHANGED in text for text in run.warnings)):
        said = "; ".join(f"seed {run.seed}: {text}" for run in some for text in run.warnings if UNCHANGED in text)
        yield remark_on(
            "trained on nothing", name, some, number, f"{seeds_said(some, number)} trained on nothing ({said})"
        )


def remarks_on_warnings(runs: Sequence[FittedRun]) -> Iterable[Remark]:
    """The warnings of trainers and readings; warnings that differ only in numbers are joined."""
    groups: dict[tuple[RemarkKind, Weight, str], list[tuple[FittedRun, str]]] = {}
    for run in runs:
        for text in run.warnings:
            kind, weight, text = judged_warning(run, text)
            if kind != "trained on nothing":
                groups.setdefault((kind, weight, ANY_NUMBER.sub("#", text)), []).append((run, text))
    for (kind, weight, _), members in groups.items():
        names = tuple(dict.fromkeys(run.name for run, _ in members))
        said = _ranged([text for _, text in members])
        subject = members[0][0].name
        if len(names) > 1:
            named = f" ({', '.join(names)})" if len(names) < len(runs) and len(names) <= MOST_NAMED else ""
            subject = f"{len(names)} of {len(runs)} runs{named}"
        variants = tuple(dict.fromkeys(run.variant for run, _ in members))
        yield Remark(
            kind=kind, weight=weight, text=f"{subject}: {said}.", variants=variants, runs=names, num_runs=len(runs)
        )


def judged_warning(run: FittedRun, text: str) -> tuple[RemarkKind, Weight, str]:
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


def _ranged(texts: Sequence[str]) -> str:
    """One text for several that differ only in numbers: `6 to 14 of the last 20 steps`."""
    columns = zip(*(ANY_NUMBER.findall(text) for text in texts), strict=True)
    ranges = [
        ends[0] if float(ends[0]) == float(ends[1]) else f"{ends[0]} to {ends[1]}"
        for column in columns
        for ends in [(min(column, key=float), max(column, key=float))]
    ]
    return "".join(part + number for part, number in zip(ANY_NUMBER.split(texts[0]), [*ranges, ""], strict=True))
