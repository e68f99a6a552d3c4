"""The curves of any MLflow experiment, given the meaning of its metrics and what identifies variants and seeds."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ablations.errors import AblationsError
from ablations.files.database import sqlite_path
from ablations.findings.other_trainers import MeasuredRun, MeasuredStudy
from ablations.logs.expression import columns_of
from ablations.logs.log import Log
from ablations.logs.meaning import LogMeaning, curve_of_log
from ablations.logs.naming import whole_seed
from ablations.nearest_name import did_you_mean
from ablations.tracking.descriptions import OF_A_VARIANT
from ablations.tracking.mlflow_experiment import (
    PARENT_TAG,
    failures_of_mlflow,
    runs_of_experiment,
    set_up_client,
    short_reason,
)

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

STEP = "step"
"""Column of MLflow's own step."""
FINISHED = "FINISHED"
HEALTHY_STATES = (FINISHED, "SCHEDULED")


@dataclass(frozen=True, kw_only=True)
class ExperimentNames:
    """The names of an experiment, and of the param or tag for variant and for seed.

    ExperimentNames(experiment="grpo", variant="loss", seed="seed")
    """

    experiment: str
    variant: str = "variant"
    seed: str | None = None
    """Param or tag of the seed; without a name, the runs of a variant are numbered in order of their start."""


def study_of_experiment(tracking_uri: str, names: ExperimentNames, meaning: LogMeaning) -> MeasuredStudy:
    """The runs of an experiment; unreadable runs are in the notes, with the reason.

    A run inherits the params and tags of its parents. A parent whose children have the score does not count as a run,
    since it may hold their mean. If several attempts have the same variant and seed, the last finished one is used.
    Raises AblationsError if the server or the experiment cannot be read.
    """
    set_up_client()
    from mlflow import MlflowClient

    try:
        path = sqlite_path(tracking_uri)
        if path is not None and not path.exists():  # MLflow would create the file
            escaped = "; in a URL ? is %3F and % is %25" if {"?", "%"} & {*tracking_uri} else ""
            raise AblationsError(f"--mlflow {tracking_uri}: there is no file {path}{escaped}")
        return _read_study(MlflowClient(tracking_uri), names, meaning)
    except failures_of_mlflow() as error:
        raise AblationsError(f"--mlflow {tracking_uri}: {short_reason(error)}") from error


def _read_study(client: "MlflowClient", names: ExperimentNames, meaning: LogMeaning) -> MeasuredStudy:
    from mlflow.entities import ViewType

    experiment = client.get_experiment_by_name(names.experiment)
    if experiment is None:
        others = [other.name for other in client.search_experiments()]
        raise AblationsError(
            f"--experiment: no experiment {names.experiment!r}; {did_you_mean(names.experiment, others, 'experiments')}"
        )
    # In order of their start; a deleted run may still be the child that identifies a parent.
    options = {"run_view_type": ViewType.ALL, "order_by": ["attributes.start_time ASC"]}
    every = {run.info.run_id: run for run in runs_of_experiment(client, experiment.experiment_id, **options)}
    scored = {run_id for run_id, run in every.items() if _has_score(run, meaning)}
    parents = {above.info.run_id for run_id in scored for above in _lineage(every[run_id], every)[1:]}
    runs = [run for run in every.values() if run.info.lifecycle_stage == "active"]
    attempts: dict[tuple[str, int], list[Attempt]] = defaultdict(list)
    notes, begun = [], dict[str, int]()
    held = [run for run in runs if run.info.run_id in parents & scored and run.data.tags.get("kind") != OF_A_VARIANT]
    if held:
        notes.append(
            "Parents of other runs in MLflow are left out, since they may hold the mean of their children: "
            f"{', '.join(str(run.info.run_name) for run in held)}."
        )
    for run in runs:
        if run.info.run_id in parents:
            continue
        try:
            variant = _named(run, every, names.variant, "--variant")
            seed = begun.get(variant, 0)
            if names.seed is not None:
                seed = whole_seed(_named(run, every, names.seed, "--seed"), "--seed")
            begun[variant] = begun.get(variant, 0) + 1
            measured = _measured(
                client, run, meaning, variant, seed, start="" if names.seed is None else f"seed {seed}"
            )
        except AblationsError as error:
            notes.append(f"MLflow's run {run.info.run_name!r} is left out: {error}.")
            continue
        attempts[variant, seed].append(Attempt(state=run.info.status, run=measured))
    found = [_counting(tries) for tries in attempts.values()]
    notes += [_on_attempts(tries) for tries in attempts.values() if len(tries) > 1]
    if not found:
        raise AblationsError("\n".join([f"--experiment {names.experiment!r} has no readable run", *notes]))
    return MeasuredStudy(
        name=names.experiment,
        compute_name=meaning.compute_name,
        runs=tuple(found),
        notes=tuple(notes),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class Attempt:
    """An attempt at one variant and seed: `Attempt(state="FAILED", run=MeasuredRun(variant="dapo", ...))`."""

    state: str
    run: MeasuredRun


def _counting(attempts: Sequence[Attempt]) -> MeasuredRun:
    """The last finished attempt, or the last one if none has finished."""
    finished = [attempt for attempt in attempts if attempt.state == FINISHED]
    return (finished or attempts)[-1].run


def _on_attempts(attempts: Sequence[Attempt]) -> str:
    """A message naming the attempt that is used and those that are not."""
    counting = _counting(attempts)
    which = "the last that finished" if any(one.state == FINISHED for one in attempts) else "the last, as none finished"
    others = ", ".join(f"{one.run.id} ({one.state})" for one in attempts if one.run is not counting)
    return (
        f"{counting.variant}, seed {counting.seed}, has {len(attempts)} attempts in MLflow: {counting.id} is used, "
        f"{which}; left out: {others}."
    )


def _has_score(run: "Run", meaning: LogMeaning) -> bool:
    """True if the run has the metrics of the score."""
    try:
        score = meaning.resolve_score({STEP, *run.data.metrics})
    except AblationsError:
        return False
    return any(column != STEP for column in columns_of(score))


def _lineage(run: "Run", every: Mapping[str, "Run"]) -> list["Run"]:
    """A run, its parent, its parent's parent and so on, if the experiment has them."""
    found = {run.info.run_id: run}
    while (above := every.get(run.data.tags.get(PARENT_TAG, ""))) is not None and above.info.run_id not in found:
        found[above.info.run_id] = run = above
    return list(found.values())


def _named(run: "Run", every: Mapping[str, "Run"], name: str, option: str) -> str:
    """The param or tag of a run or of its nearest ancestor that has it."""
    for one in _lineage(run, every):
        for values in (one.data.params, one.data.tags):
            if values.get(name):
                return values[name]
    known = sorted({*run.data.params, *(tag for tag in run.data.tags if not tag.startswith("mlflow."))})
    raise AblationsError(
        f"{option}: the run has no param or tag {name!r}; {did_you_mean(name, known, 'params or tags in this run')}"
    )


def _measured(
    client: "MlflowClient", run: "Run", meaning: LogMeaning, variant: str, seed: int, *, start: str
) -> MeasuredRun:
    needed = [name for name in meaning.resolve({STEP, *run.data.metrics}, "").columns if name != STEP]
    rows = [(step, name, value) for name in needed for step, value in _history(client, run, name)]
    columns = {STEP: np.array([step for step, _, _ in rows], dtype=float)}
    columns |= {name: np.array([value if of == name else np.nan for _, of, value in rows]) for name in needed}
    log = Log(
        name=str(run.info.run_name),
        place=f"MLflow's run {run.info.run_name!r}",
        columns=dict.fromkeys(run.data.metrics, np.array([])) | columns,
        steps=(STEP,),
        nans=lambda column: sum(of == column and np.isnan(value) for _, of, value in rows),
        notes=() if run.info.status in HEALTHY_STATES else (f"its status in MLflow is {run.info.status}",),
    )
    curve, warnings = curve_of_log(log, meaning, name=f"{variant}-s{seed}", start=start)
    return MeasuredRun(variant=variant, seed=seed, id=run.info.run_id, curve=curve, warnings=tuple(warnings))


def _history(client: "MlflowClient", run: "Run", metric: str) -> list[tuple[int, float]]:
    """The steps and values of a metric in the order of logging.

    Raises AblationsError if the latest value is missing, because the server sent only a part of the history.
    """
    points = client.get_metric_history(run.info.run_id, metric)
    latest = run.data.metrics[metric]
    if not any(point.value == latest or point.value != point.value for point in points):
        raise AblationsError(
            f"the history of {metric!r} is incomplete: MLflow sent {len(points):,} values without the latest, "
            f"{latest:g}; compare an export of the whole history instead"
        )
    return [(point.step, point.value) for point in sorted(points, key=lambda point: point.timestamp)]
