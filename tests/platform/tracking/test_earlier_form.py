"""A store and a ledger as the version before tags left them: the next push adds what they lack and repeats nothing."""

import json

import pytest
from fixtures_home import R_0, make_home

from ablations.home.started_sweep import StartedSweep
from ablations.tracking.ledger import default_tracking_uri, read_ledger
from ablations.tracking.synchroniser import push_sweep

NUM_SENT = 60
"""Rows that MLflow had of each run: 40 steps and 20 evaluations, every row with the number of rows before the next."""


def send_in_earlier_form(sweep: StartedSweep, *, with_ledger: bool) -> None:
    """What 0cfdabc made of this home folder: parents with a fit, seeds with the whole recipe as params."""
    from mlflow import MlflowClient
    from mlflow.entities import Metric

    uri = default_tracking_uri(sweep.home)
    client = MlflowClient(uri)
    place = (sweep.home.path / "mlartifacts").as_uri()
    note = {"mlflow.note.content": sweep.plan.doc, "mlflow.experimentKind": "custom_model_development"}
    experiment = client.create_experiment("loo", artifact_location=place, tags=note)
    overrides = {"scalerl": "44136fa355b3", "loo-loss": "35aee9948eb8", "loo-curriculum": "3112b57f9956"}
    ledger = {"tracking_uri": uri, "runs": {}, "variants": {}}
    for variant in sweep.plan.variants:
        tags = {"ablations.variant": variant.name, "ablations.overrides": overrides[variant.name]}
        parent = client.create_run(experiment, 0, tags, variant.name).info.run_id
        told = {"ablations.verdict": "weak; reference; reference; reference", "ablations.fit": "dea8faee8588"}
        client.log_batch(parent, [Metric(name, 0.5, 9, 1) for name in ("A", "R_0")] + [Metric("sync/fits", 1, 9, 1)])
        for name, value in told.items():
            client.set_tag(parent, name, value)
        run = variant.runs[0]
        tags = {"ablations.run_id": run.id, "mlflow.parentRunId": parent}
        child = client.create_run(experiment, 0, tags, f"{variant.name} seed 0").info.run_id
        client.log_param(child, "loss.max_ratio", "5.0")
        lines = sweep.run(run.id).metrics.read_text().splitlines()[:NUM_SENT]
        points = []
        for number, row in enumerate(map(json.loads, lines), start=1):
            name = "train/entropy" if row["kind"] == "train" else "eval/pass_rate"
            points.append(Metric(name, row[name.split("/")[1]], int(1000 * row["wall_s"]), row["step"]))
            points.append(Metric("sync/rows", number, int(1000 * row["wall_s"]), number))
        client.log_batch(child, points)
        known = {"mlflow_id": child, "parent_id": parent, "num_rows": NUM_SENT, "state": "done"}
        ledger["runs"][run.id] = known
        known = {"mlflow_id": parent, "overrides": overrides[variant.name], "fit": "dea8faee8588"}
        ledger["variants"][variant.name] = known
    if with_ledger:
        (sweep.folder / "sync.json").write_text(json.dumps(ledger))


@pytest.mark.parametrize("with_ledger", [True, False])
def test_what_an_earlier_version_sent_is_completed_and_not_repeated(tmp_path, with_ledger):
    from mlflow import MlflowClient

    sweep = make_home(tmp_path)
    send_in_earlier_form(sweep, with_ledger=with_ledger)
    report = push_sweep(sweep)
    assert (report.rows_pushed, report.rows_left, report.reason) == (3 * (121 - NUM_SENT), 0, "")
    assert read_ledger(sweep).is_current(sweep, None)
    client = MlflowClient(default_tracking_uri(sweep.home))
    experiment = client.get_experiment_by_name("loo")
    assert experiment is not None
    found = client.search_runs([experiment.experiment_id])
    runs = {run.info.run_name: run for run in found}
    assert len(found) == len(runs) == 6
    for variant in sweep.plan.variants:
        parent, child = runs[variant.name], runs[f"{variant.name} seed 0"]
        rows = [json.loads(line) for line in sweep.run(variant.runs[0].id).metrics.read_text().splitlines()]
        rates = [(row["step"], row["pass_rate"]) for row in rows if row["kind"] == "eval"]
        history = client.get_metric_history(child.info.run_id, "eval/pass_rate")
        assert [(point.step, point.value) for point in history] == rates
        steps = [point.step for point in client.get_metric_history(child.info.run_id, "train/entropy")]
        assert steps == [*range(1, 64), *range(64, 81, 2)]
        assert (parent.data.tags["kind"], child.data.tags["kind"]) == ("variant", "seed")
        assert child.data.params["loss.max_ratio"] == "5.0"
        assert "ablations.verdict" not in parent.data.tags
        assert parent.data.metrics["system/fits"] == 2
        assert parent.data.metrics["R_0"] == pytest.approx(R_0, abs=0.02)
        assert [point.step for point in client.get_metric_history(parent.info.run_id, "A")] == [1, 2]
