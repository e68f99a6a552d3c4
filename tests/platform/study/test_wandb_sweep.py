"""A W&B sweep file is refused with a sweep file that can be used as it is."""

import math
from pathlib import Path

import pytest
import yaml

from ablations.errors import FileError
from ablations.study.expand import expand
from ablations.study.sweep import load_sweep

GRID = """
program: train.py
method: grid
metric: {name: val/acc, goal: maximize}
parameters:
  loss: {values: [grpo, dapo]}
  optimizer:
    parameters:
      lr: {values: [0.001, 0.0001]}
  epochs: {value: 3}
  seed: {values: [1, 2]}
"""
BAYES = """
program: main.py
method: bayes
run_cap: 12
command: ["${env}", "${interpreter}", "-u", "${program}", "${args_no_hyphens}"]
parameters:
  lr: {distribution: log_uniform_values, min: 0.0001, max: 0.1}
  old: {distribution: log_uniform, min: -2.0, max: 0.0}
  layers: {min: 2, max: 8}
  drop: {min: 0.0, max: 0.5}
  loss: {values: [grpo, dapo]}
  noise: {distribution: normal, mu: 0.0, sigma: 1.0}
"""


def answered(folder: Path, written: str) -> str:
    """What a W&B sweep file `mine.yaml` is refused with."""
    path = folder / "mine.yaml"
    path.write_text(written)
    for read in (load_sweep, expand):
        with pytest.raises(FileError) as caught:
            read(path)
        assert str(caught.value).startswith(f"{path}:1: a W&B sweep file; here it is this")
    return str(caught.value)


def sweep_file_in(said: str, folder: Path):
    """The sweep in the answer, read as a user would who has pasted it."""
    text = said.split("\n\n")[1]
    (folder / "pasted.yaml").write_text(text)
    return load_sweep(folder / "pasted.yaml"), yaml.safe_load(text)


def test_a_grid_becomes_a_grid_with_seeds_and_fixed_values_in_base(tmp_path):
    said = answered(tmp_path, GRID)
    _, content = sweep_file_in(said, tmp_path)
    assert content["grid"] == {"loss": ["grpo", "dapo"], "optimizer.lr": [0.001, 0.0001]}
    assert (content["base"], content["seeds"], content["name"]) == ({"epochs": 3}, [1, 2], "mine")
    assert content["trainer"]["command"] == ["{python}", "train.py", "{overrides}"]
    assert content["trainer"]["overrides_as"] == "flags"
    assert "Left out" not in said
    (tmp_path / "train.py").touch()
    assert len(expand(tmp_path / "pasted.yaml").variants) == 1 + 2 * 2


def test_a_search_keeps_its_ranges_and_says_what_it_cannot_draw(tmp_path):
    said = answered(tmp_path, BAYES)
    sweep, content = sweep_file_in(said, tmp_path)
    space = content["search"]["space"]
    assert space["lr"] == {"low": 0.0001, "high": 0.1, "log": True}
    assert space["old"]["low"] == pytest.approx(math.exp(-2))
    assert space["layers"] == {"low": 2, "high": 8, "step": 1}
    assert space["drop"] == {"low": 0.0, "high": 0.5}
    assert space["loss"] == {"choices": ["grpo", "dapo"]}
    assert "Left out: noise (normal)." in said
    assert sweep.search is not None
    assert (sweep.search.trials, sweep.search.sampler) == (12, "tpe")
    assert content["trainer"]["command"] == ["{python}", "-u", "main.py", "{overrides}"]
    assert content["trainer"]["overrides_as"] == "hydra"


@pytest.mark.parametrize(
    ("parameter", "left_out"),
    [
        ("{values: 3}", "lr (values are not a list)"),
        ("{values: abc}", "lr (values are not a list)"),
        ("{values: []}", "lr (values are not a list)"),
        ("{distribution: log_uniform, min: 16, max: 1024}", "lr (log_uniform)"),
        ("{distribution: log_uniform, min: low, max: high}", "lr (log_uniform)"),
        ("{min: 0, max: .inf}", "lr (no values)"),
        ("{values: [1, 2], probabilities: [0.9, 0.1]}", "probabilities of lr"),
    ],
)
def test_a_parameter_that_no_search_can_draw_is_named(tmp_path, parameter, left_out):
    written = f"program: train.py\nmethod: bayes\nparameters: {{lr: {parameter}, loss: {{values: [grpo, dapo]}}}}"
    said = answered(tmp_path, written)
    assert f"Left out: {left_out}." in said
    _, content = sweep_file_in(said, tmp_path)
    assert content["grid"]["loss"] == ["grpo", "dapo"]


def test_a_command_may_be_a_text_and_words_that_only_wandb_fills_are_named(tmp_path):
    parameters = "method: grid\nparameters: {lr: {values: [1, 2]}}\n"
    _, content = sweep_file_in(answered(tmp_path, parameters + "command: python train.py ${args}\n"), tmp_path)
    assert content["trainer"]["command"] == ["python", "train.py", "{overrides}"]
    said = answered(tmp_path, parameters + 'command: [python, train.py, "${envvar:RANK}", "${args}"]\n')
    assert "Left out: ${envvar:RANK} in the command." in said


def test_the_name_of_a_file_becomes_a_name_that_a_sweep_may_have(tmp_path):
    path = tmp_path / "Größe 2 (neu).yaml"
    path.write_text(GRID)
    with pytest.raises(FileError) as caught:
        load_sweep(path)
    assert sweep_file_in(str(caught.value), tmp_path)[0].name == "Gr_e_2_neu"


@pytest.mark.parametrize("written", ["parameters: {lr: {values: [1]}}", "method: grid", "program: train.py"])
def test_a_file_with_only_some_of_its_keys_is_checked_as_a_sweep_file(tmp_path, written):
    path = tmp_path / "mine.yaml"
    path.write_text(written)
    with pytest.raises(FileError, match="name: missing"):
        load_sweep(path)
