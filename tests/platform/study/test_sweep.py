from pathlib import Path

import pytest
from places import REPOSITORY

from ablations.errors import FileError
from ablations.study.expand import expand
from ablations.study.resolve import load_resolved
from ablations.study.sweep import Budget, Stop, load_sweep

SWEEPS = sorted((REPOSITORY / "sweeps").glob("*.yaml"))


def written(folder: Path, text: str) -> Path:
    path = folder / "sweep.yaml"
    path.write_text("name: test\nreference: scalerl\nscale: laptop\n" + text)
    return path


def test_what_a_sweep_leaves_out_has_its_default(tmp_path):
    sweep = load_sweep(written(tmp_path, "axes: {logits: [bf16]}\nstop: {}\nbudget: {compute: 2, fit_from: 5e-2}\n"))
    assert sweep.seeds == (0, 1, 2)
    assert sweep.budget == Budget(compute=2.0, fit_from=0.05, fit_on=1.0)
    assert sweep.stop == Stop(gain_below=None, dominated=None, collapse="flag", truncation_above=0.1)
    assert load_sweep(written(tmp_path, "axes: {logits: [bf16]}\n")).stop is None


@pytest.mark.parametrize("name", ["''", "..", ".hidden", "-x", "a b", "a/b", "a=b", "'a,b'", "é", "x" * 65])
def test_names_that_could_confuse_are_refused(name, tmp_path):
    path = written(tmp_path, "axes: {logits: [bf16]}\n")
    text = path.read_text()
    path.write_text(text.replace("name: test", f"name: {'x' * 58}.2-b_c"))
    assert len(load_sweep(path).name) == 64
    path.write_text(text.replace("name: test", f"name: {name}"))
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
    at_once = ["length_control.type=none"]  # their models answer at once
    sets = {"smollm": at_once, "games": at_once}
    found = [
        load_resolved(recipe, scale, sets.get(scale, ()), with_files=False) for recipe in recipes for scale in scales
    ]
    assert len({one.identity(0) for one in found}) == len(found)
