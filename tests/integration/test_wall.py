"""A sweep on the wall clock, from the command line: its jobs start generator processes of their own."""

import json
import os
import signal
from pathlib import Path

import pytest
from integration.conftest import SCALE, start
from waiting import wait_until

CLUSTER = "cluster: {type: wall, generators: 1, slots: 16}\nthreads: 1"
SWEEP = """
name: clock
reference: scalerl
seeds: [0]
scale: wall_seconds
axes:
  schedule:
    ppo: {off_policy: {type: ppo_off_policy, k: 4}}
budget: {compute: 1.0}
"""


@pytest.fixture
def wall_study(study: Path) -> Path:
    """A sweep of the two schedules on the wall clock."""
    kept = [
        line
        for line in SCALE.splitlines()
        if not line.startswith(("cluster", "  attention", "evaluation", "compute_unit"))
    ]
    lines = [*kept, CLUSTER, "evaluation: {every: 0.1, samples: 2}", "compute_unit_gpu_hours: 0.002"]
    (study.parents[1] / "recipes" / "scales" / "wall_seconds.yaml").write_text("\n".join(lines))
    path = study.with_name("clock.yaml")
    path.write_text(SWEEP)
    return path


def generators_in(home: Path) -> list[int]:
    """Processes whose parent trains a run of the home folder."""
    learners = {
        json.loads(path.read_text())["pid"] for path in home.glob("runs/*/status.json") if path.read_text().strip()
    }
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = stat.read_text().rsplit(")", 1)[1].split()[:2]
            spawned = "spawn_main" in (stat.parent / "cmdline").read_text()
        except OSError:
            continue
        if int(parent) in learners and spawned and state != "Z":
            found.append(int(stat.parent.name))
    return found


@pytest.mark.studies
def test_a_sweep_on_the_wall_clock_trains_in_jobs_and_says_that_its_compute_is_measured(platform, wall_study, home):
    assert "0.002 measured device-hours each" in platform("sweep", str(wall_study), "--dry-run").stdout
    swept = platform("sweep", str(wall_study), code=None)
    assert "measured device-hours" in swept.stdout
    assert "modelled" not in swept.stdout
    states = {run["state"] for run in json.loads(platform("status", "--json").stdout)["runs"]}
    assert states == {"done"}
    assert generators_in(home) == []


def test_a_cancelled_sweep_leaves_no_generator_and_its_runs_can_go_on(platform, wall_study, home):
    process = start(home, "sweep", str(wall_study), "--budget", "100x")
    generators = wait_until(lambda: generators_in(home), "generators", process=process)
    os.kill(process.pid, signal.SIGINT)
    process.wait(250)
    assert not any(Path(f"/proc/{generator}").exists() for generator in generators)
    states = {run["state"] for run in json.loads(platform("status", "--json", code=None).stdout)["runs"]}
    assert states <= {"cancelled", "pending"}
