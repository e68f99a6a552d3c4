"""A study small enough to train for real in seconds, and the command line as its user calls it."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
import pytest

from scalerl.run.run_log import WALL_FIELDS

SCALE = """
model: {hidden: 16, layers: 1, heads: 1, mlp: 32}
tasks:
  - {type: k_smallest, symbols: 12, min_length: 3, max_length: 5, train_prompts: 200, validation_prompts: 100}
warm_start: {steps: 40, batch: 32, learning_rate: 5.0e-3, noise: 0.2}
batch: {prompts: 8, generations: 4}
generation: {thinking: 5, answer: 3}
optimiser: {learning_rate: 1.0e-3, warmup_steps: 4, micro_batch_tokens: 512}
cluster: {generators: 8, trainers: 2, slots: 4, parameters_stand_for: 1.0e+6, tokens_stand_for: 1000,
  attention: {width_stands_for: 4000, cache_stands_for: 1000}}
evaluation: {every: 0.1, samples: 2}
compute_unit_gpu_hours: 8.0
"""
SWEEP = """
name: small
doc: A study for tests
reference: scalerl
seeds: [0]
scale: seconds
leave_one_out:
  revert_to: baseline
  axes:
    loss:
    off_policy:
budget: {compute: 1.0}
"""
NUM_RUNS = 3


def write_study(folder: Path) -> Path:
    """A sweep file beside its own scale; returns the sweep file."""
    (folder / "recipes" / "scales").mkdir(parents=True)
    (folder / "recipes" / "scales" / "seconds.yaml").write_text(SCALE)
    (folder / "sweeps").mkdir()
    path = folder / "sweeps" / "small.yaml"
    path.write_text(SWEEP)
    return path


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return write_study(tmp_path)


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home folder of the study after one undisturbed sweep: to be read, not to be trained on."""
    folder = tmp_path_factory.mktemp("trained")
    run_platform(folder / "home", "sweep", str(write_study(folder)))
    return folder / "home"


@pytest.fixture
def home(tmp_path: Path, empty_store: Path) -> Path:
    """A home folder with nothing but an empty MLflow store, which takes seconds to make."""
    (tmp_path / "home").mkdir()
    shutil.copy(empty_store, tmp_path / "home" / "mlflow.db")
    return tmp_path / "home"


def is_untouched(home: Path) -> bool:
    """Whether a command has written nothing into the home folder."""
    return [path.name for path in home.iterdir()] == ["mlflow.db"]


Platform = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def platform(home: Path) -> Platform:
    """Run a command on the test's home folder: `platform("status", "--json", code=0).stdout`."""

    return partial(run_platform, home)


def run_platform(home: Path, *arguments: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
    """One command on a home folder, to its end."""
    result = subprocess.run(
        [sys.executable, "-m", "ablations.cli", *arguments, "--home", str(home)],
        capture_output=True,
        text=True,
        check=False,
        timeout=550,
    )
    if code is not None:
        assert result.returncode == code, f"{arguments} gave {result.returncode}\n{result.stdout}\n{result.stderr}"
    return result


def start(home: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """The same command in a process group of its own, not waited for."""
    return subprocess.Popen(
        [sys.executable, "-m", "ablations.cli", *arguments, "--home", str(home)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def kill_tree(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL to the command and everything it started, in whatever session."""
    with suppress(psutil.NoSuchProcess):  # it has ended and left nothing
        command = psutil.Process(process.pid)
        starters = [command, *command.children()]
        for one in starters:
            one.suspend()  # so that nothing starts unseen
        for one in {*starters, *command.children(recursive=True)}:
            with suppress(psutil.NoSuchProcess):
                one.kill()
    process.wait()


def read_metrics(home: Path) -> dict[str, list[dict]]:
    """Every run's rows without the fields that differ between executions."""
    return {
        path.parent.name: [
            {key: value for key, value in json.loads(line).items() if key not in WALL_FIELDS}
            for line in path.read_text().splitlines()
        ]
        for path in sorted(home.glob("runs/*/metrics.jsonl"))
    }
