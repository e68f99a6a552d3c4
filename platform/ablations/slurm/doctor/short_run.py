"""The program of `platform doctor --train`, on a node or here: one short run, and a report of its result.

<home>/doctor/doctor.1f0c9ad2/
  question.json    the budget of the run
  home/runs/...    the run, as in any home folder
  report.json      the result
"""

import json
import socket
import sys
import time
from pathlib import Path

from ablations.files.tail import tail
from ablations.home.home import Home
from ablations.pools.job import train_run
from scalerl.run.run_folder import write_atomically
from scalerl.run.run_log import read_rows

NUM_LOG_LINES = 12


def main(place: Path) -> None:
    """Train the run in the folder, and report its state and measurements, and the end of its log if it did not reach
    its budget.
    """
    question, home = json.loads((place / "question.json").read_text()), Home(place / "home")
    folder, began = home.run(question["run"]), time.monotonic()
    train_run(folder.path, question["budget_gpu_hours"], home.warm_starts)
    status = folder.read_status()
    steps = list(read_rows(folder.metrics, kind="train"))
    readings = [row["pass_rate"] for row in read_rows(folder.metrics, kind="eval")]
    report = {
        "host": socket.gethostname(),
        "state": status.state,
        "message": status.message,
        "warnings": status.warnings,
        "seconds": time.monotonic() - began,
        "steps": len(steps),
        "pass_rates": readings,
        "mismatch": next((row["mismatch"] for row in steps if row.get("mismatch") is not None), None),
        "log": [] if status.state == "done" else tail(folder.log(status.attempt), NUM_LOG_LINES),
    }
    write_atomically(place / "report.json", json.dumps(report).encode())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
