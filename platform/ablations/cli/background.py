"""A sweep that continues without the command that started it."""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ablations.home.home import Home


@dataclass(frozen=True, kw_only=True)
class BackgroundSweep:
    """A sweep that was started in the background, with its process and its log.

    >>> BackgroundSweep(sweep="loo", pid=4711, log=Path("ablation-runs/sweeps/loo/background.log"))
    """

    sweep: str
    pid: int
    log: Path
    """Output of `platform sweep --json`: progress, then the comparison or the error as a JSON document."""

    def to_json(self) -> dict[str, object]:
        return {"sweep": self.sweep, "pid": self.pid, "log": str(self.log)}


def start_in_background(home: Home, sweep: str, arguments: Sequence[str]) -> BackgroundSweep:
    """Start `platform sweep --json` in a session of its own, which neither Ctrl-C nor the end of this process reaches.

    `arguments` are those of the command, and `sweep` is the name that it gives the sweep. Raises AblationsError if the
    home folder is not writable.
    """
    home.require_writable()
    log = home.sweep(sweep) / "background.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "ablations.cli", "sweep", "--json", f"--home={home.path}", *arguments]
    with log.open("ab") as printed:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed, start_new_session=True
        )
    return BackgroundSweep(sweep=sweep, pid=process.pid, log=log)
