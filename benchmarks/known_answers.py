"""Studies whose answers are known, trained for real: nothing that matters differs, or something that must.

    python benchmarks/known_answers.py --home /tmp/known-answers            # 36 runs, half an hour on two free cores

`studies/equal.yaml` has nine variants whose warm-up ends up to four steps earlier or later, of some 800 steps: at most
one of eight should be called different in each of level, ceiling and compute. `studies/known.yaml` halves the learning
rate and changes the batch size. Trains what is missing in the home folder and writes `results/known_answers.json`.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

from record import write_record

from ablations.answers.questions import BY_NAME
from ablations.findings.results import Results, read_results
from ablations.home.home import Home
from ablations.home.started_sweep import read_sweep

ROOT = Path(__file__).parents[1]
STUDIES = ("equal", "known")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True)
    home = Home(parser.parse_args().home.absolute())
    found = {}
    for name in STUDIES:
        command = [sys.executable, "-m", "ablations.cli", "sweep", f"benchmarks/studies/{name}.yaml"]
        subprocess.run([*command, "--home", str(home.path)], check=True, cwd=ROOT)
        found[name] = record_of(read_results(read_sweep(home, name)))
    write_record("known_answers", {"studies": found})


def record_of(results: Results) -> dict[str, Any]:
    """The comparison of a study, and how many of its variants are called different by each verdict."""
    assert results.comparison is not None
    others = [line for line in results.comparison.variants if line.name != results.plan.reference]
    return {
        "code_versions": results.code_versions,
        "seeds": len(results.variants[0].runs),
        "num_variants": len(others),
        "called_different": {name: sum(line.answers[name].differs for line in others) for name in BY_NAME},
        "run_to_run": {name: spread.to_json() for name, spread in results.comparison.spreads.items()},
        "variants": {
            line.name: {name: answer.verdict for name, answer in line.answers.items()}
            | {one.question.keys[0]: [one.estimate, one.lo, one.hi] for one in line.answers.values()}
            for line in others
        },
    }


if __name__ == "__main__":
    main()
