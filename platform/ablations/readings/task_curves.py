"""The curve in a run log of one of its tasks, or of all tasks together.

An evaluation of a mix leaves a row for each task, with its share, and one row for all, without a share. Downstream rows
make a curve only if their task is requested by name.

Rows with `prompt_counts` give the variance of their pass rate given its prompts. Rows of earlier versions lack them,
and their `num_samples` gives the variance as if prompts were drawn anew.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile
from typing import Any

import numpy as np

from ablations.errors import AblationsError
from ablations.fit.curve import Curve
from ablations.fit.prompt_noise import answer_variance, prompt_variance
from ablations.home.started_sweep import StartedSweep
from ablations.nearest_name import did_you_mean
from scalerl.evaluation.prompt_counts import PromptCounts
from scalerl.run.run_log import read_rows


def curve_of(rows: Iterable[dict[str, Any]], name: str, task: str | None = None) -> Curve | None:
    """The readings of `task` in the rows of a run log, by default of its only task or of all tasks together.

    None if there are no evaluations; AblationsError if they form no curve or `task` was not measured.
    """
    measured = [row for row in rows if row["kind"] in ("eval", "downstream")]
    if not measured:
        return None
    evaluations = [row for row in measured if _is_of(row, task)]
    if not evaluations:
        names = list(dict.fromkeys(str(row.get("task")) for row in measured))
        raise AblationsError(
            f"curve {name!r}: no task {task!r} was measured; {did_you_mean(str(task), names, 'tasks')}"
        )

    # A program may log scores alone; a log in which only some rows lack their counts is damaged.
    has_counts = any("num_samples" in row for row in evaluations)

    def column(field: str) -> np.ndarray:
        return np.array([row[field] for row in evaluations], dtype=float)

    try:
        variances = np.array([_variances(parts) for row, parts in _with_parts(measured) if _is_of(row, task)])
        return Curve(
            name=name,
            compute=column("compute_gpu_hours"),
            score=column("pass_rate"),
            samples=column("num_samples") if has_counts else None,
            prompts=column("num_prompts") if has_counts else None,
            step=column("step"),
            answer_variance=variances[:, 0] if has_counts else None,
            prompt_variance=variances[:, 1] if has_counts else None,
        )
    except KeyError as error:
        raise AblationsError(f"curve {name!r}: an eval row without {error}") from error


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


def _variances(parts: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """Variances of a pass rate due to answers and to prompts, sum share^2 variance over tasks; NaN if unknown."""
    answers = prompts = 0.0
    for part in parts:
        if "prompt_counts" not in part:
            return math.nan, math.nan
        try:
            counts = PromptCounts.from_text(part["prompt_counts"])
        except ValueError as error:
            raise AblationsError(f"prompt_counts of the eval row at step {part['step']}: {error}") from error
        share = part.get("share", 1.0)
        answers += share**2 * answer_variance(counts.right, counts.judged)
        prompts += share**2 * prompt_variance(counts.right, counts.judged)
    return answers, prompts


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
