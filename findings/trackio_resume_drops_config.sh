#!/usr/bin/env bash
# trackio 0.43.0: init(name=..., resume="must") without config, as a resumed script of another trainer does it, replaces the
# run's stored configuration by an empty one. Learning rate, loss and seed of the run are gone, and nothing says so.
# Expected: the configuration of the first start stays, with what the resume adds.
# Exit status 0 if it is as written here, 1 if the library behaves otherwise now.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check trackio==0.43.0
TRACKIO_DIR="$folder/trackio" HF_HOME="$folder/hub" HF_HUB_OFFLINE=1 "$folder/venv/bin/python" -W ignore - "$folder" 2>/dev/null <<'PYTHON'
import json
import sqlite3
import sys
from importlib.metadata import version

import trackio


def logged(steps, **settings):
    """The run's configuration after these steps, without Trackio's own keys."""
    trackio.init(project="study", name="dapo-s1", embed=False, **settings)
    for step in steps:
        trackio.log({"accuracy": 0.01 * step}, step=step)
    trackio.finish()
    with sqlite3.connect(f"{sys.argv[1]}/trackio/study.db") as database:
        stored = [json.loads(row[0]) for row in database.execute("SELECT config FROM configs")]
    return [{key: value for key, value in one.items() if not key.startswith("_")} for one in stored]


first = logged(range(3), config={"learning_rate": 1e-6, "loss": "dapo", "seed": 1})
resumed = logged(range(3, 6), resume="must")
print(f"trackio {version('trackio')}: configuration at the first start {first}, after a resume {resumed}; expected the first")
sys.exit(not (first == [{"learning_rate": 1e-6, "loss": "dapo", "seed": 1}] and resumed == [{}]))
PYTHON
