from pathlib import Path

import pytest

from ablations.errors import FileError, Place
from ablations.files.lookup import find_file

HERE = Place(source="test")


def make(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("logits: bf16\n")


def test_a_name_is_found_beside_the_sweep_then_here_then_in_the_repository(tmp_path, monkeypatch):
    study, here = tmp_path / "study", tmp_path / "here"
    make(study, "sweeps/loo.yaml", "recipes/mine.yaml")
    make(here, "recipes/mine.yaml", "recipes/other.yaml")
    monkeypatch.chdir(here)
    sweep = study / "sweeps/loo.yaml"
    assert find_file("recipe", "mine", named_at=HERE, sweep=sweep) == study / "recipes/mine.yaml"
    assert find_file("recipe", "other", named_at=HERE, sweep=sweep) == here / "recipes/other.yaml"
    assert find_file("recipe", "scalerl", named_at=HERE, sweep=sweep).name == "scalerl.yaml"
    assert find_file("recipe", "mine", named_at=HERE) == here / "recipes/mine.yaml"


def test_a_path_is_taken_from_the_sweep_then_from_here(tmp_path, monkeypatch):
    make(tmp_path, "sweeps/loo.yaml", "sweeps/mine.yaml", "here/mine.yaml", "here/other.yaml")
    monkeypatch.chdir(tmp_path / "here")
    sweep = tmp_path / "sweeps/loo.yaml"
    assert find_file("recipe", "mine.yaml", named_at=HERE, sweep=sweep) == tmp_path / "sweeps/mine.yaml"
    assert find_file("recipe", "other.yaml", named_at=HERE, sweep=sweep) == tmp_path / "here/other.yaml"
    assert find_file("recipe", "../here/other.yaml", named_at=HERE, sweep=sweep).samefile(tmp_path / "here/other.yaml")


@pytest.mark.parametrize("name", ["x" * 300, "x" * 5000 + "/a.yaml", "nul\0/a.yaml", "nul\0", ""])
def test_a_name_no_file_can_have_is_an_unknown_name(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileError):
        find_file("recipe", name, named_at=HERE)
