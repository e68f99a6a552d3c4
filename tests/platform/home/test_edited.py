"""Runs that are new because a file of the user's own changed say so, and no others do."""

import json
from pathlib import Path

from trainer.own_functions import GOOD, written
from typer.testing import CliRunner

from ablations.cli import app
from ablations.home.edited import edited_files
from ablations.home.home import Home
from ablations.study.expand import expand

SWEEP = """\
name: ideas
reference: scalerl
scale: smoke
seeds: [0, 1]
variants:
  mine: {loss: {type: custom, function: "my_ideas.losses:mine", parameters: {beta: 2.0}}}
"""


def study_in(folder: Path, text: str = SWEEP):
    folder.mkdir(exist_ok=True)
    (folder / "ideas.yaml").write_text(text)
    return expand(folder / "ideas.yaml")


def begin(home: Home, study) -> None:
    for run in study.runs:
        home.run(run.id).create(run.recipe, run.seed)


def files_of_mine(home: Home, study) -> list[list[str]]:
    return [edited_files(home, run.recipe, run.seed) for run in study.runs if run.variant == "mine"]


def test_a_function_beside_the_sweep_file_is_found_and_its_edit_is_named(tmp_path):
    written(tmp_path / "sweeps", "from .ratios import ratio\n" + GOOD)
    written(tmp_path / "sweeps", "ratio = 1\n", head="", file="my_ideas/ratios.py")
    home, before = Home(tmp_path / "home"), study_in(tmp_path / "sweeps")
    assert files_of_mine(home, before) == [[], []]
    begin(home, before)
    written(tmp_path / "sweeps", "ratio = 2\n", head="", file="my_ideas/ratios.py")
    after = study_in(tmp_path / "sweeps")
    assert files_of_mine(home, after) == [["my_ideas/ratios.py"]] * 2
    assert {run.id for run in after.runs} & {run.id for run in before.runs} == {
        run.id for run in before.runs if run.variant == "scalerl"
    }


def test_a_dry_run_says_which_file_changed(tmp_path):
    written(tmp_path)
    home = Home(tmp_path / "home")
    begin(home, study_in(tmp_path))
    written(tmp_path, GOOD.replace("beta=1.0", "beta=1.5"))
    arguments = ["sweep", str(tmp_path / "ideas.yaml"), "--dry-run", "--home", str(home.path)]
    shown = CliRunner().invoke(app, arguments).stdout
    assert shown.count("new because my_ideas/losses.py changed") == 2
    runs = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)["runs"]
    assert [run["changed_files"] for run in runs] == [[], [], ["my_ideas/losses.py"], ["my_ideas/losses.py"]]
