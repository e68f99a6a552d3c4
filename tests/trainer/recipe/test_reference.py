"""The page of settings: whole, and every setting with what a user must know."""

from scalerl.recipe import ResolvedRecipe
from scalerl.recipe.reference import settings_page

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


def test_every_setting_has_a_meaning_a_default_and_a_range():
    assert {name for _, name in SETTINGS} == {name for rows in sections().values() for name in rows}
    for heading, rows in sections().items():
        for name, row in rows.items():
            _, _, default, allowed, _, meaning, _ = row.replace("\\|", "").split("|")
            assert meaning.strip(), f"{heading}.{name}"
            assert default.strip(), f"{heading}.{name}"
            assert allowed.strip(), f"{heading}.{name}"


def test_a_bound_a_choice_and_a_null_read_as_they_are_enforced():
    rows = sections()
    assert "| ≥ 0, < 1 |" in rows["`optimiser`"]["beta1"]
    assert "| ≥ 1, ≤ 10000000, whole number, `none` | tokens |" in rows["`generation`"]["thinking"]
    assert "| `prompt`, `sample`, `token`, `constant`, `sum`, `custom` |" in rows["Recipe"]["aggregation"]
    assert "| > 0, ≤ 1e+30, null |" in rows["`optimiser`"]["max_grad_norm"]
    assert "| `1e-15` | ≥ 1e-30, ≤ 1 |" in rows["`optimiser`"]["eps"]
