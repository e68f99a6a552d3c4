"""Whether a trained study has the half-widths that `platform design` foretold of it.

    python benchmarks/design_foretold.py --home /tmp/foretold    # nine runs at scale laptop, half an hour on two cores

A pilot trains `studies/laptop.yaml` with its first seed. From these runs alone `platform design` foretells the study
with all seeds, which is then trained. Repeated on the same home folder nothing trains: other code foretells and
compares the same runs. An interval that is open at one end has no half-width. Writes `results/design_foretold.json`.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path
from shutil import copytree
from typing import Any

import yaml
from record import write_record

from ablations.answers.compare import VariantResult
from ablations.answers.questions import BY_NAME
from ablations.findings.results import read_results
from ablations.home.home import Home
from ablations.home.started_sweep import read_sweep

STUDY = Path(__file__).parent / "studies" / "laptop.yaml"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    home = Home(asked.home.absolute())
    study = yaml.safe_load(STUDY.read_text())
    home.path.mkdir(parents=True, exist_ok=True)
    pilot = home.path / "pilot.yaml"
    pilot.write_text(yaml.safe_dump(study | {"name": "pilot", "seeds": study["seeds"][:1]}))

    platform("sweep", str(pilot), "--jobs", str(asked.jobs), home=home.path)
    with tempfile.TemporaryDirectory() as folder:
        copy_sweep(home, "pilot", Path(folder))
        foretold = json.loads(platform("design", str(STUDY), "--json", home=Path(folder)))
    (own,) = (line for line in foretold["designs"] if is_own(line, study))
    platform("sweep", str(STUDY), "--jobs", str(asked.jobs), home=home.path)
    results = read_results(read_sweep(home, study["name"]))
    assert results.comparison is not None
    others = [line for line in results.comparison.variants if line.name != results.plan.reference]
    record = {
        "study": study,
        "code_versions": results.code_versions,
        "known": foretold["known"],
        "questions": {
            question: {
                "foretold": foretold_half_width(own, question),
                "open_foretold": own[question]["open"],
                "found": {line.name: half_width(line, question) for line in others},
                "intervals": {
                    line.name: [one.estimate, one.lo, one.hi] for line in others for one in [line.answers[question]]
                },
            }
            for question in BY_NAME
        },
        "run_to_run": {name: spread.to_json() for name, spread in results.comparison.spreads.items()},
    }
    print(json.dumps(record["questions"], indent=1))
    write_record("design_foretold", record)


def platform(*words: str, home: Path) -> str:
    """What the command prints."""
    command = [sys.executable, "-m", "ablations.cli", *words, "--home", str(home)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def copy_sweep(home: Home, name: str, folder: Path) -> None:
    """A home folder that has this sweep and its runs alone."""
    copytree(home.path / "sweeps" / name, folder / "sweeps" / name)
    for variant in read_sweep(home, name).plan.variants:
        for run in variant.runs:
            copytree(home.path / "runs" / run.id, folder / "runs" / run.id)


def is_own(line: dict[str, Any], study: dict[str, Any]) -> bool:
    """Whether a design is the file as it is."""
    return line["seeds"] == study["seeds"] and line["budget"] == study["budget"]["compute"] and line["samples"] == 8


def foretold_half_width(line: dict[str, Any], question: str) -> float | None:
    """Of compute that of the ratio's logarithm."""
    found = line[question]["half_width"]
    return math.log(found) if found is not None and question == "compute" else found


def half_width(line: VariantResult, question: str) -> float | None:
    """Of the interval of a difference; of a compute ratio that of its logarithm. None where an end is open."""
    answer = line.answers[question]
    half_width = answer.question.half_width(answer.lo, answer.hi)
    return half_width if math.isfinite(half_width) else None


if __name__ == "__main__":
    main()
