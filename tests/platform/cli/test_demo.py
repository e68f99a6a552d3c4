"""What `make demo` runs: a sweep file that can be fitted, and commands that exist."""

import re

from places import REPOSITORY

from ablations.fit.options import MIN_READINGS
from ablations.study.expand import expand
from ablations.study.fittable import num_fittable

RECIPE = re.search(r"^demo:.*\n((?:\t.*\n)+)", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
COMMANDS = re.findall(r"platform ([a-z]+) ?([\w./]*)(?: --budget (\S+))?", RECIPE.group(1)) if RECIPE else []
FILE = REPOSITORY / next(file for command, file, _ in COMMANDS if command == "sweep")


def test_it_trains_one_file_and_then_to_a_larger_budget():
    study = expand(FILE)
    legs = [float(budget or study.sweep.budget.compute) for command, _, budget in COMMANDS if command == "sweep"]
    assert legs == [1.0, 3.0]
    assert {file for command, file, _ in COMMANDS if command == "sweep"} == {"sweeps/demo.yaml"}
    for variant in study.variants:
        readings = [num_fittable(budget=leg, every=variant.recipe.evaluation.every) for leg in legs]
        assert readings == [20, 60]  # an evaluation every 0.05 units
        assert min(readings) >= MIN_READINGS
