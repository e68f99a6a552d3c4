"""A study on a test cluster as its user has it: a sweep file, a home folder, and the command line."""

import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import own_programs
import pytest
from integration.conftest import SCALE, SWEEP, read_metrics
from slurm.cluster import SlurmCluster
from waiting import wait_until

from ablations.cli import main
from ablations.home.home import Home
from ablations.home.started_sweep import read_sweep
from ablations.slurm import queue_cache
from ablations.slurm.submissions import Submission, read_submissions
from ablations.status.progress import run_rows, to_json

LIMIT_S = 600.0
"""How long a command, a state that a test waits for, or the undisturbed study may take on a busy machine; alone each
takes seconds, the longest two minutes.
"""
ASKS_OFTEN = (
    "import ablations.slurm.queue_cache as cache; cache.ASK_EVERY_S = {}; from ablations.cli import main; main()"
)
"""`python -c` for the command line that asks Slurm more often than every ten seconds."""


@dataclass(kw_only=True)
class SlurmStudy:
    """Three variants (scalerl, loo-loss, loo-off_policy); a run takes some 3 s for each unit of its budget."""

    cluster: SlurmCluster
    folder: Path
    budget: float = 1.0
    home: Path = Path()
    """Folder of its own unless given."""
    ask_every_s: float = 1.0
    """Seconds for which an answer of Slurm holds, so that no test waits ten seconds for each change of state."""

    def __post_init__(self) -> None:
        self.home = self.folder / "home" if self.home == Path() else self.home
        (self.folder / "recipes" / "scales").mkdir(parents=True)
        (self.folder / "recipes" / "scales" / "seconds.yaml").write_text(SCALE)
        (self.folder / "sweeps").mkdir()
        self.write()

    @property
    def file(self) -> Path:
        """The sweep file."""
        return self.folder / "sweeps" / "small.yaml"

    def write(self, *, resources: str = "", **more: str) -> None:
        """Write the sweep file with `resources: {...}` and other top-level keys."""
        text = SWEEP.replace("compute: 1.0", f"compute: {self.budget}")
        if "seeds" in more:
            text = text.replace("seeds: [0]\n", "")
        text += f"resources: {{time_min: 10, mem_gb: 2{', ' if resources else ''}{resources}}}\n"
        self.file.write_text(text + "".join(f"{key}: {value}\n" for key, value in more.items()))

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """A command on the study's home folder, not waited for."""
        return subprocess.Popen(
            [sys.executable, "-c", ASKS_OFTEN.format(self.ask_every_s), *arguments, "--home", str(self.home)],
            env=self.cluster.environment | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
        )

    @contextmanager
    def asked(self, **environment: str) -> Iterator[None]:
        """In this process Slurm's commands ask the study's cluster, as often as the study does."""
        with (
            mock.patch.dict(os.environ, self.cluster.environment | environment, clear=True),
            mock.patch.object(queue_cache, "ASK_EVERY_S", self.ask_every_s),
        ):
            yield

    def platform(self, *arguments: str, code: int | None = 0, **environment: str) -> str:
        """What a command printed, called in this process; its exit code must be `code` unless that is None."""
        typed = ["platform", *arguments, "--home", str(self.home)]
        with io.TextIOWrapper(io.BytesIO()) as out:
            with (
                self.asked(**environment),
                mock.patch.object(sys, "argv", typed),
                redirect_stdout(out),
                redirect_stderr(out),
                pytest.raises(SystemExit) as ended,
            ):
                main()
            found = ended.value.code or 0
            out.seek(0)
            printed = out.read()
        assert code is None or found == code, f"{arguments} gave {found}\n{printed}"
        return printed

    def apart(self, *arguments: str, code: int, **environment: str) -> str:
        """What a command printed, called in a process of its own, which may have other code (PYTHONPATH)."""
        process = self.start(*arguments, **environment)
        printed, complained = process.communicate(timeout=LIMIT_S)
        assert process.returncode == code, f"{arguments} gave {process.returncode}\n{printed}\n{complained}"
        return printed + complained

    def submit(self, *arguments: str, code: int | None = 0) -> str:
        """`platform sweep small.yaml --executor slurm --yes`."""
        return self.platform("sweep", str(self.file), "--executor", "slurm", "--yes", *arguments, code=code)

    def rows(self) -> dict[str, dict[str, Any]]:
        """The runs as `platform status --json` shows them, by variant; without a process for each look."""
        return {row["variant"]: row for row in self.runs()}

    def runs(self) -> list[dict[str, Any]]:
        """Every run as `platform status --json` shows it."""
        with self.asked():
            sweep = read_sweep(Home(self.home), "small")
            return to_json(sweep.plan, run_rows(sweep))["runs"]

    def states(self) -> dict[str, str]:
        """The state of each variant."""
        return {variant: row["state"] for variant, row in self.rows().items()}

    def until(self, done: Callable[[dict[str, dict[str, Any]]], Any], what: str = "other states") -> dict[str, Any]:
        """The rows as soon as `done` of them is true."""

        def rows() -> dict[str, Any] | None:
            found = self.rows()
            return found if done(found) else None

        def shown() -> str:
            states = {variant: (row["state"], row["message"]) for variant, row in self.rows().items()}
            return f"{states}\n{self.cluster.run('squeue').stdout}"

        return wait_until(rows, what, limit_s=LIMIT_S, every_s=0.3, shown=shown) or {}

    def until_states(self, wanted: dict[str, str]) -> dict[str, Any]:
        """The rows as soon as each variant has its state."""
        return self.until(lambda rows: all(rows[name]["state"] == state for name, state in wanted.items()), str(wanted))

    def until_done(self) -> dict[str, Any]:
        """The rows as soon as every run is done."""
        return self.until(lambda rows: {row["state"] for row in rows.values()} == {"done"}, "every run to be done")

    def until_trains(self, variant: str, *, steps: int = 5) -> dict[str, Any]:
        """The row of a variant as soon as it has trained some steps."""
        what = f"{steps} steps of {variant}"
        return self.until(lambda rows: rows[variant]["state"] == "running" and rows[variant]["step"] >= steps, what)[
            variant
        ]

    def job(self, variant: str) -> str:
        """Slurm's id of the job that a variant was submitted in last."""
        run = self.rows()[variant]["id"]
        return [one.task_ids()[run] for one in self.submissions() if run in one.runs][-1]

    def submissions(self) -> list[Submission]:
        """What was given to Slurm."""
        return read_submissions(Home(self.home), "small")

    def queued(self) -> list[str]:
        """Names of the jobs that wait or run."""
        return self.cluster.run("squeue", "--noheader", "--array", "--format=%j").stdout.split()

    def metrics(self) -> dict[str, Any]:
        """The run logs without their wall-clock seconds, by run."""
        return read_metrics(self.home)

    def undisturbed(self) -> dict[str, Any]:
        """The run logs of the same study trained on this machine, in another home folder."""
        other = self.folder / "undisturbed"
        command = [sys.executable, "-m", "ablations.cli", "sweep", str(self.file), "--home", str(other)]
        subprocess.run(command, env=self.cluster.environment, check=True, capture_output=True, timeout=LIMIT_S)
        return read_metrics(other)


@dataclass(kw_only=True)
class ProgramStudy(SlurmStudy):
    """Three variants (settings, rate=0.2, rate=0.3) of a program that loads no torch and stands still at step 20 until
    the test is done with it."""

    budget: float = 300.0
    axes: str = "{rate: [0.2, 0.3]}"

    @property
    def finish_file(self) -> Path:
        """The file at which the programs go on to their last step."""
        return self.folder / "finish"

    def write(self, *, resources: str = "", script: str = "", **more: str) -> None:
        """Write the sweep file, whose program is `script` or the one that stands still."""
        block = f"{{time_min: 10, mem_gb: 1{', ' if resources else ''}{resources}}}"
        keys = {"name": "small", "axes": self.axes, "seeds": "[0]", "budget": f"{{compute: {self.budget}}}"}
        held = own_programs.HELD.format(finish=str(self.finish_file), last=30)
        file = own_programs.write_study(self.file.parent, script or held, **keys | {"resources": block} | more)
        file.rename(self.file)

    def at_20(self, *variants: str, attempt: int = 1) -> dict[str, Any]:
        """The rows as soon as these variants, or all, stand at step 20 in this attempt."""

        def standing(rows: dict[str, Any]) -> bool:
            return all(
                (row["state"], row["step"], row["attempt"]) == ("running", 20, attempt)
                for row in (rows[name] for name in variants or rows)
            )

        return self.until(standing, f"step 20 of {variants or 'all'} in attempt {attempt}")

    def finish(self) -> dict[str, Any]:
        """Let the programs take their last steps; the rows once every run is done."""
        self.finish_file.touch()
        return self.until_done()
