"""`sync --watch` against a real MLflow server that is not there at first, and against what cannot be pushed."""

import signal
import subprocess
import sys
import time

import pytest
from fixtures_home import make_home, planned_run, write_state
from mlflow_server import mlflow_server
from waiting import wait_until

NUM_ROWS = 21 + 40
"""Of one run that is half done."""
LIMIT_S = 250.0


@pytest.fixture
def server(tmp_path, empty_store):
    with mlflow_server(tmp_path, empty_store) as late:
        yield late


class Watch:
    """A watch in a process of its own, and what it has said."""

    def __init__(self, home, output, *arguments):
        self.output = output
        command = [sys.executable, "-m", "ablations.cli", "sync", "loo", "--home", str(home), "--watch", "--every", "1"]
        with output.open("wb") as file:
            self.process = subprocess.Popen(
                [*command, *arguments],
                stdout=file,
                stderr=subprocess.STDOUT,
            )

    def said(self) -> str:
        return self.output.read_text()

    def until(self, text):
        wait_until(lambda: text in self.said(), repr(text), limit_s=LIMIT_S, process=self.process, shown=self.said)

    def end(self, code):
        assert self.process.wait(timeout=LIMIT_S) == code, self.said()
        assert "Traceback" not in self.said()
        return self.said()


@pytest.fixture
def watch(home, tmp_path):
    watches = []

    def start(*arguments):
        watches.append(Watch(home, tmp_path / f"watch-{len(watches)}", *arguments))
        return watches[-1]

    yield start
    for one in watches:
        one.process.kill()
        one.process.wait()


@pytest.mark.studies
def test_a_server_that_comes_late_gets_everything_and_the_watch_ends_with_the_sweep(home, server, watch):
    sweep = make_home(home, fraction=0.5, state="running")
    watching = watch("--tracking-uri", server.uri)
    watching.until(f"{3 * NUM_ROWS} rows are left, because")
    time.sleep(5)  # more tries, of which nothing is said
    server.start()
    watching.until(f"MLflow answers again; pushed {3 * NUM_ROWS} rows, 0 left")
    with sweep.run(planned_run("loo-loss", 0).id).metrics.open("a") as log:
        log.write('{"kind": "train", "step": 41, "compute_gpu_hours": 1025.0, "loss": 0.1, "wall_s": 103.0}\n')
    watching.until("pushed 1 rows, 0 left")
    for run in sweep.plan.runs:
        write_state(sweep.home, run.id, "done")
    said = watching.end(0)
    assert said.splitlines()[-1].endswith("loo: the sweep has ended, and MLflow has everything")
    assert said.count("rows are left") == 1
    assert len(said.splitlines()) == 5


def test_what_no_push_can_bring_over_does_not_keep_the_watch_for_ever(home, watch):
    place = make_home(home).home
    metrics = place.run(planned_run("scalerl", 0).id).metrics
    lines = metrics.read_text().splitlines(keepends=True)
    metrics.write_text("".join([*lines[:100], "{]\n", *lines[101:]]))
    assert "metrics.jsonl:101: not a metrics row" in watch().end(3)


def test_a_push_that_fails_is_told_in_its_own_words(home, watch):
    (make_home(home).folder / "sync.lock").mkdir()
    watching = watch()
    watching.until("rows are left, because a push failed: error: ")
    watching.until("sync.lock: Is a directory")


def test_ctrl_c_with_something_left_is_exit_code_3(home, server, watch):
    make_home(home, fraction=0.5, state="running")
    watching = watch("--tracking-uri", server.uri)
    watching.until("rows are left")
    watching.process.send_signal(signal.SIGINT)
    assert watching.end(3).endswith("loo: stopped; run the same command again to push the rest\n")
