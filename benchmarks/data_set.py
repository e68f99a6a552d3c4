"""The first study of docs/results as a data set: its curves, and a card beside them.

    PYTHONPATH=platform:trainer python benchmarks/data_set.py

Trains nothing. The folders of the runs were not kept, only `docs/results/ceilings/fig2.csv.gz`. The study is planned
again; the id of a run is the hash of its recipe, so the ids in the file show that the recipes are those of the runs.
Then the file and `fig2.md` are written as `platform export fig2 --curves` writes them: every reading stays as it is.
"""

import csv
import gzip
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from record import RESULTS as RECORDS

from ablations.cli.reproduce import unlike
from ablations.files.lookup import files_of
from ablations.findings.results import Results, read_results
from ablations.fit.curve_file import read_seed_curves
from ablations.home.home import Home
from ablations.home.started_sweep import StartedSweep
from ablations.logs.rows_of_run import rows_of_curve
from ablations.report.data_set import card_text, curves_of, paths_of
from ablations.running.make_plan import make_plan
from ablations.study.expand import expand
from scalerl.run.status import RunStatus

STUDY, UNITS, SCALE = "fig2", 8.0, "bench_november"
FILE = Path(__file__).parents[1] / "docs/results/ceilings" / f"{STUDY}.csv.gz"
LICENSE = "apache-2.0"
"""Of this repository."""
NOTES = (
    "The recipes of figure 2 of arXiv 2510.13786 at a small scale. Different from the paper: {differences}",
    "The folders of the runs were not kept. This card was made from the curves and from the study file, whose recipes "
    "have the ids in the column `run`; which run had which commit is not known. The right answers to each prompt are "
    "not in the file, so fitted curves and intervals differ a little from those that were found with them.",
)


def main() -> None:
    with TemporaryDirectory() as folder:
        results = restored(Home(Path(folder)))
        _, card = paths_of(FILE)
        curves = curves_of(results)
        FILE.write_bytes(gzip.compress(curves, mtime=0))
        card.write_text(
            card_text(results, curves, file=FILE.name, license_name=LICENSE, notes=notes(unlike(results.sweep)))
        )


def notes(differences: Sequence[str]) -> list[str]:
    """The notes of the card."""
    return [one.format(differences=" ".join(differences)) for one in NOTES]


def restored(home: Home) -> Results:
    """The study in a home folder, as far as file and record tell; ValueError if it is another study today."""
    study = expand(files_of("study")[STUDY], scale=SCALE)
    plan = make_plan(study, STUDY, budget=UNITS, command=f"platform reproduce {STUDY} --budget {UNITS:g}")
    sweep = StartedSweep(home=home, plan=plan)
    sweep.write_plan()
    written, curves = ids_in(FILE), {(one.variant, one.seed): one.curve for one in read_seed_curves(FILE)}
    if written != {(run.variant, run.seed): run.id for run in study.runs}:
        raise ValueError(f"{FILE}: the runs have other ids than those of {STUDY} today, so their recipes differ")
    record = json.loads((RECORDS / "reproduction_ceilings.json").read_text())
    (code,) = (one["code_versions"] for one in record["cards"] if one["study"] == STUDY)
    for run in study.runs:
        folder, curve = home.run(run.id), curves[run.variant, run.seed]
        folder.create(run.recipe, run.seed)
        folder.metrics.write_text("".join(json.dumps(row) + "\n" for row in rows_of_curve(curve)))
        done = RunStatus(state="done", compute_gpu_hours=float(curve.compute[-1]), code_versions=tuple(code))
        folder.write_status(done)
    return read_results(sweep, alone=True)


def ids_in(path: Path) -> Mapping[tuple[str, int], str]:
    """The id of each variant and seed in a file of curves."""
    rows = csv.DictReader(io.StringIO(gzip.decompress(path.read_bytes()).decode()))
    return {(row["curve"], int(row["seed"])): row["run"] for row in rows}


if __name__ == "__main__":
    main()
