"""How long a run and a sweep still take: numbers worked out by hand."""

import shutil
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from fixtures_home import make_home

from ablations.home.state import RunState, State
from ablations.running.run_sweep import locked
from ablations.status.progress import run_rows, to_json
from ablations.status.rows import is_going_on
from ablations.status.table import outlook
from ablations.status.time_left import end_text, seconds_for, seconds_left, sweep_seconds_left, time_left_text


def run(state: str, compute: float = 0.0, wall_s: float = 0.0) -> RunState:
    return RunState(state=State(state), compute_gpu_hours=compute, wall_s=wall_s)


@pytest.mark.parametrize(
    ("state", "seconds"),
    [
        (run("running", 40, 200), 300),  # 5 s a GPU-hour, 60 are left
        (replace(run("running", 40, 200), pace_s=2.0), 120),  # as fast as of late
        (run("running", 120, 600), 0),
        (run("running"), None),
        (run("running", 40, 0), None),
        (run("running", 0, 12), None),
    ],
)
def test_a_run_goes_on_as_fast_as_it_went(state, seconds):
    assert seconds_left(state, 100) == (None if seconds is None else pytest.approx(seconds))


def test_compute_takes_its_time_at_the_mean_speed_of_runs_that_have_trained():
    # Paces 5 and 10 s: mean 7.5; a pending run says nothing.
    assert seconds_for(20, [run("done", 40, 200), run("done", 10, 100), run("pending")]) == pytest.approx(150)
    assert seconds_for(20, [run("pending")]) is None


@pytest.mark.parametrize(
    ("states", "seconds"),
    [
        # Paces 5 and 10 s: mean 7.5. Places end after 300 and 900 s. The three that wait take 750 s each:
        # 300 -> 1050, 900 -> 1650, 1050 -> 1800.
        ([run("running", 40, 200), run("running", 10, 100), *map(run, ("pending", "queued", "requeued"))], 1800),
        # The place is free after 500 s; the other has 20 GPU-hours left at its own 2 s each.
        ([run("running", 50, 500), run("requeued", 80, 160)], 540),
        # The second takes its place after 120 s, at the mean of 2 and 4 s.
        ([replace(run("running", 40, 200), pace_s=2.0), run("done", 100, 400), run("pending")], 120 + 300),
        ([run("done", 100, 400), run("running")], 400),  # as fast as those that are done
        ([run("running", 50, 500), run("failed", 10, 100), run("stopped", 10, 100), run("cancelled")], 500),
        ([], None),
        ([run("running")], None),
        ([run("pending"), run("done", 100, 400)], None),
    ],
)
def test_waiting_runs_take_the_places_that_become_free(states, seconds):
    assert sweep_seconds_left(states, 100) == (None if seconds is None else pytest.approx(seconds))


def test_the_place_of_a_run_that_has_just_ended_is_free():
    # Alone, the run that trains would be followed by both that wait: 300, then 800 and 1300 s at 5 s each.
    states = [run("running", 40, 200), run("done", 100, 500), run("pending"), run("pending")]
    assert sweep_seconds_left(states, 100) == pytest.approx(1300)
    ended = [replace(state, heartbeat=1000.0) if state.state == State.DONE else state for state in states]
    # Two places: the free one is taken at once and again after 500 s if the other, free at 300 s, were not sooner.
    assert sweep_seconds_left(ended, 100, now=1010.0) == pytest.approx(800)
    assert sweep_seconds_left(ended, 100, now=1060.0) == pytest.approx(1300)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (59, "< 1 min"),
        (89 * 60, "1.5 h"),
        (3600 * 14.4, "14 h"),
        (86400 * 31.4, "31 days"),
    ],
)
def test_durations_are_as_exact_as_they_are_known(seconds, text):
    assert time_left_text(seconds) == text


def test_the_end_has_its_date_where_that_is_not_today():
    now = datetime(2026, 11, 22, 14, 40, tzinfo=UTC)
    assert end_text(40 * 60, now) == "about 40 min left, until 15:20"
    assert end_text(12 * 3600, now) == "about 12 h left, until 23 Nov 02:40"
    assert end_text(20, now) == "less than 1 min left, until 14:40"


def test_the_status_of_a_sweep_has_the_seconds_of_every_run_that_trains(tmp_path):
    sweep = make_home(tmp_path, fraction=0.25, state="running")
    home, plan = sweep.home, sweep.plan
    first, second, third = (run.id for variant in plan.variants for run in variant.runs)
    for run_id, seconds in ((first, 100.0), (second, 200.0)):
        folder = home.run(run_id)
        folder.write_status(replace(folder.read_status(), wall_s=seconds))
    data = to_json(plan, run_rows(sweep))
    # A quarter of 2000 GPU-hours took 100 and 200 s; the third is older than wall_s and runs at 0.3 s a GPU-hour.
    assert [one["seconds_left"] for one in data["runs"]] == [pytest.approx(300), pytest.approx(600), None]
    assert data["seconds_left"] == pytest.approx(600)
    assert (data["compute_gpu_hours"], data["compute_name"]) == (1500.0, "modelled GPU-hours")
    assert third not in {run["id"] for run in data["runs"] if run["seconds_left"]}


def test_a_pending_run_counts_only_while_a_sweep_is_at_work_which_starts_it(tmp_path):
    sweep = make_home(tmp_path, fraction=0.25, state="running")
    first, second, third = (sweep.run(run.id) for variant in sweep.plan.variants for run in variant.runs)
    for folder, seconds in ((first, 100.0), (second, 200.0)):
        folder.write_status(replace(folder.read_status(), wall_s=seconds))
    shutil.rmtree(third.path)
    with locked(sweep):  # after 300 s at the mean of 0.2 and 0.4 s a GPU-hour, 2000 GPU-hours
        assert to_json(sweep.plan, run_rows(sweep))["seconds_left"] == pytest.approx(900)
    rows = run_rows(sweep)
    assert to_json(sweep.plan, rows)["seconds_left"] == pytest.approx(600)
    said = outlook(sweep, rows, now=None)
    assert said.endswith(
        f"so far; 1 pending run will start only with `platform sweep sweeps/loo.yaml --home {tmp_path}`"
    )


@pytest.mark.parametrize(
    ("state", "age_s", "is_swept", "goes_on"),
    [
        ("running", 0, False, True),
        ("queued", 0, False, True),
        ("requeued", 0, False, True),
        ("pending", 0, False, False),
        ("pending", 0, True, True),
        ("preempted", 10, False, True),  # Slurm is about to send it back to the queue
        ("preempted", 1000, False, False),
        ("failed", 0, False, False),
    ],
)
def test_a_sweep_goes_on_while_a_run_trains_or_will_by_itself(state, age_s, is_swept, goes_on):
    one = RunState(state=State(state), heartbeat=5000.0 - age_s)
    assert is_going_on([RunState(state=State.DONE), one], is_swept=is_swept, now=5000.0) == goes_on
