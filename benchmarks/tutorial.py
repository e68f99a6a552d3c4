"""The study of docs/tutorial.md, trained as its reader trains it: what the pages show is made of these runs.

    python benchmarks/tutorial.py --home /tmp/tutorial-runs

Trains what is missing in the home folder, first at the budget of the page and then at twice that, and writes
`results/tutorial.json`: of each run what a comparison reads.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from record import RESULTS, write_record

import ablations
from ablations.home.home import Home
from ablations.study.expand import SweepRun
from scalerl.run.run_log import read_rows
from scalerl.run.status import RunStatus

ROOT = Path(__file__).parents[1]
READ = (
    *("kind", "step", "compute_gpu_hours", "weight_version", "task", "pass_rate", "num_prompts", "num_samples"),
    *("truncated", "prompt_counts", "wall_s"),
)
"""Of an evaluation, what fits and warnings read."""


def kept_runs() -> dict[str, Any]:
    """What this benchmark has written: `code_versions`, `budget_gpu_hours`, and `runs` by id."""
    return json.loads((RESULTS / "tutorial.json").read_text())


def study(*, with_dapo: bool) -> str:
    """`my_study.yaml` as the page writes it first, or with the line that it adds later."""
    page = (ROOT / "docs/tutorial.md").read_text()
    (first,) = re.findall(r"^    name: turns\n(?:    .*\n)+", page, re.MULTILINE)
    (line,) = re.findall(r"^      dapo: .*\n", page, re.MULTILINE)
    before, in_turns, after = re.split(r"^(  in_turns: .*\n)", textwrap.dedent(first), flags=re.MULTILINE)
    return before + in_turns + (line[4:] if with_dapo else "") + after


def sweep(home: Path, *more: str, with_dapo: bool) -> None:
    """`platform sweep my_study.yaml` of the page."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "my_study.yaml"
        file.write_text(study(with_dapo=with_dapo))
        command = [sys.executable, "-m", "ablations.cli", "sweep", str(file), "--home", str(home), *more]
        subprocess.run(command, check=True, cwd=ROOT)


def rows_until(run: dict[str, Any], budget: float) -> list[dict[str, Any]]:
    """The evaluations of a kept run up to the one at its end if it trains to `budget`, in GPU-hours."""
    rows = run["rows"]
    end = next(place for place, row in enumerate(rows, start=1) if row["compute_gpu_hours"] >= budget)
    return rows[:end]


def add_kept_runs(home: Home, runs: Iterable[SweepRun], times: float = 1.0) -> None:
    """Write these runs into a home folder, as their training left them at `times` the budget of the page."""
    kept = kept_runs()
    budget = times * kept["budget_gpu_hours"]
    for run in runs:
        rows, folder = rows_until(kept["runs"][run.id], budget), home.run(run.id)
        if not folder.path.exists():
            folder.create(run.recipe, run.seed)
        folder.metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
        folder.log(1).parent.mkdir(exist_ok=True)
        folder.log(1).write_text("step 1\n")
        end = {name: rows[-1][name] for name in ("step", "compute_gpu_hours", "pass_rate")}
        versions = tuple(kept["code_versions"])
        folder.write_status(RunStatus(state="done", attempt=1, budget_gpu_hours=budget, code_versions=versions, **end))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True)
    home = parser.parse_args().home.absolute()
    sweep(home, with_dapo=False)
    sweep(home, with_dapo=True)
    budget = ablations.open_sweep("turns", home).plan.budget_gpu_hours
    sweep(home, "--budget", "2", with_dapo=True)
    runs, versions = {}, set()
    for variant in ablations.open_sweep("turns", home).plan.variants:
        for run in variant.runs:
            folder = Home(home).run(run.id)
            versions.update(folder.read_status().code_versions)
            rows = [{key: row[key] for key in READ} for row in read_rows(folder.metrics, kind="eval")]
            runs[run.id] = {"variant": variant.name, "seed": run.seed, "rows": rows}
    write_record("tutorial", {"code_versions": sorted(versions), "budget_gpu_hours": budget, "runs": runs})


if __name__ == "__main__":
    main()
