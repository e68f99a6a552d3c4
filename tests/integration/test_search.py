"""`platform sweep` on a real search: killed in the middle, resumed, and ended with a verdict on its best trial."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from integration.conftest import is_untouched, kill_tree, start
from waiting import wait_until

NUM_TRIALS = 12
SEARCH = f"""
name: search
doc: A search for tests
reference: scalerl
seeds: [0]
scale: seconds
search:
  space:
    optimiser.learning_rate: {{low: 2.0e-4, high: 5.0e-3, log: true}}
    batch.prompts: {{low: 4, high: 12, step: 4}}
    loss.type: {{choices: [cispo, dapo]}}
  trials: {NUM_TRIALS}
budget: {{compute: 0.7}}
"""


@pytest.fixture
def search(study: Path) -> Path:
    scale = study.parents[1] / "recipes/scales/seconds.yaml"
    scale.write_text(scale.read_text().replace("steps: 40", "steps: 200"))  # else every pass rate is 0
    path = study.with_name("search.yaml")
    path.write_text(SEARCH)
    return path


def trials(home: Path) -> list[dict]:
    path = home / "sweeps" / "search" / "search.json"
    return json.loads(path.read_bytes())["trials"] if path.exists() else []


def wait_for(home: Path, *, done: int, running: int) -> list[dict]:
    """Until so many trials are done and so many more are planned; gives them."""

    def enough() -> list[dict]:
        found = trials(home)
        states = [trial["state"] for trial in found]
        return found if states.count("done") >= done and states.count("running") >= running else []

    what = f"{done} trials done and {running} running"
    return wait_until(enough, what, limit_s=200.0, every_s=0.1, shown=lambda: trials(home))


@pytest.mark.studies
@pytest.mark.timeout(600)
def test_a_search_killed_in_the_middle_resumes_and_evaluates_nothing_twice(platform, search, home):
    process = start(home, "sweep", str(search), "--jobs", "2")
    try:
        before = wait_for(home, done=3, running=2)
    finally:
        kill_tree(process)
    finished = {path.parent.name: path.read_bytes() for path in home.glob("runs/*/metrics.jsonl") if is_done(path)}
    assert json.loads(platform("status", "search", "--json", code=3).stdout)["sweep"] == "search"

    said = platform("sweep", str(search), "--jobs", "2").stdout
    after = trials(home)
    assert [trial["state"] for trial in after] == ["done"] * NUM_TRIALS
    assert [trial["params"] for trial in after[: len(before)]] == [trial["params"] for trial in before]

    runs = json.loads(platform("status", "search", "--json").stdout)["runs"]
    recipes = [(home / "runs" / run["id"] / "recipe.json").read_text() for run in runs]
    assert len(runs) == len(set(recipes)) == len(list(home.glob("runs/*"))) == NUM_TRIALS + 1
    assert len(finished) >= 4  # the reference among them
    assert all((home / "runs" / run / "metrics.jsonl").read_bytes() == log for run, log in finished.items())
    attempts = {run["id"]: run["attempt"] for run in runs}
    assert all(attempts[run] == 1 for run in finished)
    assert sum(attempts.values()) <= NUM_TRIALS + 1 + 2  # only the two that trained when they were killed

    best = max(after, key=lambda trial: trial["values"][0])["name"]
    assert json.loads((home / "sweeps" / "search" / "search.json").read_bytes())["best"] == [best]
    compared = {line["curve"]: line for line in json.loads(platform("compare", "--json").stdout)["variants"]}
    assert compared[best]["ceiling_verdict"] in ("ceiling up", "ceiling down", "no difference seen", "cannot tell")
    assert len(compared) == NUM_TRIALS + 1
    assert f"{best} is the best of {NUM_TRIALS}" in said
    with closing(sqlite3.connect(home / "mlflow.db")) as store:
        assert store.execute("select count(*) from runs").fetchone()[0] == 2 * (NUM_TRIALS + 1)


def is_done(log: Path) -> bool:
    return json.loads((log.parent / "status.json").read_bytes())["state"] == "done"


def test_dry_run_shows_what_would_be_searched_and_writes_nothing(platform, search, home):
    said = platform("sweep", str(search), "--dry-run").stdout
    assert "search of 12 trials, sampler tpe (seed 0)" in said
    assert "0.0002 to 0.005, log" in said
    assert "12 trials to come, each 1 run of 5.6 modelled GPU-hours" in said
    printed = json.loads(platform("sweep", str(search), "--dry-run", "--json").stdout)
    assert printed["search"]["space"]["batch.prompts"] == "4 to 12, step 4"
    assert [run["variant"] for run in printed["runs"]] == ["scalerl"]
    assert printed["left_gpu_hours"] == pytest.approx((1 + NUM_TRIALS) * 0.7 * 8.0)
    assert is_untouched(home)


def test_a_search_that_cannot_work_is_refused_before_anything_is_made(platform, search, home):
    search.write_text(SEARCH.replace("batch.prompts: {low: 4", "batch.promts: {low: 4"))
    refused = platform("sweep", str(search), code=2)
    assert "search.yaml:10: search.space.batch.promts: unknown key 'promts'" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert is_untouched(home)
