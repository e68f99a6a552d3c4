"""The page of settings: whole, current, and every setting with what a user must know."""

import re

import pytest
from places import REPOSITORY

from scalerl.recipe import NoCorrection, NoCritic, NoLengthControl, Own, OwnLoss, Recipe, ResolvedRecipe, Uniform
from scalerl.recipe.reference import models_of, settings_page

PAGE = REPOSITORY / "docs" / "recipes.md"
SCHEMA = ResolvedRecipe.model_json_schema()
BLOCKS = {"ResolvedRecipe": SCHEMA, **SCHEMA["$defs"]}
SETTINGS = [(block, name) for block, schema in BLOCKS.items() for name in schema["properties"] if name != "type"]


def sections():
    """Rows of each section's table by the name of the setting."""
    rows = {}
    for section in settings_page().split("\n### ")[0].split("\n## ")[1:] + settings_page().split("\n### ")[1:]:
        table = [line for line in section.splitlines() if line.startswith("| `")]
        rows[section.splitlines()[0]] = {line.split("`")[1]: line for line in table}
    return rows


def test_the_page_in_docs_is_what_the_models_say():
    assert PAGE.read_text() == settings_page(), "run `make docs`"


def test_every_setting_has_a_meaning_a_default_and_a_range():
    bare = [(block, name) for block, name in SETTINGS if not BLOCKS[block]["properties"][name].get("description")]
    assert bare == []
    assert {name for _, name in SETTINGS} == {name for rows in sections().values() for name in rows}
    for heading, rows in sections().items():
        for name, row in rows.items():
            _, _, default, allowed, *_ = row.replace("\\|", "").split("|")
            assert default.strip(), f"{heading}.{name}"
            assert allowed.strip(), f"{heading}.{name}"


PLAIN = {
    "active_parameters", "alpha", "beta1", "beta2", "eps", "experts", "experts_per_token", "gae_lambda", "head_size",
    "heads", "hidden", "k", "kv_heads", "layers", "learning_rate", "mlp", "parameters", "rank", "router_loss",
    "seed", "temperature", "vocabulary", "weight_decay",
}  # fmt: skip
"""Numbers that are factors, seeds, or counts of what they are called."""


def test_every_other_number_has_a_unit():
    bare = set()
    for rows in sections().values():
        for name, row in rows.items():
            _, _, _, allowed, unit, *_ = row.replace("\\|", "").split("|")
            is_number = "whole number" in allowed or ">" in allowed or "≥" in allowed
            bare |= {name} if is_number and not unit.strip() else set()
    assert bare <= PLAIN


@pytest.mark.parametrize(
    "model", [model for name, field in Recipe.model_fields.items() for model in models_of(field.annotation)]
)
def test_every_choice_of_the_algorithm_names_its_source(model):
    said = " ".join([model.__doc__, *(field.description for field in model.model_fields.values() if field.description)])
    assert re.search(r"ScaleRL|arXiv|[A-Z][a-z]+ (et al\. )?\d{4}", said) or model in OWN, model


OWN = {Uniform, NoLengthControl, NoCritic, NoCorrection, Own, OwnLoss}
"""The absence of a method has no source, nor has a function of the user's own."""


def test_a_bound_a_choice_and_a_null_read_as_they_are_enforced():
    rows = sections()
    assert "| ≥ 0, < 1 |" in rows["`optimiser`"]["beta1"]
    assert "| ≥ 1, whole number, `none` | tokens |" in rows["`generation`"]["thinking"]
    assert "| `prompt`, `sample`, `token`, `constant`, `sum`, `custom` |" in rows["Recipe"]["aggregation"]
    assert "| > 0, null |" in rows["`optimiser`"]["max_grad_norm"]
    assert "| `1e-15` | > 0 |" in rows["`optimiser`"]["eps"]
