"""Runs of this machine are forks of a server: what they are, and what outlives what."""

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from fixtures_home import BUDGET, make_home
from integration.conftest import SCALE
from waiting import wait_until

from ablations.home.home import Home
from ablations.pools import command_pool, local
from ablations.pools.command_pool import CommandPool
from ablations.pools.local import LocalJob, ThisMachine, end_server
from scalerl.run.run_log import WALL_FIELDS

PLAYED = """
import json, os, random, signal, sys, time
from pathlib import Path

import ablations.pools.job as job

def train_run(run, *_):
    seen = {
        "pid": os.getpid(), "parent": os.getppid(), "session": os.getsid(0),
        "folder": os.getcwd(), "first": sys.path[0], "has_torch": "torch" in sys.modules,
        "word": os.environ.get("WORD"), "threads": os.environ["OPENBLAS_NUM_THREADS"],
        "input": os.read(0, 10).decode(), "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
        "ignored": [one for one in signal.Signals if signal.getsignal(one) is signal.SIG_IGN],
        "open": sorted(os.readlink(f"/proc/self/fd/{one}") for one in os.listdir("/proc/self/fd") if int(one) > 2
                       and os.path.exists(f"/proc/self/fd/{one}")),
    }
    if "torch" in sys.modules:
        import numpy, torch
        seen["drawn"] = [random.random(), float(numpy.random.random()), float(torch.rand(()))]
        seen["tasks"] = len(os.listdir("/proc/self/task"))
    (run / "seen.partial").write_text(json.dumps(seen))
    (run / "seen.partial").rename(run / "seen")
    while not (run / "finish").exists():
        time.sleep(0.02)

job.train_run = train_run
"""
"""A module that an interpreter imports at its start: runs say what they see, and wait to be finished."""


@pytest.fixture
def sweep(tmp_path, monkeypatch):
    """Three runs whose training a test plays."""
    (tmp_path / "sitecustomize.py").write_text(PLAYED)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    started = make_home(tmp_path / "home", fraction=0.5, state="cancelled")
    yield started
    for run in started.plan.runs:
        (started.home.run(run.id).path / "finish").touch()


@pytest.fixture
def site(sweep, tmp_path):
    return ThisMachine(home=sweep.home, folder=tmp_path / "local", threads=1, needs_torch=False)


def begun(site: ThisMachine, run_id: str) -> tuple[LocalJob, dict]:
    """A started run, and what it sees."""
    job = site.start(run_id, BUDGET)
    seen = site.home.run(run_id).path / "seen"
    wait_until(seen.exists, "a run", shown=lambda: site.log.read_text() + "".join(map(str, site.folder.iterdir())))
    assert not job.done()
    return job, json.loads(seen.read_text())


def finish(home: Home, run_id: str) -> None:
    (home.run(run_id).path / "finish").touch()


def test_a_run_is_what_a_new_process_would_be(sweep, site, tmp_path, monkeypatch):
    monkeypatch.setenv("WORD", "first")
    monkeypatch.chdir(tmp_path)
    one, other, third = (run.id for run in sweep.plan.runs)
    _, seen = begun(site, one)
    assert seen["word"] == "first"
    assert seen["folder"] == seen["first"] == str(tmp_path)
    assert seen["threads"] == "1"
    assert not seen["has_torch"]
    assert seen["input"] == ""  # it has no terminal, and reads no order
    assert seen["blocked"] == []
    assert {signal.SIGINT} == {*seen["ignored"]} - {signal.SIGPIPE, signal.SIGXFSZ}  # Python ignores these two
    assert seen["open"] == [str(next((tmp_path / "local").glob(f"*-{one}-*.out")))]
    assert len({seen["session"], os.getsid(seen["parent"]), os.getsid(0)}) == 3  # a terminal signals one of them
    assert begun(site, other)[1]["parent"] == seen["parent"]
    monkeypatch.setenv("WORD", "second")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    later = begun(site, third)[1]
    assert (later["word"], later["folder"]) == ("second", str(tmp_path / "elsewhere"))
    assert not psutil.pid_exists(seen["parent"])


def test_a_run_has_the_code_of_the_time_at_which_it_starts(sweep, site, tmp_path, monkeypatch):
    (tmp_path / "sources").mkdir()
    source = tmp_path / "sources" / "one.py"
    source.write_text("x = 1\n")
    monkeypatch.setattr(local, "PACKAGES", {"ablations": tmp_path / "sources"})
    one, other, third = (run.id for run in sweep.plan.runs)
    first = begun(site, one)[1]
    assert begun(site, other)[1]["parent"] == first["parent"]
    source.write_text("x = 10\n")
    assert begun(site, third)[1]["parent"] != first["parent"]


SWEEP = """
import sys, time
from pathlib import Path
from ablations.home.home import Home
from ablations.pools.local import ThisMachine
home, run_id = sys.argv[1:]
site = ThisMachine(home=Home(Path(home)), folder=Path(home) / "local", threads=1, needs_torch=False)
site.start(run_id, 1.0)
time.sleep(600)
"""


def test_a_run_outlives_a_sweep_that_is_killed_and_the_server_does_not(sweep, tmp_path):
    run_id = sweep.plan.runs[0].id
    command = [sys.executable, "-c", SWEEP, str(sweep.home.path), run_id]
    with subprocess.Popen(command, start_new_session=True) as process:
        seen = sweep.home.run(run_id).path / "seen"
        wait_until(seen.exists, "a run", process=process)
        said = json.loads(seen.read_text())
        os.killpg(process.pid, signal.SIGHUP)  # as a terminal does when it is closed
        process.kill()
    wait_until(lambda: not psutil.pid_exists(said["parent"]), "the end of the server")
    (output,) = (sweep.home.path / "local").glob(f"*-{run_id}-*.out")
    run = psutil.Process(said["pid"])
    assert local.is_locked(output)
    finish(sweep.home, run_id)
    wait_until(lambda: not local.is_locked(output), "the end of the run")
    with suppress(psutil.NoSuchProcess):  # init may not have taken note of it
        run.wait(timeout=60)


def test_a_run_that_is_killed_is_over(sweep, site):
    job, seen = begun(site, sweep.plan.runs[0].id)
    os.kill(seen["pid"], signal.SIGKILL)
    wait_until(job.done, "the end of the run")
    wait_until(lambda: not psutil.pid_exists(seen["pid"]), "the server taking note")
    assert (job.is_lost, job.why) == (False, "")


def test_a_run_whose_file_is_deleted_does_not_keep_the_sweep(sweep, site):
    job, _ = begun(site, sweep.plan.runs[0].id)
    shutil.rmtree(site.folder)
    assert job.done()
    assert not job.is_lost


def test_a_run_outlives_its_server_and_the_next_has_another(sweep, site):
    one, other = (run.id for run in sweep.plan.runs[:2])
    job, seen = begun(site, one)
    os.kill(seen["parent"], signal.SIGKILL)
    wait_until(lambda: job.server.poll() is not None, "the end of the server")
    assert not job.done()
    assert begun(site, other)[1]["parent"] != seen["parent"]
    assert not job.done()
    finish(sweep.home, one)
    wait_until(job.done, "the end of the first run")
    assert not job.is_lost


def test_a_server_that_ends_has_started_what_it_was_ordered_to(sweep, site):
    job = site.start(sweep.plan.runs[0].id, BUDGET)
    end_server(job.server)
    assert job.server.returncode == 0
    assert not job.done()
    finish(sweep.home, sweep.plan.runs[0].id)
    wait_until(job.done, "the end of the run")
    assert not job.is_lost


def test_runs_whose_server_dies_before_it_starts_them_are_started_again_and_given_up(
    sweep, site, tmp_path, monkeypatch
):
    monkeypatch.setattr(command_pool, "RUNS_POLL_S", 0.01)
    (tmp_path / "sitecustomize.py").write_text("raise SystemExit('no memory')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    pool = CommandPool(home=sweep.home, site=site, jobs=1, cancelled=sweep.cancellation)
    pool.add(sweep.plan.runs[0].id, BUDGET)
    ended = [event.why for event in pool.work() if event]
    why = f"the process that starts runs has ended; its output is in {site.log}; "
    assert ended == [
        f"{why}it resumes from its last checkpoint",
        f"{why}it resumes from its last checkpoint",
        f"{why}lost 3 times in a row without completing a step; giving up",
    ]
    assert "no memory" in site.log.read_text()


def test_what_a_process_prints_before_its_log_is_open_is_kept(sweep, site, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import ablations.pools.job as job\n"
        "def train_run(*_):\n    raise OSError('no folder')\n"
        "job.train_run = train_run\n"
    )
    job = site.start(sweep.plan.runs[0].id, BUDGET)
    wait_until(job.done, "the end of the run")
    assert job.output.read_text().endswith("OSError: no folder\n")
    assert job.why == f"the process was killed; it printed something before its log was open, see {job.output}"


def test_a_process_ends_as_python_ends_it(sweep, site, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit, logging.handlers, threading, time\n"
        "import ablations.pools.job as job\n"
        "def train_run(run, *_):\n"
        "    kept = logging.handlers.MemoryHandler(10, target=logging.FileHandler(run / 'logged'))\n"
        "    logging.getLogger().addHandler(kept)\n"
        "    logging.getLogger().warning('kept in memory')\n"
        "    atexit.register((run / 'called').touch)\n"
        "    threading.Thread(target=lambda: (time.sleep(0.5), (run / 'waited for').touch())).start()\n"
        "    print('no line', end='')\n"
        "job.train_run = train_run\n"
    )
    job = site.start(sweep.plan.runs[0].id, BUDGET)
    wait_until(job.done, "the end of the run")
    folder = sweep.home.run(sweep.plan.runs[0].id).path
    assert job.output.read_text() == "no line"
    assert (folder / "logged").read_text() == "kept in memory\n"
    assert (folder / "called").exists()
    assert (folder / "waited for").exists()


def test_runs_share_what_is_loaded_and_no_random_number(sweep, site):
    site.needs_torch = True
    first, second = (begun(site, run.id)[1] for run in sweep.plan.runs[:2])
    assert first["has_torch"]
    assert first["parent"] == second["parent"]
    assert all(one != other for one, other in zip(first["drawn"], second["drawn"], strict=True))
    assert first["tasks"] == second["tasks"] == 1
    assert site.log.read_text() == ""


def test_a_server_that_gets_threads_by_loading_begins_again_without(sweep, site, tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        PLAYED + "import threading, types\n"
        "made = types.ModuleType('scalerl.run.preload')\n"
        "made.preload = lambda: threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
        "sys.modules['scalerl.run.preload'] = made\n"
    )
    site.needs_torch = True
    assert not begun(site, sweep.plan.runs[0].id)[1]["has_torch"]
    assert "loading has started threads" in site.log.read_text()


@pytest.mark.parametrize("why", ["several threads", "GPUs", "a driver", "macOS"])
def test_a_server_loads_nothing_where_a_fork_could_not_use_it(site, monkeypatch, tmp_path, why):
    site.needs_torch = True
    monkeypatch.setattr(local, "GPU_DEVICES", (str(tmp_path / "none"),))
    assert site.may_load
    match why:
        case "several threads":
            site.threads = 2
        case "GPUs":
            site.gpus = ("0",)
        case "a driver":
            (tmp_path / "none").touch()
        case "macOS":
            monkeypatch.setattr(sys, "platform", "darwin")
    assert not site.may_load


def rows(home: Path) -> list[dict]:
    (path,) = home.glob("runs/*/metrics.jsonl")
    read = map(json.loads, path.read_text().splitlines())
    return [{name: value for name, value in row.items() if name not in WALL_FIELDS} for row in read]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_forked_run_has_the_numbers_of_a_process_of_its_own(tmp_path, threads):
    first, second = tmp_path / "first", Home(tmp_path / "second")
    (tmp_path / "seconds.yaml").write_text(SCALE)
    settings = ["--scale", str(tmp_path / "seconds.yaml"), "--budget", "0.5", "--set", f"threads={threads}"]
    command = [sys.executable, "-m", "ablations.cli", "train", "scalerl", *settings, "--home", str(first)]
    subprocess.run(command, check=True, capture_output=True)
    (run,) = (first / "runs").iterdir()
    shutil.copytree(first / "warm_starts", second.warm_starts)
    second.run(run.name).path.mkdir(parents=True)
    shutil.copy(run / "recipe.json", second.run(run.name).path)
    budget = json.loads((run / "status.json").read_text())["budget_gpu_hours"]
    site = ThisMachine(home=second, folder=tmp_path / "local", threads=threads)
    job = site.start(run.name, budget)
    wait_until(job.done, "the end of the run")
    assert second.run(run.name).read_status().state == "done"
    assert len(rows(first)) > 20
    assert rows(second.path) == rows(first)
