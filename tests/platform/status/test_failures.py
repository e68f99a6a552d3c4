"""Failed runs are grouped by what they died of, and told once."""

import json
import time
from dataclasses import replace

import pytest
from fixtures_home import make_home, write_state
from rich.console import Console
from typer.testing import CliRunner

from ablations.cli import app
from ablations.home.started_sweep import StartedSweep
from ablations.home.state import RunState, State
from ablations.slurm.submissions import new_submission
from ablations.status.failures import group_failures
from ablations.status.live_table import clock
from ablations.status.progress import run_rows
from ablations.status.rows import RunRow
from ablations.status.table import status_table, status_view, worth_showing
from ablations.text import cause

TRACE = ["Traceback (most recent call last):", *(f"  File line {n}" for n in range(12)), "RuntimeError: no"]


@pytest.fixture
def failed(tmp_path) -> StartedSweep:
    """Six runs: the four of two variants died of one error each says with other numbers, one of another."""
    sweep = make_home(tmp_path, seeds=(0, 1), fraction=0.5, state="failed")
    home, plan = sweep.home, sweep.plan
    ids = [run.id for variant in plan.variants for run in variant.runs]
    for number, run_id in enumerate(ids[:4]):
        write_state(home, run_id, "failed", message=f"RuntimeError: step {number} of {run_id} at 0x7f{number}a: no")
    write_state(home, ids[4], "failed", message="TaskError: sums.jsonl:2: not JSON")
    write_state(home, ids[5], "done")
    return sweep


def status(*arguments: str, code: int) -> str:
    result = CliRunner().invoke(app, ["status", *arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.stdout


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("OSError: /h/runs/81d2f0a95c3b/logs", "OSError: /h/runs/3f0c9a1b2d4e/logs"),
        ("RuntimeError: at 0x7f01a2", "RuntimeError: at 0x55bc09"),
        ("OutOfMemoryError: 12.5 GiB of 80 GiB on node7", "OutOfMemoryError: 3 GiB of 40 GiB on node12"),
        ("FileNotFoundError: /tmp/tmpab3_x9zq/a", "FileNotFoundError: /tmp/tmpkk01mnop/a"),
        ("job 17_3: the time limit came", "job 18_0: the time limit came"),
    ],
)
def test_what_differs_between_runs_is_no_part_of_the_cause(one, other):
    assert cause(one) == cause(other)
    assert cause("KeyError: loss") != cause("KeyError: logits")
    assert cause("the facade decade failed") == "the facade decade failed"  # all letters of hexadecimal numbers


def test_runs_that_died_of_one_error_are_one_group_with_the_end_of_the_newest_log(failed):
    sweep = failed
    home = sweep.home
    rows = run_rows(sweep)
    for number, row in enumerate(rows[:2]):
        log = home.run(row.id).log(1)
        log.parent.mkdir()
        log.write_text("\n".join([*TRACE, f"of log {number}", "", ""]))
        time.sleep(0.02)
    first, second = group_failures(home, rows)
    assert first.runs == tuple(row.id for row in rows[:4])
    assert first.names[:2] == ("scalerl-s0", "scalerl-s1")
    assert first.cause == f"RuntimeError: step 1 of {rows[1].id} at 0x7f1a: no"
    assert first.log == str(home.run(rows[1].id).log(1))
    assert first.trace == (*TRACE[-7:], "of log 1")
    assert (second.cause, second.runs, second.log) == ("TaskError: sums.jsonl:2: not JSON", (rows[4].id,), "")


def test_the_user_reads_each_error_once(failed):
    home = str(failed.home.path)
    printed = status("loo", "--home", home, code=1)
    assert printed.count("RuntimeError: step") == 1
    assert printed.count("see 1 below") == 4
    assert printed.count("see 2 below") == 1
    assert "4 runs failed: scalerl-s0, scalerl-s1, loo-loss-s0, loo-loss-s1" in printed
    data = json.loads(status("loo", "--json", "--home", home, code=1))
    assert [len(failure["runs"]) for failure in data["failures"]] == [4, 1]


def test_a_job_that_died_before_training_is_told_by_what_it_printed(failed):
    sweep = failed
    home = sweep.home
    rows = run_rows(sweep)
    submission = replace(new_submission("loo", tuple(row.id for row in rows), 2000.0, home.path, {}), job="17")
    submission.write(home)
    folder = home.sweep("loo") / "submitit" / submission.name
    folder.mkdir(parents=True)
    (folder / "17_4_0_log.out").write_text("")
    (folder / "17_4_0_log.err").write_text("ModuleNotFoundError: No module named 'torch'\n")
    (folder / "17_0_0_log.err").write_text("of another run\n")
    lost = RunRow(variant="x", seed=0, id=rows[4].id, state=RunState(state=State.LOST, message="job 17_4 is gone"))
    (failure,) = group_failures(home, [lost])
    assert failure.trace == ("ModuleNotFoundError: No module named 'torch'",)
    assert failure.log == str(folder / "17_4_0_log.err")


def many(**counts: int) -> list[RunRow]:
    """Rows in states, as many of each as said."""
    states = [state for state, number in counts.items() for _ in range(number)]
    return [
        RunRow(variant=f"v{number}", seed=0, id=f"{number:012x}", state=RunState(state=State(state.replace("_", " "))))
        for number, state in enumerate(states)
    ]


def test_a_long_table_shows_what_trains_and_what_is_in_trouble_and_counts_the_rest():
    rows = many(done=100, stale=200, running=10, failed=300, pending=400)
    shown = worth_showing(rows, 60)
    states = [row.state.state for row in shown]
    assert (len(shown), states.count(State.RUNNING)) == (60, 10)
    assert states.count(State.STALE) == states.count(State.FAILED) == 25
    assert shown == sorted(shown, key=lambda row: row.id)


def test_a_long_table_counts_what_waits_with_its_common_reason(failed):
    assert len(status_table(failed, many(pending=60)).rows) == 60
    assert [row[0].text for row in status_table(failed, many(pending=2000, done=3)).rows] == ["3 runs", "2,000 runs"]
    assert len(status_table(failed, many(pending=2000), most_rows=None).rows) == 2000
    waiting = [RunState(state=State.QUEUED, message=f"job 17_{n} waits: Priority") for n in range(100)]
    rows = [RunRow(variant="v", seed=n, id=f"{n}", state=state) for n, state in enumerate(waiting)]
    assert [row[-1].text for row in status_table(failed, rows).rows] == ["waits: Priority"]


def test_the_table_fits_a_hundred_columns(failed):
    home, rows = failed.home, run_rows(failed)
    console = Console(width=100, record=True)
    console.print(status_view(failed, rows, failures=group_failures(home, rows), now=clock()))
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= 100
    assert sum("see 1 below" in line for line in lines) == 4
