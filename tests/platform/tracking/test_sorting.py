"""A table of MLflow sorted by a number stands as `platform compare --sort` does, with every variant in it."""

import json
import os
import subprocess
import sys
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
SEARCH = """
import json, mlflow
orders = {"A_lo": "metrics.A_lo DESC", "delta_level": "metrics.delta_level DESC"}
orders["compute"] = "metrics.compute_ratio ASC"
found = {}
for name, order in orders.items():
    table = mlflow.search_runs(experiment_names=["loo"], filter_string="tags.kind = 'variant'", order_by=[order])
    found[name] = table["tags.variant"].tolist()
    columns = [f"metrics.{number}" for number in ("A_lo", "level")]
    found["known"] = table.set_index("tags.variant")[columns].notna().all(axis=1).to_dict()
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def sweep(tmp_path_factory) -> StartedSweep:
    home = Home(tmp_path_factory.mktemp("home"))
    variants = tuple(
        PlannedVariant(name=name, overrides={}, runs=tuple(PlannedRun(seed=s, id=f"{n:06x}{s:06x}") for s in (0,)))
        for n, name in enumerate(CURVES)
    )
    sweep = StartedSweep(home=home, plan=replace(make_plan(), variants=variants, published={}))
    sweep.write_plan()
    for variant in variants:
        for run in variant.runs:
            write_run(home, run.id, CURVES[variant.name] or CURVES["low"], seed=run.seed)
            if CURVES[variant.name] is None:
                log = home.run(run.id).metrics
                log.write_text(log.read_text().splitlines(keepends=True)[0])
    return sweep


def test_search_runs_stands_as_compare_does_and_keeps_everyone(sweep):
    report = push_sweep(sweep)
    assert (report.rows_left, report.reason) == (0, "")
    own = {"MLFLOW_TRACKING_URI": default_tracking_uri(sweep.home), "MLFLOW_DISABLE_TELEMETRY": "true"}
    asked = subprocess.run([sys.executable, "-c", SEARCH], env=os.environ | own, capture_output=True, text=True)
    assert asked.returncode == 0, asked.stderr
    found = json.loads(asked.stdout.splitlines()[-1])

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
    assert found["known"] == {name: name != "unread" for name in CURVES}
