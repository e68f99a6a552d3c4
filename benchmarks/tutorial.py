"""The study of docs/tutorial.md, trained as its reader trains it: what the page shows is compared with these runs.

    python benchmarks/tutorial.py --home /tmp/tutorial-runs

Trains what is missing in the home folder, and writes `results/tutorial.json`: of each run what a comparison reads, and
what the comparison says at twice the budget.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

from record import write_record

import ablations
from ablations.home.home import Home
from scalerl.run.metrics import read_rows

ROOT = Path(__file__).parents[1]
READ = (
    *("kind", "step", "compute_gpu_hours", "weight_version", "task", "pass_rate", "num_prompts", "num_samples"),
    *("truncated", "prompt_counts", "wall_s"),
)
"""Of an evaluation, what fits and warnings read."""

SAID = {"level_difference", "difference", "efficiency", "asymptote"} | {
    f"{one}{end}" for one in ("delta_level", "delta_A", "compute_ratio") for end in ("", "_lo", "_hi")
}
"""Of a comparison, its verdicts and their intervals."""


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True)
    home = parser.parse_args().home.absolute()
    sweep(home, with_dapo=False)
    sweep(home, with_dapo=True)
    plan = ablations.open_sweep("turns", home).plan
    runs, versions = {}, set()
    for variant in plan.variants:
        for run in variant.runs:
            folder = Home(home).run(run.id)
            status, rows = folder.read_status(), read_rows(folder.metrics, kind="eval")
            versions.update(status.code_versions)
            runs[run.id] = {
                "variant": variant.name,
                "seed": run.seed,
                "step": status.step,
                "compute_gpu_hours": status.compute_gpu_hours,
                "pass_rate": status.pass_rate,
                "rows": [{key: row[key] for key in READ} for row in rows],
            }
    found = {"code_versions": sorted(versions), "budget_gpu_hours": plan.budget_gpu_hours, "runs": runs}
    sweep(home, "--budget", "2", with_dapo=True)
    write_record("tutorial", found | {"at_twice_the_budget": twice(home)})


def twice(home: Path) -> dict[str, dict[str, Any]]:
    """What each variant's comparison says, by variant."""
    variants = ablations.open_sweep("turns", home).to_json()["variants"]
    return {one["curve"]: {key: value for key, value in one.items() if key in SAID} for one in variants}


if __name__ == "__main__":
    main()
