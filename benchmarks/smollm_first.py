"""The picture of README's pretrained model, from the kept curves of `platform sweep sweeps/smollm_first.yaml`.

    PYTHONPATH=platform:trainer python benchmarks/smollm_first.py

The sweep trained in 23.6 minutes on two cores of an Intel Xeon on 2026-11-26, with unit tests beside it; its clock is
modelled, so the curves do not depend on that. `platform compare smollm_first --curves
docs/results/smollm_first.csv` wrote the readings. Draws `docs/figures/smollm_first.svg`.
"""

from dataclasses import replace
from pathlib import Path

import ablations
from ablations.findings.elsewhere import compare_elsewhere, study_of_file
from ablations.fit.options import FitSettings

ROOT = Path(__file__).parents[1]
CURVES, PICTURE = ROOT / "docs/results/smollm_first.csv", ROOT / "docs/figures/smollm_first.svg"


def main() -> None:
    study = replace(study_of_file(CURVES), compute_name="modelled GPU-hours")
    results = compare_elsewhere(study, "scalerl", FitSettings())
    PICTURE.write_bytes(ablations.curves_picture(results, "svg", width_in=6.8))


if __name__ == "__main__":
    main()
