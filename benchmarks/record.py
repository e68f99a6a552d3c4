"""Where the figures of a benchmark go: `results/NAME.json`, with the day and the machine that they were measured on."""

import json
import os
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

from scalerl.run.status_file import processor

RESULTS = Path(__file__).parent / "results"
LOAD_AVERAGE_BEFORE = os.getloadavg()
"""Of other work: this is loaded before anything is measured."""


def write_record(name: str, found: Mapping[str, Any], **more_of_machine: Any) -> None:
    """Replace `results/NAME.json`; `more_of_machine` are its facts that only one benchmark has."""
    machine = {"processor": processor(), "cores": os.cpu_count(), "load_average_before": LOAD_AVERAGE_BEFORE}
    record = {"date": date.today().isoformat(), "machine": machine | more_of_machine, **found}
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
