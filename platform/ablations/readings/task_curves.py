"""The curve in a run log of one of its tasks, or of all tasks together.

An evaluation of a mix leaves a row for each task, with its share, and one row for all, without a share. Downstream rows
make a curve only if their task is requested by name.

Rows with `prompt_counts` give the variance of their pass rate given its prompts. Rows of earlier versions lack them,
and their `num_samples` gives the variance as if prompts were drawn anew.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile
from sys import intern
from typing import Any

import numpy as np

from ablations.errors import AblationsError
from ablations.fit.curve import VARIANCES, Curve
from ablations.fit.prompt_noise import answer_variance, prompt_variance
from ablations.home.started_sweep import StartedSweep
from ablations.nearest_name import did_you_mean
from scalerl.evaluation.prompt_counts import PromptCounts
from scalerl.run.run_log import read_rows

COUNTERS = ("compute_gpu_hours", "step", "wall_s", "flops", "tokens")
"""Counters of evaluations, if logged."""
NEEDED_FIELDS = ("compute_gpu_hours", "pass_rate", "step")
COUNT_FIELDS = ("num_samples", "num_prompts")
KEPT_FIELDS = ("kind", "task", "share", "pass_rate", *COUNT_FIELDS, *COUNTERS)
VARIANCE_FIELDS = ("prompt_counts", "step", *VARIANCES)
NOT_LOGGED = object()
COUNTED_TOGETHER = 64
"""Number of evaluations whose prompt counts are held until they are counted together, much faster than one by one."""


class EvaluationRows:
    """The rows of evaluations in a run log, added in order; of each, only what curves and counters need.

    The right answers to each prompt are much longer than all other numbers of a row, so their variances are kept.
    """

    def __init__(self) -> None:
        self._rows: list[tuple[Any, ...]] = []
        self._variances: list[tuple[float, float] | AblationsError] = []
        self._uncounted: list[Mapping[str, Any]] = []

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a row if it belongs to an evaluation."""
        if row["kind"] in ("eval", "downstream"):
            # The parser makes a new text of each "eval" and each task's name.
            values = [row.get(name, NOT_LOGGED) for name in KEPT_FIELDS]
            self._rows.append(tuple(intern(value) if type(value) is str else value for value in values))
            self._uncounted.append({name: row[name] for name in VARIANCE_FIELDS if name in row})
            if len(self._uncounted) == COUNTED_TOGETHER:
                self._count()

    def _count(self) -> None:
        if self._uncounted:
            self._variances += _variances_together(self._uncounted)
            self._uncounted = []

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Each row; its `variances` are those of its answers and of its prompts, or the reason why they are unknown."""
        self._count()
        for values, variances in zip(self._rows, self._variances, strict=True):
            known = {name: value for name, value in zip(KEPT_FIELDS, values, strict=True) if value is not NOT_LOGGED}
            yield known | {"variances": variances}

    def curve(self, name: str, task: str | None = None) -> Curve | None:
        """The curve `name` of `task`; see `curve_of`."""
        if not self._rows:
            return None
        columns: dict[str, list[Any]] = {column: [] for column in (*NEEDED_FIELDS, *COUNT_FIELDS)}
        variances: list[tuple[float, float]] = []
        try:
            for row, parts in _with_parts(self):
                if _is_of(row, task):
                    variances.append(_joint_variances(parts))
                    for column in NEEDED_FIELDS:
                        columns[column].append(row[column])
                    for column in COUNT_FIELDS:
                        columns[column].append(row.get(column, NOT_LOGGED))
            if not variances:
                names = list(dict.fromkeys(str(row.get("task")) for row in self))
                raise AblationsError(
                    f"curve {name!r}: no task {task!r} was measured; {did_you_mean(str(task), names, 'tasks')}"
                )
            # Other trainers may log scores alone; a log in which only some rows lack their counts is damaged.
            counted = [column for column in COUNT_FIELDS if any(value is not NOT_LOGGED for value in columns[column])]
            if missing := [column for column in counted if NOT_LOGGED in columns[column]]:
                raise KeyError(missing[0])
        except KeyError as error:
            raise AblationsError(f"curve {name!r}: an eval row without {error}") from error
        compute, score, step = (np.array(columns[column], dtype=float) for column in NEEDED_FIELDS)
        samples, prompts = (
            np.array(columns[column], dtype=float) if column in counted else None for column in COUNT_FIELDS
        )
        of_answers, of_prompts = (None, None) if samples is None else np.array(variances).T
        return Curve(
            name=name,
            compute=compute,
            score=score,
            samples=samples,
            prompts=prompts,
            step=step,
            answer_variance=of_answers,
            prompt_variance=of_prompts,
        )


def curve_of(rows: Iterable[dict[str, Any]], name: str, task: str | None = None) -> Curve | None:
    """The readings of `task` in the rows of a run log, by default of its only task or of all tasks together.

    None if there are no evaluations; AblationsError if they form no curve or `task` was not measured.
    """
    measured = EvaluationRows()
    for row in rows:
        measured.add(row)
    return measured.curve(name, task)


def _with_parts(measured: Iterable[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Every row with the rows that count its answers: the row itself, or for a mix the preceding rows of its tasks."""
    parts: list[dict[str, Any]] = []
    for row in measured:
        if "share" in row:
            parts.append(row)
            yield row, [row | {"share": 1.0}]
        elif row["kind"] == "eval" and parts:
            yield row, parts
            parts = []
        else:
            yield row, [row]


def _joint_variances(parts: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Variances of a pass rate due to answers and to prompts, sum share^2 variance over tasks; NaN if unknown."""
    answers = prompts = 0.0
    for part in parts:
        if isinstance(found := part["variances"], AblationsError):
            raise found
        share = part.get("share", 1.0)
        answers += share**2 * found[0]
        prompts += share**2 * found[1]
    return answers, prompts


def _variances_together(rows: Sequence[Mapping[str, Any]]) -> list[tuple[float, float] | AblationsError]:
    """`_variances` of every row."""
    texts = [text for row in rows if isinstance(text := row.get("prompt_counts"), str)]
    counts = PromptCounts.from_texts(texts) if len(texts) == len(rows) else None
    if counts is None or counts.judged.min() < 2:
        return [_variances(row) for row in rows]
    found = (variance(counts.right, counts.judged).tolist() for variance in (answer_variance, prompt_variance))
    return list(zip(*found, strict=True))


def _variances(row: Mapping[str, Any]) -> tuple[float, float] | AblationsError:
    """Variances of the pass rate of a row due to answers and to prompts, NaN if unknown, or what is wrong with its
    counts."""
    if "prompt_counts" not in row:  # an imported curve may have the variances themselves
        answers, prompts = (row.get(name, math.nan) for name in VARIANCES)
        return answers, prompts
    try:
        counts = PromptCounts.from_text(row["prompt_counts"])
    except ValueError as error:
        return AblationsError(f"prompt_counts of the eval row at step {row['step']}: {error}")
    return float(answer_variance(counts.right, counts.judged)), float(prompt_variance(counts.right, counts.judged))


def _is_of(row: dict[str, Any], task: str | None) -> bool:
    """True if a row is a reading of `task`. Rows of one task of a mix have a share; the row for all tasks has none."""
    return row.get("task") == task if task is not None else row["kind"] == "eval" and "share" not in row


def measured_tasks(sweep: StartedSweep) -> list[str]:
    """Names of the tasks measured in a sweep, by the first evaluation of each run."""
    names: dict[str, None] = {}
    for run in sweep.plan.runs:
        with suppress(ValueError):  # a damaged log has no curve; its result says why
            readings = (row for row in read_rows(sweep.run(run.id).metrics) if row["kind"] != "train")
            first = takewhile(lambda row: row["step"] == 0, readings)
            names |= dict.fromkeys(str(row.get("task")) for row in first)
    return list(names)


def with_task(sweep: StartedSweep, task: str | None) -> StartedSweep:
    """The sweep with the curves of `task`; AblationsError if no run has measured it."""
    if task is None:
        return sweep
    names = measured_tasks(sweep)
    if names and task not in names:
        raise AblationsError(
            f"--task: no run of '{sweep.name}' measures {task!r}; {did_you_mean(task, names, 'tasks')}"
        )
    return replace(sweep, plan=replace(sweep.plan, fit={**sweep.plan.fit, "task": task}))
