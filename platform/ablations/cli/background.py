"""A sweep that outlives the process that starts it."""

import os
import subprocess
import sys
from collections.abc import Sequence

from ablations.cli.training import MOST_HOURS
from ablations.home.home import Home


def start_in_background(
    home: Home, sweep: str, arguments: Sequence[str], *, most_hours: float | None = None
) -> dict[str, object]:
    """Start `platform sweep --json` in a session of its own, which neither Ctrl-C nor the end of this process reaches.

    After `most_hours` it is asked to stop, as by Ctrl-C: its runs save their checkpoints and end.

    `arguments` are the arguments of the command, and `sweep` is the name that it gives the sweep. Returns the sweep,
    its process and its log as plain data; the log ends with the comparison or the error as a JSON document. Raises
    AblationsError if the home folder is not writable.
    """
    home.require_writable()
    log = home.sweep(sweep) / "background.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-P", "-m", "ablations.cli", "sweep", "--json", f"--home={home.path}", *arguments]
    with log.open("ab") as printed:
        process = subprocess.Popen(
            command,
            env=os.environ | ({} if most_hours is None else {MOST_HOURS: repr(most_hours)}),
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=printed,
            start_new_session=True,
        )
    return {"sweep": sweep, "pid": process.pid, "log": str(log)}
