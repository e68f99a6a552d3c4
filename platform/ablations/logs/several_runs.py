"""Several runs in one table, and the parts of a resumed run.

Runs are told apart by columns such as `method` and `seed`, or have a column each, as in a chart that W&B's page
exports: `Step, dapo-s0 - val/acc, dapo-s0 - val/acc__MIN, dapo-s0 - val/acc__MAX, dapo-s1 - val/acc, ...`.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ablations.errors import AblationsError
from ablations.fit.wide_table import IS_MEAN, LEAST, MOST, OF_A_CHART, series_of_chart
from ablations.logs.log import Log
from ablations.logs.rows import RowColumns, log_of_columns, log_of_rows


def runs_in(log: Log, keys: Sequence[str]) -> list[Log]:
    """The logs of the runs in a table; `keys` are the columns that tell them apart, if it has them."""
    if not isinstance(log.columns, RowColumns):
        return [log]
    if told := [key for key in keys if key in {*log.columns} and key not in log.config]:
        return _told_apart(log, log.columns, told)
    shared = [name for name in log.columns if OF_A_CHART not in name]
    if len(shared) < len(log.columns) and (len(shared) <= 1 or any(name.endswith(LEAST) for name in log.columns)):
        return _of_chart(log, log.columns, shared)
    return [log]


def joined(parts: Sequence[Log], steps: Sequence[str] = ()) -> Log:
    """The log of a resumed run, from its parts; AblationsError if a part does not continue the first.

    `steps` are columns of steps that count before the files' own.
    """
    begins = [
        float(np.nanmin(next(part.columns[name] for name in (*steps, *part.steps) if name in part.columns)))
        for part in parts
    ]
    for before, part, begin in zip(parts, parts[1:], begins[1:], strict=False):
        if before.written and part.written and part.written[0] < before.written[1]:
            raise AblationsError(
                f"{before.place} and {part.place} were written at the same time, as if training and evaluation had "
                "separate writers, so they are not parts of one run; name one of the folders"
            )
        if begin <= begins[0]:
            raise AblationsError(
                f"{parts[0].place} and {part.place} begin at steps {begins[0]:g} and {begin:g}, so they are not parts "
                "of one run; name one file or folder per run"
            )
    columns, begins = RowColumns(parts[0].place), []
    for part in parts:
        if isinstance(part.columns, RowColumns):
            begins.append(columns.num_rows)
            for where, row in part.columns.rows:
                columns.add(where, row)
    last, said = parts[-1], f"{len(parts)} parts of a run that was resumed are joined"
    notes = tuple(dict.fromkeys([*(note for part in parts for note in part.notes), said]))
    log = log_of_columns(columns, name=last.name, steps=last.steps, config=last.config, notes=notes, begins=begins[1:])
    place, own_steps = np.arange(columns.num_rows), columns[next(name for name in last.steps if name in columns)]
    restarts = tuple(
        (begin, (place < begin) & (own_steps > part.rewound_to))
        for begin, part in zip(begins, parts, strict=False)
        if part.rewound_to is not None
    )
    return replace(log, axes=last.axes, restarts=restarts)


def _told_apart(log: Log, columns: RowColumns, keys: Sequence[str]) -> list[Log]:
    groups: dict[tuple[str, ...], RowColumns] = {}
    for place, row in columns.rows:
        values = tuple("" if row.get(key) is None else str(row[key]) for key in keys)
        if "" in values:
            raise AblationsError(f"{log.place}: column {keys[values.index('')]!r} is empty in {place}; name every run")
        if (group := groups.get(values)) is None:
            told = ", ".join(f"{key} {value}" for key, value in zip(keys, values, strict=True))
            group = groups[values] = RowColumns(f"{log.place}, {told}")
        group.add(place, row)
    return [
        log_of_columns(
            group,
            name=log.name,
            steps=log.steps,
            notes=log.notes,
            own=dict(zip(keys, values, strict=True)),
        )
        for values, group in groups.items()
    ]


def _of_chart(log: Log, columns: RowColumns, shared: Sequence[str]) -> list[Log]:
    found = []
    for run, metrics in series_of_chart(columns).items():
        rows = (
            (place, {name: row.get(name) for name in shared} | {own: row.get(name) for own, name in metrics.items()})
            for place, row in columns.rows
        )
        notes = (*log.notes, IS_MEAN) if any(_is_mean(columns, name) for name in metrics.values()) else log.notes
        place, steps = f"{log.place}, {run}", (*log.steps, *shared[:1])
        found.append(log_of_rows(rows, name=run, place=place, steps=steps, config={}, notes=notes))
    return found


def _is_mean(columns: RowColumns, name: str) -> bool:
    """True if the least and the largest value behind a point differ."""
    least, most = (columns.get(f"{name}{end}") for end in (LEAST, MOST))
    return least is not None and most is not None and bool(np.any(most > least))
