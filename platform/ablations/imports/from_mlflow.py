"""The runs of any MLflow experiment, given the meaning of its metrics and what identifies variants and seeds."""

import math
import re
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ablations.errors import AblationsError
from ablations.files.database import sqlite_path
from ablations.imports.found_run import FoundRun
from ablations.logs.expression import columns_of
from ablations.logs.log import Log
from ablations.logs.meaning import LogMeaning, curve_of_log
from ablations.logs.naming import whole_seed
from ablations.nearest_name import did_you_mean
from ablations.text import compute_text
from ablations.tracking.descriptions import OF_A_VARIANT
from ablations.tracking.mlflow_experiment import (
    PARENT_TAG,
    failures_of_mlflow,
    runs_of_experiment,
    set_up_client,
    short_reason,
)
from scalerl.credentials import without_secrets

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Run

STEP = "step"
"""Column of MLflow's own step."""
FINISHED = "FINISHED"
OF_TRAINING = re.compile(r"train|loss", re.IGNORECASE)
"""Words in the names of metrics that are logged during training."""
HEALTHY_STATES = (FINISHED, "SCHEDULED")
AS_FAR = 0.01
"""Largest difference in compute, as a share, between attempts that count as equally far."""


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """An experiment, with the params or tags for variant and for seed.

    Experiment(uri="http://mlflow:5000", name="grpo", meaning=meaning, variant="loss", seed="seed")
    """

    uri: str
    name: str
    meaning: LogMeaning
    variant: str = "variant"
    seed: str | None = None
    """Param or tag of the seed; without a name, the runs of a variant are numbered in order of start."""
    reader: str = "MLflow"
    files: tuple[Path, ...] = ()

    @property
    def key(self) -> str:
        return f"{without_secrets(self.uri)}, experiment {self.name}"

    @property
    def options(self) -> Mapping[str, Any]:
        return {"meaning": asdict(self.meaning), "variant": self.variant, "seed": self.seed}

    def read(self) -> tuple[Sequence[FoundRun], Sequence[str]]:
        """The runs of the experiment; unreadable runs are in the notes, with the reason.

        A run inherits the params and tags of its parents. A parent whose children have the score does not count as a
        run, since it may hold their mean. If several attempts have the same variant and seed, the one with the most
        compute is used.
        Raises AblationsError if the server or the experiment cannot be read.
        """
        self.meaning.check()
        set_up_client()
        from mlflow import MlflowClient

        try:
            path = sqlite_path(self.uri)
            if path is not None and not path.exists():  # MLflow would create the file
                escaped = "; in a URL ? is %3F and % is %25" if {"?", "%"} & {*self.uri} else ""
                raise AblationsError(f"--mlflow {self.uri}: there is no file {path}{escaped}")
            return _read_runs(MlflowClient(self.uri), self)
        except failures_of_mlflow() as error:
            raise AblationsError(f"--mlflow {self.uri}: {short_reason(error)}") from error


def _read_runs(client: "MlflowClient", names: Experiment) -> tuple[list[FoundRun], list[str]]:
    from mlflow.entities import ViewType

    meaning = names.meaning
    experiment = client.get_experiment_by_name(names.name)
    if experiment is None:
        others = [other.name for other in client.search_experiments()]
        raise AblationsError(
            f"--mlflow: no experiment {names.name!r}; {did_you_mean(names.name, others, 'experiments')}"
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
    found = [_counting(tries).run for tries in attempts.values()]
    notes += [_on_attempts(tries, meaning.compute_name) for tries in attempts.values() if len(tries) > 1]
    if not found:
        raise AblationsError("\n".join([f"experiment {names.name!r} has no readable run", *notes]))
    return found, notes


@dataclass(frozen=True, kw_only=True, eq=False)
class Attempt:
    """An attempt at one variant and seed: `Attempt(state="FAILED", run=FoundRun(variant="dapo", ...))`."""

    state: str
    run: FoundRun

    @property
    def compute(self) -> float:
        """Compute of its last reading; 0 without a curve."""
        return 0.0 if self.run.curve is None else float(self.run.curve.compute[-1])


def _counting(attempts: Sequence[Attempt]) -> Attempt:
    """The attempt with the most compute; of those that came as far, the last that finished, else the last.

    The state alone says little: a script that crashes outside `with mlflow.start_run()` is FINISHED.
    """
    most = max(attempt.compute for attempt in attempts)
    longest = [attempt for attempt in attempts if attempt.compute >= (1 - AS_FAR) * most]
    return ([attempt for attempt in longest if attempt.state == FINISHED] or longest)[-1]


def _on_attempts(attempts: Sequence[Attempt], compute_name: str) -> str:
    """A message naming the attempt that is used, those that are not, and how far each came."""
    counting, (run, *_) = _counting(attempts), [one.run for one in attempts]
    used, *others = [
        f"{one.run.place} ({one.state}, {compute_text(one.compute)} {compute_name})"
        for one in sorted(attempts, key=lambda one: one is not counting)
    ]
    return (
        f"{run.variant}, seed {run.seed}, has {len(attempts)} attempts in MLflow: {used} is used, which came furthest; "
        f"left out: {', '.join(others)}."
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
) -> FoundRun:
    needed = [name for name in meaning.resolve({STEP, *run.data.metrics}, "").columns if name != STEP]
    histories = {name: _history(client, run, name) for name in (*needed, *_of_training(run, needed))}
    points = [(*point, name) for name, history in histories.items() for point in history]
    points.sort(key=lambda point: point[0])
    columns = {STEP: np.array([step for _, step, _, _ in points], dtype=float)}
    columns |= {name: np.array([value if of == name else np.nan for *_, value, of in points]) for name in histories}
    log = Log(
        name=str(run.info.run_name),
        place=f"MLflow's run {run.info.run_name!r}",
        columns=dict.fromkeys(run.data.metrics, np.array([])) | columns,
        steps=(STEP,),
        nan_rows=lambda column: np.flatnonzero([of == column and np.isnan(value) for *_, value, of in points]),
        rows_of_columns=lambda: [~np.isnan(columns[name]) for name in histories],
        notes=() if run.info.status in HEALTHY_STATES else (f"its status in MLflow is {run.info.status}",),
    )
    curve, warnings = curve_of_log(log, meaning, name=f"{variant}-s{seed}", start=start)
    return FoundRun(
        place=run.info.run_id,
        variant=variant,
        seed=seed,
        start=start,
        curve=curve,
        score=meaning.score_name(log.columns),
        read_as=meaning.described(log.columns),
        warnings=tuple(warnings),
    )


def _of_training(run: "Run", needed: Sequence[str]) -> list[str]:
    """A metric of training, which tells where a resumed run goes on, if none but the score is needed."""
    if len(needed) > 1:
        return []
    return sorted(name for name in run.data.metrics if OF_TRAINING.search(name) and name not in needed)[:1]


def _history(client: "MlflowClient", run: "Run", metric: str) -> list[tuple[int, int, float]]:
    """The times, steps and values of a metric in the order of logging.

    Raises AblationsError if the latest value is missing, because the server sent only a part of the history.
    """
    points = client.get_metric_history(run.info.run_id, metric)
    latest = run.data.metrics[metric]
    if not any(point.value == latest or point.value != point.value for point in points):
        raise AblationsError(
            f"the history of {metric!r} is incomplete: MLflow sent {len(points):,} values without the latest, "
            f"{latest:g}; compare an export of the whole history instead"
        )
    found = ((point.timestamp, point.step, _as_logged(point.value)) for point in points)
    return sorted(found, key=lambda point: point[0])


def _as_logged(value: float) -> float:
    """A value as it was logged: MLflow stores infinity as the largest number (3.17.2, `SqlAlchemyStore.log_metric`)."""
    return math.copysign(math.inf, value) if abs(value) == sys.float_info.max else value
