"""The pictures of the pretrained model, from the kept curves of two sweeps.

    PYTHONPATH=platform:trainer python benchmarks/smollm.py

* `platform sweep sweeps/smollm_first.yaml`: 23.6 minutes on two cores of an Intel Xeon, 2026-11-26, with unit tests
  beside it; its clock is modelled, so the curves do not depend on that.
* `platform sweep sweeps/smollm.yaml --budget 2 --jobs 12`: 9.7 minutes on one NVIDIA H200, 2026-11-26; then seeds 3 to
  5 of three variants in a second lease of eight minutes.

`platform compare SWEEP --curves docs/results/SWEEP.csv` wrote the readings. Draws `docs/figures/SWEEP.svg`.
"""

from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import ablations
from ablations.findings.results import read_results
from ablations.home.home import Home
from ablations.imports.orders import Foreign

DOCS = Path(__file__).parents[1] / "docs"
BUDGETS = {"smollm_first": 1e-4, "smollm": 2e-4}
"""Modelled GPU-hours to which the curves are fitted."""


def main() -> None:
    for sweep, budget in BUDGETS.items():
        with TemporaryDirectory() as folder:
            table = Foreign(names=(str(DOCS / f"results/{sweep}.csv"),))
            found = table.opened_one(Home(Path(folder)), reference="scalerl")
            plan = replace(found.plan, fit_to_gpu_hours=budget)
            results = read_results(replace(found, plan=plan))
            (DOCS / f"figures/{sweep}.svg").write_bytes(ablations.curves_picture(results, "svg", width_in=6.8))


if __name__ == "__main__":
    main()
