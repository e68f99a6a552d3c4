"""Tables of a search: its space, and its trials, best first."""

from dataclasses import replace

from ablations.report.documents.blocks import Cell, Column, Kind, Table, table_of_rows
from ablations.search.objective import is_maximised, title, value_text
from ablations.search.record import SearchRecord, SearchTrial
from ablations.study.search_points import setting_of_point
from ablations.text import counted

BEST, PARETO_FRONT = "best", "Pareto front"
"""Labels of the best trials, with one objective and with several."""


def space_table(record: SearchRecord) -> Table:
    """The space of a search with its sampler and objective."""
    rows = [{"setting": name, "range or choices": written} for name, written in record.space.items()]
    title = f"search of {counted(record.num_trials, 'trial')}, sampler {record.sampler} (seed {record.seed})"
    kinds: dict[str, Kind] = {"range or choices": "words"}
    return table_of_rows(rows, name="space", kinds=kinds, title=title, notes=(objective_text(record),))


def objective_text(record: SearchRecord) -> str:
    """The objective as text: `objective: maximise A, lower end`; several make a Pareto front."""
    parts = [f"{'maximise' if is_maximised(one) else 'minimise'} {title(one)}" for one in record.objectives]
    return f"objective: {parts[0]}" if len(parts) == 1 else f"Pareto front: {'; '.join(parts)}"


def to_come_text(record: SearchRecord, num_seeds: int, compute_name: str) -> str:
    """The trials still to propose: `12 trials to come, each 2 runs of 1500 modelled GPU-hours`."""
    to_come = f"{counted(record.num_to_come, 'trial')} to come, each {counted(num_seeds, 'run')}"
    return f"{to_come} of {record.budget_gpu_hours:g} {compute_name}"


def trials_table(record: SearchRecord) -> Table:
    """One line per trial: finished ones best first, then those that run or failed, with the reason."""
    numbers = (*map(title, record.objectives), *record.space)
    ranked, best = record.ranked, record.best
    done = f"{len(ranked)} of {record.num_trials} trials done"
    return Table(
        name="trials",
        title=f"{done}, sampler {record.sampler}; {objective_text(record)}",
        columns=(
            Column(heading="trial"),
            *(Column(heading=heading, kind="number") for heading in numbers),
            Column(heading="", kind="prose"),
        ),
        rows=tuple(
            _cells(record, one, is_best=one in best)
            for one in [*ranked, *(one for one in record.trials if one.state != "done")]
        ),
    )


def _cells(record: SearchRecord, trial: SearchTrial, *, is_best: bool) -> tuple[Cell, ...]:
    """Name, objectives, settings and remarks; a best trial is green."""
    settings = (trial.params[name] for name in record.space)
    values = zip(record.objectives, trial.values if trial.state == "done" else (), strict=False)
    shown = [
        Cell(trial.name),
        *([Cell(value_text(one, found), found) for one, found in values] or [Cell("")] * len(record.objectives)),
        *(Cell(setting_of_point(one), None if isinstance(one, str) else one) for one in settings),
        Cell((BEST if len(record.objectives) == 1 else PARETO_FRONT) if is_best else _what(trial)),
    ]
    return tuple(replace(one, tone="good") for one in shown) if is_best else tuple(shown)


def note(record: SearchRecord, reference: str) -> str:
    """A caution on comparing the best trial with the reference."""
    if not record.best:
        return f"no trial {'is done' if not record.ranked else 'reaches the score'} so far"
    names = ", ".join(trial.name for trial in record.best)
    return (
        f"{names} {'is' if len(record.best) == 1 else 'are'} the best of {len(record.ranked)} by these same "
        f"evaluations, which flatters the difference from {reference}; to confirm it, train with other seeds"
    )


def _what(trial: SearchTrial) -> str:
    return "" if trial.state == "done" else f"{trial.state}: {trial.reason}" if trial.reason else trial.state
