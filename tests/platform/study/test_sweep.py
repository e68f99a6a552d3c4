import subprocess
import sys
from pathlib import Path

import pytest
from places import REPOSITORY

from ablations.errors import FileError
from ablations.study.expand import expand
from ablations.study.resolve import load_planned
from ablations.study.sweep import Budget, Stop, load_sweep

SWEEPS = sorted((REPOSITORY / "sweeps").glob("*.yaml"))


def written(folder: Path, text: str) -> Path:
    path = folder / "sweep.yaml"
    path.write_text("name: test\nreference: scalerl\nscale: laptop\n" + text)
    return path


def test_what_a_sweep_leaves_out_has_its_default(tmp_path):
    sweep = load_sweep(written(tmp_path, "axes: {logits: [bf16]}\n"))
    assert sweep.seeds == (0, 1, 2)
    assert sweep.budget == Budget(compute=1.0, fit_from=0.0, fit_on=1.0)
    assert sweep.published == {}


def test_a_sweep_stops_no_run_unless_it_says_so(tmp_path):
    assert load_sweep(written(tmp_path, "axes: {logits: [bf16]}\n")).stop is None


def test_a_stop_block_without_keys_only_flags_runs_that_collapse(tmp_path):
    stop = load_sweep(written(tmp_path, "axes: {logits: [bf16]}\nstop: {}\n")).stop
    assert stop == Stop(gain_below=None, dominated=None, collapse="flag", truncation_above=0.1)


def test_a_stop_block_is_read(tmp_path):
    text = "axes: {logits: [bf16]}\nstop: {gain_below: 0.01, dominated: 0.95, collapse: stop}\n"
    sweep = load_sweep(written(tmp_path, text))
    assert sweep.stop == Stop(gain_below=0.01, probability=0.9, dominated=0.95, collapse="stop")


def test_numbers_may_be_written_as_integers_or_with_an_exponent(tmp_path):
    sweep = load_sweep(written(tmp_path, "axes: {logits: [bf16]}\nbudget: {compute: 2, fit_from: 5e-2, fit_on: 1}\n"))
    assert sweep.budget == Budget(compute=2.0, fit_from=0.05, fit_on=1.0)


@pytest.mark.parametrize("name", ["a", "loo.2-b_c+d", "8gen", "x" * 64])
def test_names_that_can_be_folders_are_taken(name, tmp_path):
    path = written(tmp_path, "axes: {logits: [bf16]}\n")
    path.write_text(path.read_text().replace("name: test", f"name: {name}"))
    assert load_sweep(path).name == name


@pytest.mark.parametrize("name", ["''", "..", ".hidden", "-x", "a b", "a/b", "a=b", "'a,b'", "é", "x" * 65])
def test_names_that_could_confuse_are_refused(name, tmp_path):
    path = written(tmp_path, "axes: {logits: [bf16]}\n")
    path.write_text(path.read_text().replace("name: test", f"name: {name}"))
    with pytest.raises(FileError, match="is not a name"):
        load_sweep(path)


@pytest.mark.parametrize("path", SWEEPS, ids=lambda path: path.stem)
def test_every_sweep_in_the_repository_expands(path):
    study = expand(path, with_files=False)  # `make smollm` makes the folder of one of them
    assert study.sweep.name == path.stem
    assert len(study.runs) == len(study.variants) * len(study.sweep.seeds) > 1


def test_every_recipe_in_the_repository_can_be_trained_at_every_scale():
    scales = [path.stem for path in (REPOSITORY / "recipes/scales").glob("*.yaml")]
    recipes = [path.stem for path in (REPOSITORY / "recipes").glob("*.yaml")]
    sets = {"smollm": ["length_control.type=none"]}  # its model answers at once
    planned = {
        (recipe, scale): load_planned(recipe, scale, sets.get(scale, ())) for recipe in recipes for scale in scales
    }
    assert {names: one.refused for names, one in planned.items() if one.refused} == {}
    assert len({one.recipe.identity(0) for one in planned.values()}) == len(planned)


def test_reading_sweeps_needs_neither_torch_nor_the_numeric_libraries():
    code = (
        "import sys, ablations.study.expand; print(sorted({'torch', 'numpy', 'pandas', 'mlflow'} & set(sys.modules)))"
    )
    path = {"PYTHONPATH": f"{REPOSITORY}/platform:{REPOSITORY}/trainer"}
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=path).stdout
    assert printed.strip() == "[]"
