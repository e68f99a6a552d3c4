"""The command line of a program's run: placeholders, and overrides in each of their forms."""

import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from scalerl.recipe.command import CommandRecipe
from scalerl.run.command_line import command_line, environment_of_run, hydra_text
from scalerl.run.run_folder import RunFolder

RUN = RunFolder(Path("/home/runs/1"))
OVERRIDES = {"optimiser.rate": 0.1, "name": "two words", "+new.flag": True, "layers": [1, 2], "none": None}


def recipe(*command: str, **settings: Any) -> CommandRecipe:
    given = {"command": command, "code": ["a.py"], "code_sha256": {}, "evaluation": {"every": 1.0}}
    return CommandRecipe(**given | {"configuration": {"optimiser": {"rate": 1.0}}, "overrides": OVERRIDES} | settings)


def line(*command: str, **settings: Any) -> list[str]:
    return command_line(recipe(*command, **settings), seed=3, budget=8000.0, folder=RUN)


def test_every_placeholder_is_filled():
    assert line("{python}", "a.py", "--seed={seed}", "{budget}", "{folder}/out", "{config}", "{{seed}}") == [
        *(sys.executable, "a.py", "--seed=3", "8000", "/home/runs/1/work/out", "/home/runs/1/config.yaml", "{seed}"),
    ]


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("hydra", ["optimiser.rate=0.1", "name='two words'", "+new.flag=true", "layers=[1,2]", "none=null"]),
        (
            "flags",
            [
                *("--optimiser.rate", "0.1", "--name", "two words", "--new.flag", "true"),
                *("--layers", "[1, 2]", "--none", "null"),
            ],
        ),
        (
            "flags_with_underscores",
            [
                *("--optimiser_rate", "0.1", "--name", "two words", "--new_flag", "true"),
                *("--layers", "[1, 2]", "--none", "null"),
            ],
        ),
        ("variables", []),
    ],
)
def test_overrides_are_passed_in_the_form_that_was_asked_for(form, expected):
    assert line("run", "{overrides}", overrides_as=form) == ["run", *expected]


def test_variables_have_the_overrides_in_capitals():
    found = environment_of_run(recipe("run", overrides_as="variables"), seed=3, budget=0.5, folder=RUN)
    assert (found["OPTIMISER_RATE"], found["NAME"], found["NEW_FLAG"]) == ("0.1", "two words", "true")
    assert (found["ABLATIONS_SEED"], found["ABLATIONS_BUDGET"]) == ("3", "0.5")
    assert found["ABLATIONS_LOG"] == "/home/runs/1/metrics.jsonl"


def test_settings_are_the_configuration_with_the_overrides():
    assert recipe("run").settings == {
        "optimiser": {"rate": 0.1},
        "name": "two words",
        "new": {"flag": True},
        "layers": [1, 2],
        "none": None,
    }


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("adam", "adam"),
        ("runs/a-b_c.txt", "runs/a-b_c.txt"),
        ("true", "'true'"),
        ("1e-3", "'1e-3'"),
        ("it's", r"'it\'s'"),
        ("a,b", "'a,b'"),
        ("", "''"),
        ("ends with \\", "'ends with \\\\'"),
        (1e-05, "1e-05"),
        ({"a": [False, "x y"]}, "{a:[false,'x y']}"),
    ],
)
def test_values_keep_their_type_in_hydras_grammar(value, text):
    """Expected by the escaping rules of Hydra's documentation, "Quoted values" of its override grammar."""
    assert hydra_text(value) == text


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        (
            "--seed={sead}",
            r"unknown placeholder \{sead\} in '--seed=\{sead\}'; placeholders are: \{python\}, \{over",
        ),
        ("--over={overrides}", "stands for several arguments, but '--over={overrides}' is one; write it alone"),
    ],
)
def test_a_placeholder_that_nothing_fills_is_refused(argument, words):
    with pytest.raises(ValidationError, match=words):
        recipe("run", argument)
