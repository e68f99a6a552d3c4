"""Whether what `make demo` says is true: `sweeps/demo.yaml` beside the same study with seven other seeds.

    python benchmarks/demo.py --home /tmp/demo      # 20 runs, half an hour on two free cores

Trains what is missing of `sweeps/demo.yaml` and of `studies/demo_seeds.yaml`, each in a home folder of its own: no run
is in both. Both are compared after one unit of compute and after three, as `make demo` does. That two variants differ
is borne out where the seven seeds say the same and their estimate lies in the demo's interval; "no difference seen"
where their estimate does. What any three of the seven would have said is counted over all choices of three, which
share seeds. Writes `results/demo.json`.
"""

import argparse
import subprocess
import sys
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

from record import write_record

from ablations.answers.answer import CANNOT_TELL, NO_DIFFERENCE, Answer
from ablations.answers.compare import VariantResult, compare
from ablations.answers.questions import BY_NAME
from ablations.findings.results import Results, read_results
from ablations.home.home import Home
from ablations.home.started_sweep import read_sweep

ROOT = Path(__file__).parents[1]
BUDGETS = (1.0, 3.0)
"""In compute units: what `make demo` compares after."""
DEMO, SEEDS = "sweeps/demo.yaml", "benchmarks/studies/demo_seeds.yaml"
REFERENCE, OTHER = "scalerl", "ppo-off-policy-8"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True)
    home = parser.parse_args().home.absolute()
    write_record("demo", {"legs": [leg(home, budget) for budget in BUDGETS]})


def leg(home: Path, budget: float) -> dict[str, Any]:
    """What three seeds and seven others say after this compute."""
    demo, others = trained(DEMO, home / "three", budget), trained(SEEDS, home / "seven", budget)
    few, many = line_of_other(demo), line_of_other(others)
    return {
        "budget": budget,
        "demo": {"code_versions": demo.code_versions, **demo.to_json()},
        "seven_other_seeds": {"code_versions": others.code_versions, **others.to_json()},
        "is_borne_out": {name: is_borne_out(few.answers[name], many.answers[name]) for name in BY_NAME},
        "any_three_of_seven": verdicts_of_triples(others),
    }


def trained(file: str, home: Path, budget: float) -> Results:
    """The results of a sweep file at this budget, after what is missing of it was trained."""
    command = [sys.executable, "-m", "ablations.cli", "sweep", file, "--budget", f"{budget:g}", "--home", str(home)]
    subprocess.run(command, check=True, cwd=ROOT)
    return read_results(read_sweep(Home(home), Path(file).stem))


def line_of_other(results: Results) -> VariantResult:
    """PPO-off-policy-8 in the comparison."""
    line = results.compared(OTHER)
    assert line is not None, results.reasons
    return line


def is_borne_out(few: Answer, many: Answer) -> bool | None:
    """True if more seeds bear out what few say; None if the few cannot tell or the many have no estimate."""
    if few.verdict == CANNOT_TELL or many.estimate is None:
        return None
    is_held = (few.lo is None or few.lo <= many.estimate) and (few.hi is None or many.estimate <= few.hi)
    return is_held and few.verdict in (NO_DIFFERENCE, many.verdict)


def verdicts_of_triples(results: Results) -> dict[str, Any]:
    """How often each verdict is what three of the seeds say, and how the fit of the reference then is."""
    fits = {one.name: one.fits for one in results.variants}
    counts: dict[str, Counter[str]] = {name: Counter() for name in (*BY_NAME, "fit of the reference")}
    for triple in combinations(range(len(fits[REFERENCE])), 3):
        chosen = {name: [of_variant[i] for i in triple] for name, of_variant in fits.items()}
        reference, other = compare(chosen, dict.fromkeys(chosen, 0.0), REFERENCE).variants
        counts["fit of the reference"][reference.fit_verdict] += 1
        for name, answer in other.answers.items():
            counts[name][answer.verdict] += 1
    return {name: dict(count) for name, count in counts.items()}


if __name__ == "__main__":
    main()
