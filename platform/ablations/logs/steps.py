"""The steps of a log: one value for each step of one run, which begins once."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ablations.errors import AblationsError
from ablations.logs.log import Log
from ablations.nearest_name import MAX_NAMES
from ablations.text import counted

MOST_MISSING = 0.05
"""Largest share of steps that may be missing; above it the summed compute would be wrong."""
MOST_REPEATED = 0.5
"""With at least this share of repeated steps, rows belong to several runs, not to attempts at one run."""
MOST_SCORED = 0.5
"""Share of steps with a score above which the score may be the training score."""

OF_KINDS = {
    "benchmark", "data_source", "dataset", "env", "environment", "eval_set", "event", "key", "kind", "metric", "mode",
    "name", "phase", "split", "stage", "subset", "tag", "task", "type",
}  # fmt: skip
"""Names of columns whose words may distinguish training rows from evaluation rows, or data sets from each other."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StepValues:
    """Values by step, each step once: `StepValues(step=np.array([0.0, 1.0]), columns={"loss": ...}, ...)`."""

    step: np.ndarray
    columns: Mapping[str, np.ndarray]
    repeated: np.ndarray
    """True for the steps at which one of the columns has different values; the last value is used."""
    stepless: int
    """Number of rows that have a value of one of the columns, but no step."""


def by_step(steps: np.ndarray, columns: Mapping[str, np.ndarray]) -> StepValues:
    """The columns by ascending step; `steps` has the step of each row, NaN for rows that belong to none."""
    unique = np.unique(steps[~np.isnan(steps)])
    found, repeated, stepless = {}, np.zeros(unique.size, dtype=bool), np.zeros(steps.size, dtype=bool)
    for name, values in columns.items():
        present = ~np.isnan(values) & ~np.isnan(steps)
        stepless |= ~np.isnan(values) & np.isnan(steps)
        index = np.searchsorted(unique, steps[present])
        merged = np.full(unique.size, np.nan)
        merged[index] = values[present]  # of a repeated index NumPy assigns the last value
        repeated[index[values[present] != merged[index]]] = True
        found[name] = merged
    return StepValues(step=unique, columns=found, repeated=repeated, stepless=int(stepless.sum()))


def thinning_note(step: np.ndarray, values: np.ndarray, name: str, *, is_of_each_step: bool) -> str:
    """A note if steps are missing in a column that is summed over all steps; AblationsError if many are.

    Unless each value `is_of_each_step`, it may stand for the same number of steps, so regular gaps are only noted.
    """
    logged = step[~np.isnan(values)]
    if logged.size == 0:
        return ""
    apart = np.diff(logged, prepend=min(logged[0], 1.0) - 1.0)
    if (missing := int(np.sum(np.maximum(apart - 1.0, 0.0)))) == 0:
        return ""
    place = int(np.argmax(apart > 1))
    first = logged[place] - apart[place] + 1
    joined = "join it with the log that it continues, the earlier one first, " if missing == apart[0] - 1 else ""
    said = (
        f"{name} is missing at {counted(missing, 'step')} up to step {logged[-1]:g}, the first of them {first:g}, so "
        f"the compute is too low; export the whole history, {joined}or sum the time in another way with --compute"
    )
    usual = 1.0 if is_of_each_step else float(np.median(apart))
    if np.sum(np.maximum(apart - usual, 0.0)) > MOST_MISSING * logged[-1]:
        raise AblationsError(said)
    return said


def check_has_steps(log: Log, steps: np.ndarray, name: str) -> None:
    """Raise AblationsError if many rows of a column that is summed over all steps belong to no step."""
    present = ~np.isnan(log.columns[name])
    without = int(np.sum(present & np.isnan(steps)))
    if without > MOST_MISSING * present.sum():
        raise AblationsError(
            f"{log.place}: {name} has no step in {without} of {counted(int(present.sum()), 'row')}, so the compute "
            "would be too low; name a column of steps that all rows have with --step"
        )


def check_one_run(log: Log, steps: np.ndarray, values: np.ndarray, name: str) -> None:
    """Raise AblationsError if the scores of one column belong to several runs or data sets by a column of words.

    A resumed run repeats steps too, but goes back first; it seldom repeats half of them.
    """
    present = ~np.isnan(values) & ~np.isnan(steps)
    at, score = steps[present], values[present]
    different = np.unique(at)
    _check_one_kind(log, present, at, name)
    if different.size < max(at.size, 1):
        for label, texts in log.labels().items():
            runs: dict[str, set[float]] = {}
            for step, text in zip(at.tolist(), np.array(texts)[present].tolist(), strict=True):
                runs.setdefault(text, set()).add(step)
            repeated = sum(map(len, runs.values())) - different.size
            first, *others = map(min, runs.values())
            if repeated >= MOST_REPEATED * different.size or (repeated and min(others) <= first):
                listed = ", ".join(sorted({*texts} - {""})[:MAX_NAMES])
                raise AblationsError(
                    f"{log.place}: rows of one step differ in column {label!r}: {listed}; name the columns that tell "
                    "runs apart with --variant and --seed, or keep the rows of one run"
                )
        if different.size == 1 and np.unique(score).size > 1:
            raise AblationsError(
                f"{log.place}: all {at.size} values of {name} are at step {at[0]:g}, as if no step was logged; name a "
                "column of steps with --step"
            )


def check_one_score(log: Log, steps: np.ndarray, attempt: np.ndarray, name: str) -> None:
    """Raise AblationsError if an attempt has two different scores at a step; `attempt` has that of each row.

    One step may have them if training goes on after it: a run resumed at its last step evaluates this step again.
    """
    present = np.flatnonzero(~np.isnan(log.columns[name]) & ~np.isnan(steps))
    row = present[np.lexsort((steps[present], attempt[present]))]
    of_attempt, at, score = (one[row] for one in (attempt, steps, log.columns[name]))
    twice = (at[1:] == at[:-1]) & (of_attempt[1:] == of_attempt[:-1]) & (score[1:] != score[:-1])
    if twice.any() and not _is_resumed_there(steps, at, row[1:][twice]):
        place = int(np.argmax(twice))
        repeated, different = np.unique(at[1:][twice]).size, counted(np.unique(at).size, "step")
        raise AblationsError(
            f"{log.place}: {name} has two values at {repeated} of {different}, {score[place]:g} "
            f"and {score[place + 1]:g} at step {at[place]:g}, and no step goes back as after a resume: training and "
            "evaluation, or two data sets, are logged under one name; log each under its own name, or choose another "
            "--score"
        )


def _is_resumed_there(steps: np.ndarray, scored: np.ndarray, again: np.ndarray) -> bool:
    """True if the rows `again` are of one step, at which a run was resumed that is not scored at every step."""
    first, last = again.min(), again.max()
    is_one = np.unique(steps[again]).size == 1
    is_last = (
        np.nanmax(steps[: first + 1])
        == steps[first]
        < np.max(steps[last:], initial=-np.inf, where=~np.isnan(steps[last:]))
    )
    return bool(is_one and is_last and np.unique(scored).size <= MOST_SCORED * np.unique(steps[~np.isnan(steps)]).size)


def _check_one_kind(log: Log, present: np.ndarray, at: np.ndarray, name: str) -> None:
    """Raise AblationsError if scores come from rows of several kinds by turns, as of training and evaluation."""
    if not any(map(_is_kind, log.columns)):
        return
    for label, texts in log.labels().items():
        words = np.array(texts)[present][np.argsort(at, kind="stable")]
        kinds = np.unique(words)
        if _is_kind(label) and np.sum(words[1:] != words[:-1]) >= max(kinds.size, 2):
            raise AblationsError(
                f"{log.place}: {name} is in rows of several kinds by column {label!r}: "
                f"{', '.join(kinds.tolist()[:MAX_NAMES])}; keep the rows of one"
            )


def _is_kind(column: str) -> bool:
    return re.split(r"[/.]", column)[-1].casefold() in OF_KINDS
