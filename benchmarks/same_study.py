"""Whether a change of the code left a study as it was: two home folders that hold the same sweep, compared to the bit.

    platform sweep sweeps/loo.yaml --scale smoke --home before        # with the code of before
    platform sweep sweeps/loo.yaml --scale smoke --home after         # with the code of now
    python benchmarks/same_study.py before after loo@smoke

Every row of every metrics.jsonl must be equal but for wall-clock seconds, and so must `platform compare --json`, which
both folders are asked for with the code of now. Exits 1 at the first difference, and names it. Both homes must have
been made on one kind of processor: between two kinds the last bits differ (docs/design.md).
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scalerl.run.run_log import WALL_FIELDS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("sweep")
    given = parser.parse_args()
    plans = [
        json.loads((home / "sweeps" / given.sweep / "plan.json").read_text()) for home in (given.before, given.after)
    ]
    num_rows = 0
    for run in runs(plans[0]):
        pair = [rows(home / "runs" / run / "metrics.jsonl") for home in (given.before, given.after)]
        for number, (one, other) in enumerate(zip(*pair, strict=False), start=1):
            if one != other:
                keys = sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))
                sys.exit(
                    f"run {run}, row {number}: {', '.join(f'{key} {one.get(key)} / {other.get(key)}' for key in keys)}"
                )
        if len(pair[0]) != len(pair[1]):
            sys.exit(f"run {run}: {len(pair[0])} rows before, {len(pair[1])} after")
        num_rows += len(pair[0])
    compared = [comparison(home, given.sweep) for home in (given.before, given.after)]
    if compared[0] != compared[1]:
        sys.exit("platform compare --json differs")
    print(f"{given.sweep}: {len(list(runs(plans[0])))} runs, {num_rows} rows and the comparison are equal to the bit")


def runs(plan: dict[str, Any]) -> Iterator[str]:
    """Ids of all runs of a plan."""
    for variant in plan["variants"]:
        for run in variant["runs"]:
            yield run["id"]


def rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a run log without what says how fast the machine was."""
    read = [json.loads(line) for line in path.read_text().splitlines()]
    return [{key: value for key, value in row.items() if key not in WALL_FIELDS} for row in read]


def comparison(home: Path, sweep: str) -> Any:
    """What `platform compare --json` says, the versions of the code aside."""
    command = [sys.executable, "-m", "ablations.cli", "compare", sweep, "--json", "--home", str(home)]
    said = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    del said["code_versions"]
    return said


if __name__ == "__main__":
    main()
