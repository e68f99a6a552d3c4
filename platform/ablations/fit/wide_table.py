"""Tables with a column for each run, turned into tables with a row for each reading.

    step, dapo-s0, dapo-s1
    Step, dapo-s0 - val/acc, dapo-s0 - val/acc__MIN, dapo-s0 - val/acc__MAX, dapo-s1 - val/acc, ...

The second is a chart that W&B's page exports.
"""

import re
from collections.abc import Container, Iterable, Mapping, Sequence

from ablations.errors import Place
from ablations.fit.table_file import MISSING, TextTable, number_in
from ablations.nearest_name import MAX_NAMES

OF_A_CHART = " - "
LEAST, MOST = "__MIN", "__MAX"
IS_MEAN = "W&B has averaged values, of grouped runs or of neighbouring steps; __MIN and __MAX differ"
OF_ITS_RUN = {"_step", "_runtime", "_timestamp"}
"""Columns that W&B exports for each run beside the metric if the chart is not drawn over steps."""
STEP_NAME = re.compile(
    r"((env|global|gradient|grad|num|optimi[sz]er|rl|total|train(ing)?)_)*(step|iteration|iter|update|epoch)s?"
)
"""Names of steps, in lower case, with signs as underscores and without anything before a slash."""
COMPUTE_COLUMN = re.compile(
    rf"{STEP_NAME.pattern}|((total|train(ing)?)_)?compute|(\w+_)?(hours?|flops?|tokens?|episodes?)|relative_time_\w+"
)
METRIC_WORD = re.compile(
    r"(acc(uracy)?|avg|best|eval(uation)?|loss|maj|mean|metric|pass|rate|return|rewards?|scores?|std|success|test|time"
    r"|train(ing)?|val(id|idation|ue)?"
    r"|aime|amc|arc|countdown|gpqa|gsm8k|humaneval|livecodebench|math|mbpp|minerva|mmlu|olympiad(bench)?)\d*"
)
"""Words that occur in names of metrics and data sets, but hardly ever in names of runs."""
METRIC_SECTION = re.compile(r"(actor|critic|env|eval|perf|rollout|test|timing\w*|train|val|validation)(-\w+)?/")


SPREAD = re.compile(r".*[-_ .(/](std|stdev|stderr|sem|ci\d*|lower|upper|_min|_max)\)?", re.IGNORECASE)
"""Names of measures of the spread of the values in another column."""
LIKE_A_NUMBER = re.compile(r"[-+]?[\d.,_]+(e[-+]?\d+)?%?", re.IGNORECASE)
OTHER_NAMES = "`import` reads other names with --score, --compute, --variant and --seed"


def series_of_chart(columns: Iterable[str]) -> dict[str, dict[str, str]]:
    """The columns of each run of a chart by metric: `{"dapo-s0": {"val/acc": "dapo-s0 - val/acc"}}`."""
    series: dict[str, dict[str, str]] = {}
    for name in columns:
        run, is_series, metric = name.rpartition(OF_A_CHART)
        if is_series and not metric.endswith((LEAST, MOST)):
            series.setdefault(run.replace(": ", "="), {})[metric] = name
    return series


def by_reading(table: TextTable, place: Place, *, kept: Container[str]) -> TextTable | None:
    """The table with columns curve, compute and score; None if no column is called like compute or steps.

    Empty cells are readings that a run lacks. Columns in `kept` hold for all runs. Raises FileError if it is not clear
    which column is the compute, or whether the others are runs.
    """
    found = [name for name in table.header if OF_A_CHART not in name and COMPUTE_COLUMN.fullmatch(_plain(name))]
    if not found:
        return None
    named = ["compute"] if "compute" in found else [name for name in found if name != "step"] or found
    if len(named) > 1:
        raise place.error(f"{_listed(named)} may each be the compute", "keep one, or call it 'compute'")
    compute = named[0]
    shared = [name for name in table.header if name in kept and name != compute]
    runs = _runs([name for name in table.header if name not in (compute, *shared)], place)
    if words := [name for name in runs.values() if _holds_words(table, name)]:
        raise place.error(f"{_listed(words)} without a number", f"leave out columns that are not runs; {OTHER_NAMES}")
    rows, notes = [], list[str]()
    if STEP_NAME.fullmatch(_plain(compute)):
        notes.append(f"Compute is the column {compute!r}, so a step counts the same in every run.")
    if any(row.get(f"{name}{LEAST}") != row.get(f"{name}{MOST}") for name in runs.values() for _, row in table.rows):
        notes.append(f"{IS_MEAN}.")
    for run, column in runs.items():
        before = len(rows)
        for line, row in table.rows:
            if _is_gap(row[column]):
                continue
            at = Place(source=place.source, line=line)
            number_in(row[column], "score", at.inside(column))
            number_in(row[compute], "compute", at.inside(compute))
            reading = {"curve": run, "compute": row[compute], "score": row[column]}
            rows.append((line, reading | {name: row[name] for name in shared}))
        if len(rows) == before:
            notes.append(f"The column {column!r} has no reading and is left out.")
    return TextTable(
        header=["curve", "compute", "score", *shared],
        rows=rows,
        compute_name="steps" if STEP_NAME.fullmatch(_plain(compute)) else compute,
        is_wide=True,
        notes=tuple(notes),
    )


def _runs(columns: Sequence[str], place: Place) -> Mapping[str, str]:
    """The column of each run; FileError if the columns may be something else."""
    if any(not name or name.startswith("Unnamed: ") for name in columns):
        raise place.error("a column without a name", "name it, or leave it out (in pandas with index=False)")
    series = series_of_chart(columns)
    if not series:
        if spreads := [name for name in columns if SPREAD.fullmatch(name)]:
            raise place.error(f"{_listed(spreads)} may be spreads of other columns", "keep the columns of pass rates")
        if metrics := [name for name in columns if _is_metric(name)]:
            raise place.error(
                f"{_listed(metrics)} may be metrics of one run, or runs",
                f"call the column of a run 'RUN - METRIC', such as 'dapo-s1 - val/acc'; {OTHER_NAMES}",
            )
        return {name: name for name in columns}
    if alone := [name for name in columns if OF_A_CHART not in name]:
        some = next(iter(next(iter(series.values())).values()))
        raise place.error(
            f"{_listed(alone)} beside {some!r}, which names a run and a metric",
            "call every column of a run 'RUN - METRIC', and leave out the others",
        )
    metrics = {run: [name for name in of_run if name not in OF_ITS_RUN] for run, of_run in series.items()}
    several = [*dict.fromkeys(name for names in metrics.values() for name in names)]
    if len(several) != 1:
        raise place.error(f"{len(several)} metrics of runs: {_listed(several)}", f"keep one metric; {OTHER_NAMES}")
    return {run: series[run][name] for run, names in metrics.items() for name in names}


def _is_gap(cell: str) -> bool:
    return cell.casefold() in (*MISSING, "nan")


def _holds_words(table: TextTable, column: str) -> bool:
    cells = [row[column] for _, row in table.rows if not _is_gap(row[column])]
    return bool(cells) and not any(map(LIKE_A_NUMBER.fullmatch, cells))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.casefold().rpartition("/")[2]).strip("_")


def _is_metric(name: str) -> bool:
    """True for a name such as `val/acc`, `pass@1` or `aime24`, and not for `dapo-s1`, `lr-1e-5` or `no-kl`."""
    words = [word for word in re.split(r"[^a-z0-9]+", name.casefold()) if not word.isdigit()]
    return bool(METRIC_SECTION.match(name)) or (bool(words) and all(map(METRIC_WORD.fullmatch, words)))


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(map(repr, names[:MAX_NAMES])) + more
