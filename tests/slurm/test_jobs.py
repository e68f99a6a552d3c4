"""However a job ends, its run goes on from its checkpoint, and its state says what happened; an error is read once."""

import json
import os
import signal
from pathlib import Path

import pytest
from slurm.study import LIMIT_S, ProgramStudy
from waiting import wait_until

from scalerl.run.run_log import read_rows


@pytest.fixture
def study(programs):
    return programs


@pytest.fixture(params=[pytest.param("cluster", marks=pytest.mark.studies), "cluster_with_accounting"])
def on_either(request, tmp_path):
    """A study on a cluster without accounting, and on one with it."""
    cluster = request.getfixturevalue(request.param)
    yield ProgramStudy(cluster=cluster, folder=tmp_path / "study")
    cluster.cancel_all()


def test_killed_cancelled_and_requeued_runs_say_so_and_go_on(on_either):
    study = on_either
    study.submit()
    first = study.at_20()
    os.kill(first["settings"]["pid"], signal.SIGKILL)
    study.cluster.run("scancel", study.job("rate=0.2"))
    # As Slurm itself does before the time limit.
    study.cluster.run("scancel", "--signal=USR2", study.job("rate=0.3"))
    rows = study.until_states({"settings": "lost", "rate=0.2": "cancelled"})
    assert study.job("settings") in rows["settings"]["message"]
    study.at_20("rate=0.3", attempt=2)
    study.platform("retry", "--state", "lost")
    assert "trains 1 run\n" in study.submit()
    study.at_20(attempt=2)
    study.finish()
    logs = [[row["step"] for row in read_rows(path)] for path in study.home.glob("runs/*/metrics.jsonl")]
    assert logs == [list(range(31))] * 3
    assert {row["attempt"] for row in study.runs()} == {2}


def test_a_job_that_takes_too_much_memory_says_so(on_either):
    study = on_either
    study.write(script="rest = bytearray(2**30)\ntime.sleep(100)", axes="{rate: [0.2]}")
    study.file.write_text(study.file.read_text().replace("mem_gb: 1", "mem_gb: 0.5"))
    study.submit()
    rows = study.until(lambda rows: {row["state"] for row in rows.values()} == {"out of memory"})
    assert "mem_gb" in rows["settings"]["message"]


def test_a_run_that_trains_while_its_next_job_waits_is_running_and_cancel_ends_both(study):
    study.submit()
    study.at_20()
    study.submit("--budget", "600")
    assert study.states() == dict.fromkeys(("settings", "rate=0.2", "rate=0.3"), "running")
    run = study.rows()["settings"]["id"]
    study.platform("cancel", "small", "--variant", "settings")
    squeue = ("squeue", "--noheader", f"--jobs={','.join(one.task_ids()[run] for one in study.submissions())}")
    wait_until(lambda: not study.cluster.run(*squeue, check=False).stdout, "the end of both jobs", limit_s=LIMIT_S)
    assert len(set(study.queued())) == 2  # the other runs have theirs


def test_a_run_whose_cancelled_job_is_still_ending_gets_a_new_job(study):
    study.write(resources="""setup: ["trap '' TERM; trap 'sleep 100' EXIT"]""", axes="{rate: [0.2]}")
    study.submit()
    study.at_20()
    study.cluster.run("scancel", study.job("settings"))
    study.until_states({"settings": "cancelled"})
    assert "trains 1 run\n" in study.submit()
    assert len(study.submissions()) == 2


def test_three_equal_failures_hold_the_jobs_that_wait_until_they_are_retried(study, hook):
    mended = study.folder / "data"
    script = f"if not os.path.exists({str(mended)!r}): sys.exit('no data')\ngo_on(30)"
    study.write(script=script, resources="at_once: 1", axes="{rate: [0.2]}", seeds="[0, 1]", notify="{url: $HOOK}")
    study.submit()
    study.until(lambda rows: "held because" in str(rows))
    printed = " ".join(study.platform("status", "small", code=None).split())
    assert "held because 3 runs in a row failed: the program ended with exit code 1 at 0 of 300 tokens: no data" in (
        printed
    )
    assert sorted(row["state"] for row in study.runs()) == ["failed"] * 3 + ["queued"]
    mended.touch()
    said = study.platform("retry")
    assert "cancelled 1 held job" in said
    assert "trains 4 runs" in said
    study.until(lambda _: [row["state"] for row in study.runs()] == ["done"] * 4)
    wait_until(lambda: "done" in hook.kinds, "the last job tells of the end", limit_s=LIMIT_S)
    assert sorted(hook.kinds) == ["done", "failed", "failed", "failed", "held"]


def test_jobs_that_die_before_training_are_held_and_one_failure_in_a_home_that_a_shell_would_take_apart(
    empty, tmp_path
):
    home = tmp_path / "o'brien & $HOME folder"
    study = ProgramStudy(cluster=empty, folder=tmp_path / "study", home=home)
    study.write(resources="at_once: 1, setup: ['echo no module here >&2', 'exit 3']", axes="{rate: [0.2, 0.3, 0.4]}")
    study.submit()
    died = ("settings", "rate=0.2", "rate=0.3")
    rows = study.until(
        lambda rows: "held" in rows["rate=0.4"]["message"] and all(rows[name]["state"] == "failed" for name in died)
    )
    assert rows["rate=0.4"]["state"] == "queued"
    shown = study.platform("status", code=None)
    assert shown.count("no module here") == 1
    assert shown.count("see 1 below") == 3
    (failure,) = json.loads(study.platform("status", "--json", code=None))["failures"]
    assert failure["runs"] == [rows[name]["id"] for name in died]
    printed = study.platform("logs", "rate=0.2")
    assert "its last job ended before training began" in printed
    assert "no module here" in printed
    study.write()
    assert "cancelled 1 held job" in study.submit()
    pid = study.at_20(*died)["settings"]["pid"]
    (snapshot,) = (home / "snapshots").iterdir()
    assert f"PYTHONPATH={snapshot}" in Path(f"/proc/{pid}/environ").read_text()


def test_a_sweep_that_stops_runs_decides_while_its_jobs_train(study):
    study.write(stop="{gain_below: 0.9, probability: 0.6}")
    sweep = study.start("sweep", str(study.file), "--executor", "slurm", "--yes")
    wait_until((study.home / "sweeps" / "small" / "plan.json").exists, "plan.json", limit_s=LIMIT_S, process=sweep)
    study.until_states({"rate=0.2": "stopped", "rate=0.3": "stopped"})
    study.at_20("settings")  # the reference is never stopped
    study.finish_file.touch()
    said, complained = sweep.communicate(timeout=LIMIT_S)
    assert sweep.returncode == 0, said + complained
    assert study.states()["settings"] == "done"
    assert "report" in said


@pytest.mark.studies
def test_a_program_at_its_time_limit_is_requeued_and_goes_on(study):
    waits = "if os.environ.get('SLURM_RESTART_COUNT', '0') == '0':\n    go_on(5)\n    time.sleep(600)\ngo_on(30)"
    study.write(script=waits)
    study.file.write_text(study.file.read_text().replace("time_min: 10", "time_min: 2"))
    study.submit()
    assert {row["attempt"] for row in study.until_done().values()} == {2}


@pytest.mark.studies
def test_a_run_that_no_time_limit_lets_begin_has_timed_out_with_the_remedy(study):
    study.write(resources="setup: ['sleep 100']")
    study.file.write_text(study.file.read_text().replace("time_min: 10", "time_min: 1"))
    study.submit()
    rows = study.until(lambda rows: {row["state"] for row in rows.values()} == {"timed out"})
    assert "time_min" in rows["settings"]["message"]


@pytest.mark.studies
def test_the_watch_and_a_followed_log_go_on_while_jobs_wait_and_end_with_them(study):
    study.write(script="print('begun', flush=True)\ngo_on(30)", resources="at_once: 1")
    study.submit()
    watch, log = study.start("status", "-w"), study.start("logs", "rate=0.3", "-f")
    watched, complained = watch.communicate(timeout=LIMIT_S)
    assert watch.returncode == 0, watched + complained
    printed, said = log.communicate(timeout=LIMIT_S)
    assert log.returncode == 0, printed + said
    assert "queued" in watched.splitlines()[0]
    assert "3 done; 100% of the compute" in watched
    assert "waiting for its first line" in said
    assert "begun" in printed
