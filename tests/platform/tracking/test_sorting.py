"""A table of MLflow sorted by a number stands as `platform compare --sort` does, with every variant in it."""

import math
import shutil
from dataclasses import replace

import pytest
from fixtures_home import R_0, make_plan, write_run

from ablations.findings.order import in_order
from ablations.findings.results import read_results
from ablations.home.home import Home
from ablations.home.plan import PlannedRun, PlannedVariant
from ablations.home.started_sweep import StartedSweep
from ablations.tracking.ledger import default_tracking_uri
from ablations.tracking.synchroniser import push_sweep

CURVES = {
    "flat": (R_0, 1.9, 320.0),
    "late": (0.90, 1.5, 9000.0),
    "low": (0.54, 1.9, 320.0),
    "scalerl": (0.61, 1.9, 320.0),
    "unread": None,
    "high": (0.70, 1.9, 320.0),
    "slow": (0.61, 1.9, 520.0),
}
"""A, B and C_mid of each variant in the order of the plan; one has a single reading."""
ORDERS = {
    "A_lo": "metrics.A_lo DESC",
    "delta_level": "metrics.delta_level DESC",
    "compute": "metrics.compute_ratio ASC",
}


@pytest.fixture
def sweep(tmp_path, empty_store) -> StartedSweep:
    shutil.copy(empty_store, tmp_path / "mlflow.db")
    variants = tuple(
        PlannedVariant(name=name, overrides={}, runs=(PlannedRun(seed=0, id=f"{number:012x}"),))
        for number, name in enumerate(CURVES)
    )
    sweep = StartedSweep(home=Home(tmp_path), plan=replace(make_plan(), variants=variants, published={}))
    sweep.write_plan()
    for variant in variants:
        folder = sweep.run(variant.runs[0].id)
        write_run(sweep.home, folder.path.name, CURVES[variant.name] or CURVES["low"])
        if CURVES[variant.name] is None:
            folder.metrics.write_text(folder.metrics.read_text().splitlines(keepends=True)[0])
    return sweep


def test_search_runs_stands_as_compare_does_and_keeps_everyone(sweep):
    from mlflow import MlflowClient

    report = push_sweep(sweep)
    assert (report.rows_left, report.reason) == (0, "")
    client = MlflowClient(default_tracking_uri(sweep.home))
    tables = {
        name: client.search_runs(["1"], "tags.kind = 'variant'", order_by=[order]) for name, order in ORDERS.items()
    }
    found = {name: [run.data.tags["variant"] for run in table] for name, table in tables.items()}

    results = read_results(sweep)
    kinds = {one.name: results.compared(one.name) for one in results.variants}
    assert kinds["unread"] is None
    assert not results.asymptote(results.variant("flat")).rises
    assert results.asymptote(results.variant("late")).hi is None
    assert found["A_lo"] == [variant.name for variant in in_order(results, "ceiling").variants]
    assert found["delta_level"] == [variant.name for variant in in_order(results, "level").variants]
    ratios = {name: line and line.answers["compute"].estimate for name, line in kinds.items()}
    known = [one.name for one in in_order(results, "compute").variants if ratios[one.name] is not None]
    assert len(known) >= 4
    assert found["compute"][: len(known)] == known
    assert sorted(found["compute"]) == sorted(CURVES)
    for run in tables["A_lo"]:
        is_whole = all(math.isfinite(run.data.metrics.get(name, math.nan)) for name in ("A_lo", "level"))
        assert is_whole == (run.data.tags["variant"] != "unread")
