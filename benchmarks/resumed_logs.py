"""Logs of runs that were killed and resumed from an earlier step: whether a curve has any value of a lost attempt.

    python benchmarks/resumed_logs.py            # 650 logs in 13 forms; about half a minute

`resumed_runs.py` makes the runs, and `log_forms.py` writes them. Writes results/resumed_logs.json.
"""

import json
import math
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from log_forms import FILES, OWN_STEP
from record import write_record
from resumed_runs import GPUS, SCORE, TIME, ResumedRun, resumed_run

from ablations.errors import AblationsError
from ablations.imports.found_run import FoundRun
from ablations.imports.orders import Foreign
from ablations.logs.meaning import LogMeaning

SEED, EACH = 46, 50
MLFLOW = "MLflow"
ON_TIME = {"W&B parts"}
"""Forms whose writer allows no step back, so that no evaluation comes late."""
COMPUTE = f"cumsum({TIME}) * {GPUS} / 3600"


def read_files(form: str, run: ResumedRun, folder: Path) -> FoundRun:
    """A run that is written in one of the forms of files."""
    meaning = LogMeaning(score=SCORE, compute=COMPUTE, step=OWN_STEP if form == "W&B history" else None)
    return only_run(Foreign(names=tuple(map(str, FILES[form](run, folder))), meaning=meaning))


def read_mlflow(run: ResumedRun, uri: str, name: str) -> FoundRun:
    """A run that is logged in an experiment of its own."""
    from mlflow import MlflowClient
    from mlflow.entities import Metric

    client = MlflowClient(uri)
    logged = client.create_run(client.create_experiment(name), run_name="dapo-s0", tags={"variant": "dapo"})
    metrics = [
        Metric(tag, value, int(1000 * event.clock), event.step)
        for event in run.events
        for tag, value in event.values.items()
    ]
    client.log_batch(logged.info.run_id, metrics)
    client.set_terminated(logged.info.run_id)
    return only_run(Foreign(names=(name,), meaning=LogMeaning(score=SCORE, compute=COMPUTE), mlflow=uri))


def only_run(foreign: Foreign) -> FoundRun:
    """The run of the only source; AblationsError if it cannot be read."""
    (source,) = foreign.sources()[""]
    (found,) = source.read()[0]
    if found.curve is None:
        raise AblationsError(found.reason)
    return found


def outcome(run: ResumedRun, read: Callable[[], FoundRun]) -> str:
    """`equal` to the true curve, `refused: ...`, or what is wrong with it."""
    try:
        found = read()
    except AblationsError as error:
        return f"refused: {error}"
    assert found.curve is not None
    seen = [*zip(found.curve.compute.tolist(), found.curve.score.tolist(), strict=True)]
    lost = {round(score, 4) for _, score in seen} - {score for _, score in run.curve}
    if lost:
        return f"lost values in the curve: {sorted(lost)}"
    if len(seen) != len(run.curve):
        return f"fewer readings: {len(seen)} of {len(run.curve)}" if len(seen) < len(run.curve) else "more readings"
    is_equal = all(
        math.isclose(a, b, rel_tol=1e-6)
        for one, other in zip(seen, run.curve, strict=True)
        for a, b in zip(one, other, strict=True)
    )
    return "equal" if is_equal else "other compute"


def outcomes(each: int, seed: int, folder: Path, uri: str) -> dict[str, Counter[str]]:
    """How many logs of each form come out how."""
    found: dict[str, Counter[str]] = {}
    for number, form in enumerate([*FILES, MLFLOW]):
        counts = found[form] = Counter()
        for one in range(each):
            rng = np.random.default_rng([seed, number, one])
            run = resumed_run(rng, may_be_late=form not in ON_TIME)
            place = folder / f"{number}-{one}"
            place.mkdir(parents=True)
            if form == MLFLOW:
                said = outcome(run, partial(read_mlflow, run, uri, f"{form} {one}"))
            else:
                said = outcome(run, partial(read_files, form, run, place))
            counts[said.partition(":")[0]] += 1
            if said != "equal" and "-v" in sys.argv:
                print(form, one, said[:300], run.resumed_from)
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = outcomes(EACH, SEED, folder, f"sqlite:///{folder}/mlflow.db")
    total = sum(found.values(), Counter())
    report = {"logs": total.total(), "outcomes": dict(total), "forms": {form: dict(one) for form, one in found.items()}}
    print(json.dumps(report, indent=2))
    write_record("resumed_logs", {"settings": {"seed": SEED, "logs of each form": EACH}, **report})


if __name__ == "__main__":
    main()
