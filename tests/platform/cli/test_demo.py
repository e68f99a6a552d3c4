"""What `make demo` runs: a sweep file that can be fitted, and commands that exist."""

import re

from places import REPOSITORY
from typer.testing import CliRunner

from ablations.cli import app
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


def test_a_dry_run_shows_its_runs(tmp_path):
    result = CliRunner().invoke(app, ["sweep", str(FILE), "--dry-run", "--home", str(tmp_path)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    # A unit of scale smoke is 625 modelled GPU-hours; three units, three seeds, two variants.
    assert "6 runs at scale smoke, 1875 modelled GPU-hours each; 11250 left to train" in result.stdout


def test_what_it_names_next_are_commands_of_its_sweep():
    named = {command: argument for command, argument, _ in COMMANDS}
    assert (
        {"status", "compare", "fit", "forecast"}
        < set(named)
        <= {one.name or one.callback.__name__ for one in app.registered_commands if one.callback}
    )
    assert named["fit"] == expand(FILE).sweep.name
    assert RECIPE is not None
    assert "--home" not in RECIPE.group(1)  # so that the next command finds its runs


def test_the_study_that_checks_it_differs_in_nothing_but_the_seeds():
    demo, many = expand(FILE).sweep, expand(REPOSITORY / "benchmarks/studies/demo_seeds.yaml").sweep
    assert not set(demo.seeds) & set(many.seeds)
    assert len(many.seeds) == 7
    changes = {"name": demo.name, "seeds": demo.seeds}
    assert many.model_copy(update=changes) == demo
