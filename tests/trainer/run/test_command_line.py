"""The command line of a program's run: placeholders, and overrides in each of their forms."""

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from ablations.errors import Place
from ablations.files.source import parse_value
from scalerl.recipe.command import CommandRecipe
from scalerl.run.command_line import (
    command_line,
    config_text,
    environment_of_run,
    hydra_text,
    override_arguments,
    overrides_passed,
)
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
        *((text, f"'{text}'") for text in ("-5", ".5", "-.5", "-1_0", "-1e-5", "-nan", "-0", "+5", "1_000", "0x10")),
        (float("inf"), "inf"),
        ([float("-inf"), "-5"], "[-inf,'-5']"),
        ([{"two words": "a:b"}], r"[{two\ words:'a:b'}]"),
        (1e-05, "1e-05"),
        ({"a": [False, "x y"]}, "{a:[false,'x y']}"),
    ],
)
def test_values_keep_their_type_in_hydras_grammar(value, text):
    """Expected by the escaping rules of Hydra's documentation, "Quoted values" of its override grammar."""
    assert hydra_text(value) == text


TEXTS = [
    "-5",
    ".5",
    "5.",
    "+5",
    "-1_0",
    "1_000",
    "0x10",
    "0o17",
    "0b1",
    "010",
    "1e3",
    "1e-3",
    "-1e-5",
    "1.e5",
    "inf",
    "-inf",
    ".inf",
    ".nan",
    "-nan",
    "null",
    "~",
    "none",
    "true",
    "no",
    "on",
    "off",
    "y",
    "2025-01-01",
    "2025-01-01T10:00:00",
    "12:30:45",
    "a.b",
    "a-b",
    "--a",
    "a=b",
    "a,b",
    "a:b",
    "a@b",
    "a%b",
    "a|b",
    "$x",
    "${x}",
    "[a]",
    "[1,2]",
    "{a:1}",
    "(a)",
    "sum(1)",
    "it's",
    '"q"',
    "'q'",
    "a\\b",
    "\\",
    "é",
    "日本",
    "🙂",
    "#",
    "a#b",
    "?",
    ":",
    "=",
    ",",
    "-",
    ".",
    "..",
    "1.2.3",
    "1a",
    "1__0",
    "Infinity",
    "e1",
    "_",
    "*a",
    "&a",
    "!a",
    "@a",
    "`a`",
]
VALUES: list[Any] = [
    *TEXTS,
    *("", " ", " 5", "5 ", "two words", "a\nb", "\t", "ends\\", "it's\\'", "key: v", "- a", "a #b"),
    *(1, -1, 0.1, 1e-5, -1e-5, 1e22, -0.0, 10**30, math.inf, -math.inf, math.nan, True, None),
    *([], [1, "1", 1.0, None, "null", True, "true"], [["a,b"], [{"a-b": "x: y", "e": ".5", "-x": "-5"}]]),
]


def alike(a: Any, b: Any) -> bool:
    """True for the same value of the same type; nan is like nan."""
    return type(a) is type(b) and repr(a) == repr(b)


def test_hydra_reads_every_value_as_what_it_is():
    reason = "Hydra needs an older ANTLR than latex2sympy2"
    parser = pytest.importorskip("hydra.core.override_parser.overrides_parser", reason=reason).OverridesParser.create()

    def plain(found: Any) -> Any:
        if type(found).__name__ == "QuotedString":
            return found.text
        if isinstance(found, list):
            return [plain(one) for one in found]
        return {key: plain(one) for key, one in found.items()} if isinstance(found, dict) else found

    read = [plain(parser.parse_override(*override_arguments({"k": value}, "hydra")).value()) for value in VALUES]
    assert [(value, found) for value, found in zip(VALUES, read, strict=True) if not alike(value, found)] == []


@pytest.mark.parametrize("value", [*VALUES, {"on": {"1e3": "1e-3"}, "no": "0o17"}], ids=repr)
def test_readers_of_both_yamls_find_every_value_in_the_configuration(value):
    text = config_text({"k": value})
    assert alike(yaml.safe_load(text), {"k": value})  # YAML 1.1
    assert alike(parse_value(text, Place(source="config.yaml")), {"k": value})  # YAML 1.2


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_argparse_finds_every_value_also_one_that_begins_with_a_minus(value):
    parser = argparse.ArgumentParser()
    parser.add_argument("--a.k")
    parser.add_argument("-5", action="store_true")
    (found,) = vars(parser.parse_args(override_arguments({"a.k": value}, "flags"))).keys() - {"5"}
    text = vars(parser.parse_args(override_arguments({"a.k": value}, "flags")))[found]
    kind = type(value) if isinstance(value, str | float) else json.loads
    assert alike(kind(text), value)
    if isinstance(value, str):
        assert (
            environment_of_run(
                recipe("run", overrides_as="variables", overrides={"k": value}), seed=0, budget=1.0, folder=RUN
            )["K"]
            == value
        )


@pytest.mark.parametrize("key", ["1", "true", "é", "it's", "", "-5", "1e3"])
def test_a_key_that_hydra_would_read_as_something_else_is_refused(key):
    with pytest.raises(
        ValueError, match=r"Hydra cannot read .* as the key of a mapping; rename it, or let the program"
    ):
        hydra_text([{key: 1}])


@pytest.mark.parametrize("form", ["hydra", "flags", "variables"])
@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_a_text_that_no_process_can_get_is_refused(form, text):
    with pytest.raises(ValueError, match="has a character that cannot be passed to a program"):
        overrides_passed({"k": text}, form)


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
