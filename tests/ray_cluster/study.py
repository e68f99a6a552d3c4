"""A study on a Ray cluster as its user has it: a sweep file, a home folder, and the command line."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from integration.conftest import SCALE, read_metrics
from ray_cluster.cluster import RayCluster, command_line
from waiting import wait_until

from ablations.home.home import Home
from ablations.home.started_sweep import read_sweep
from ablations.status.progress import run_rows, to_json

LIMIT_S = 600.0
SWEEP = """
name: small
reference: scalerl
seeds: [0]
scale: seconds
leave_one_out:
  revert_to: baseline
  axes:
    loss:
budget: {compute: 6.0}
resources: {mem_gb: 1}
"""


@dataclass(kw_only=True)
class RayStudy:
    """Two variants (scalerl, loo-loss) of some seconds each, unless the files say otherwise."""

    cluster: RayCluster
    folder: Path
    sweep: str = SWEEP
    scale: str = SCALE + "checkpoint_every_s: 1\n"

    def __post_init__(self) -> None:
        scales, sweeps = self.folder / "recipes" / "scales", self.folder / "sweeps"
        scales.mkdir(parents=True)
        sweeps.mkdir()
        (scales / "seconds.yaml").write_text(self.scale)
        self.file.write_text(self.sweep)

    @property
    def file(self) -> Path:
        """The sweep file."""
        return self.folder / "sweeps" / "small.yaml"

    @property
    def home(self) -> Path:
        """The home folder."""
        return self.folder / "home"

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """`platform sweep small.yaml --executor ray`, not waited for; what it says goes to a file."""
        with (self.folder / "said").open("ab") as said:
            return subprocess.Popen(
                self._command("sweep", str(self.file), "--executor", "ray", *arguments),
                env=self.cluster.environment, stdout=said, stderr=said, stdin=subprocess.DEVNULL, text=True,
            )  # fmt: skip

    def interrupt(self, command: subprocess.Popen[str]) -> None:
        """Ctrl-C, after which the command says how to go on."""
        command.send_signal(signal.SIGINT)
        assert command.wait(LIMIT_S) == 3, self.said
        assert "Stopped. Run the same command again" in self.said

    def until_said(self, words: str, command: subprocess.Popen[str]) -> None:
        """Wait for words of a command."""
        wait_until(lambda: words in self.said, words, limit_s=LIMIT_S, process=command, shown=lambda: self.said)

    def until_nothing_is_left(self) -> None:
        """Wait for the end of every process of ours on the cluster."""
        wait_until(
            lambda: not self.cluster.ours(),
            "the end of all that the command had started",
            limit_s=LIMIT_S,
            shown=lambda: [command_line(process) for process in self.cluster.ours()],
        )

    def platform(self, *arguments: str, code: int = 0, **environment: str) -> str:
        """What a command printed; its exit code must be `code`."""
        done = subprocess.run(
            self._command(*arguments),
            env=self.cluster.environment | environment, capture_output=True, text=True, check=False, timeout=LIMIT_S,
        )  # fmt: skip
        assert done.returncode == code, f"{arguments} gave {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def _command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "ablations.cli", *arguments, "--home", str(self.home)]

    @property
    def said(self) -> str:
        """What all `begin` have said."""
        return " ".join((self.folder / "said").read_text().split())

    def rows(self) -> dict[str, dict[str, Any]]:
        """The runs as `platform status --json` shows them, by variant."""
        if not (self.home / "sweeps" / "small" / "plan.json").exists():
            return {}
        sweep = read_sweep(Home(self.home), "small")
        return {row["variant"]: row for row in to_json(sweep.plan, run_rows(sweep))["runs"]}

    def until(self, done: Callable[[dict[str, Any]], Any], what: str, process: subprocess.Popen | None = None) -> Any:
        """What `done` says of the rows as soon as that is true."""

        def shown() -> str:
            return f"{ {name: (row['state'], row['step']) for name, row in self.rows().items()} }\n{self.said}"

        return wait_until(lambda: done(self.rows()), what, limit_s=LIMIT_S, every_s=0.2, shown=shown, process=process)

    def undisturbed(self) -> dict[str, Any]:
        """The run logs of the same study trained on this machine, in another home folder."""
        other = self.folder / "undisturbed"
        command = [sys.executable, "-m", "ablations.cli", "sweep", str(self.file), "--home", str(other)]
        subprocess.run(command, env=os.environ, check=True, capture_output=True, timeout=LIMIT_S)
        return read_metrics(other)


def all_train(rows: dict[str, Any], *, steps: int = 5) -> bool:
    """Whether every run trains and has taken some steps."""
    return bool(rows) and all(row["state"] == "running" and row["step"] >= steps for row in rows.values())
