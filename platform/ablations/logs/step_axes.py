"""Metrics with their own step axis, as W&B's `define_metric` sets it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ablations.errors import AblationsError
from ablations.logs.log import Log

SLOWEST_RISE, FASTEST_RISE = 0.8, 1.25
"""Bounds on the increase of a score's own steps per training step, within which both count the same thing."""


def axes_of(columns: Collection[str], defined: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The step column of each column that has one.

    `defined` pairs names, which may end with `*`, with their step columns; an exact name takes precedence over a
    pattern.
    """
    found: dict[str, str] = {}
    for name, steps in sorted(defined, key=lambda one: not one[0].endswith("*")):
        for column in columns:
            if steps in columns and (column == name or (name.endswith("*") and column.startswith(name[:-1]))):
                found[column] = steps
    return found


def with_own_steps(log: Log, steps: np.ndarray, score: Sequence[str], needed: Sequence[str]) -> tuple[Log, np.ndarray]:
    """The log and the step of each row, after the axes of its columns.

    A score with another axis than the rest gets rows of its own, after those in which it stands. Raises AblationsError
    if its steps do not count those of the rest, or if scores have several axes.
    """
    of_score = {log.axes.get(name, "") for name in score}
    if of_score <= {""}:
        return log, steps
    others = {log.axes.get(name, "") for name in needed if name not in {*score, *log.axes.values()}}
    (own, *more), (rest, *more_rest) = sorted(of_score), sorted(others) or [""]
    if more or more_rest:
        raise AblationsError(
            f"{log.place}: {', '.join(needed)} have several axes of steps by define_metric: "
            f"{', '.join(sorted({*of_score, *others} - {''}))}; name one that all rows have with --step"
        )
    own_steps = _last_known(log.columns[own])
    steps = _last_known(log.columns[rest]) if rest else own_steps if not others else steps
    if own == rest or not others:
        return log, own_steps
    is_scored = np.any([~np.isnan(log.columns[name]) for name in score], axis=0)
    _check_same_steps(log, own_steps[is_scored], steps[is_scored], score[0], own, rest or log.steps[0])
    rows = np.repeat(np.arange(steps.size), 1 + is_scored)
    is_extra = np.diff(rows, prepend=-1) == 0
    columns = _Parted(log.columns, rows, is_extra, {*score})
    found = replace(
        log,
        columns=columns,
        labels=dict,
        rows_of_columns=lambda: [~is_extra & one[rows] for one in log.rows_of_columns()],
        begins=tuple(int(np.searchsorted(rows, row)) for row in log.begins),
        restarts=tuple((int(np.searchsorted(rows, row)), one[rows]) for row, one in log.restarts),
    )
    return found, np.where(is_extra, own_steps[rows], steps[rows])


class _Parted(Mapping[str, np.ndarray]):
    """The columns of rows of which some are extra and have the scores, while the others have the rest."""

    def __init__(
        self, columns: Mapping[str, np.ndarray], rows: np.ndarray, is_extra: np.ndarray, score: Collection[str]
    ) -> None:
        self._columns, self._rows, self._is_extra, self._score = columns, rows, is_extra, score

    def __getitem__(self, name: str) -> np.ndarray:
        is_here = self._is_extra if name in self._score else ~self._is_extra
        return np.where(is_here, self._columns[name][self._rows], np.nan)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def _last_known(values: np.ndarray) -> np.ndarray:
    """Each value or, if missing, the one before."""
    last = np.maximum.accumulate(np.where(np.isnan(values), 0, np.arange(values.size)))
    return values[last]


def _check_same_steps(log: Log, own_steps: np.ndarray, steps: np.ndarray, score: str, own: str, rest: str) -> None:
    rise, rise_of_rest = (float(one[-1] - one[0]) if one.size else 0.0 for one in (own_steps, steps))
    if rise_of_rest <= 0 or not SLOWEST_RISE <= rise / rise_of_rest <= FASTEST_RISE:
        raise AblationsError(
            f"{log.place}: {score} has the steps of {own!r} (define_metric), which rise by {rise:g} while those of "
            f"{rest!r} rise by {rise_of_rest:g}, so they do not count the same; name the steps of all rows with "
            f"--step, such as --step {log.steps[0]}"
        )
