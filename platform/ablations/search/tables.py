"""Tables of a search for the terminal: its space, and its trials, best first."""

from collections.abc import Sequence

from ablations.search.objective import is_maximised, title, value_text
from ablations.search.record import SearchRecord, SearchTrial
from ablations.study.search_points import setting_of_point
from ablations.terminal.listing import Column, Listing
from ablations.text import counted

BEST, PARETO_FRONT = "best", "Pareto front"
"""Labels of the best trials, with one objective and with several."""


def space_table(record: SearchRecord) -> Listing:
    """The space of a search with its sampler and objective."""
    table = Listing(
        columns=(Column(heading="setting"), Column(heading="range or choices", kind="words")),
        title=f"search of {counted(record.num_trials, 'trial')}, sampler {record.sampler} (seed {record.seed})",
        notes=(objective_text(record),),
    )
    for name, written in record.space.items():
        table.add(name, written)
    return table


def objective_text(record: SearchRecord) -> str:
    """The objective as text: `objective: maximise A, lower end`; several make a Pareto front."""
    parts = [f"{'maximise' if is_maximised(one) else 'minimise'} {title(one)}" for one in record.objectives]
    return f"objective: {parts[0]}" if len(parts) == 1 else f"Pareto front: {'; '.join(parts)}"


def to_come_text(record: SearchRecord, num_seeds: int, compute_name: str) -> str:
    """The trials still to propose: `12 trials to come, each 2 runs of 1500 modelled GPU-hours`."""
    to_come = f"{counted(record.num_to_come, 'trial')} to come, each {counted(num_seeds, 'run')}"
    return f"{to_come} of {record.budget_gpu_hours:g} {compute_name}"


def trials_table(record: SearchRecord) -> Listing:
    """One line per trial: finished ones best first, then those that run or failed, with the reason."""
    numbers = [*map(title, record.objectives), *record.space]
    columns = [Column(heading=heading, kind="number") for heading in numbers]
    done = f"{len(record.ranked)} of {record.num_trials} trials done"
    head = f"{done}, sampler {record.sampler}; {objective_text(record)}"
    table = Listing(columns=[Column(heading="trial"), *columns, Column(heading="", kind="prose")], title=head)
    for cells in trial_lines(record):
        table.add(*cells.values(), style="green" if cells[""] in (BEST, PARETO_FRONT) else "")
    return table


def trial_lines(record: SearchRecord) -> list[dict[str, str]]:
    """The trials as text by column name: name, objectives, settings and remarks."""
    best = [trial.name for trial in record.best]
    name_of_best = BEST if len(record.objectives) == 1 else PARETO_FRONT
    return [
        {
            "trial": trial.name,
            **dict(zip(map(title, record.objectives), _values(record, trial), strict=True)),
            **{name: setting_of_point(trial.params[name]) for name in record.space},
            "": name_of_best if trial.name in best else _what(trial),
        }
        for trial in [*record.ranked, *(one for one in record.trials if one.state != "done")]
    ]


def note(record: SearchRecord, reference: str) -> str:
    """A caution on comparing the best trial with the reference."""
    if not record.best:
        return f"no trial {'is done' if not record.ranked else 'reaches the score'} so far"
    names = ", ".join(trial.name for trial in record.best)
    return (
        f"{names} {'is' if len(record.best) == 1 else 'are'} the best of {len(record.ranked)} by these same "
        f"evaluations, which flatters the difference from {reference}; to confirm it, train with other seeds"
    )


def _values(record: SearchRecord, trial: SearchTrial) -> Sequence[str]:
    if trial.state != "done":
        return [""] * len(record.objectives)
    return [value_text(one, found) for one, found in zip(record.objectives, trial.values, strict=True)]


def _what(trial: SearchTrial) -> str:
    return "" if trial.state == "done" else f"{trial.state}: {trial.reason}" if trial.reason else trial.state
