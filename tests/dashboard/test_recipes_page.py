"""The page of two recipes: what differs, first, with what each setting means."""

import re
from dataclasses import replace

from dashboard.app_pages import messages, open_page
from fixtures_home import make_home

from ablations.home.plan import PlannedRun, PlannedVariant
from ablations.study.resolve import load_resolved
from ablations_dashboard.views.recipes import setting_lines

NAMES = ("recipe scalerl", "recipe baseline")


def table_of(page):
    """Settings, values and meanings, as a reader sees them."""
    table = page.table[0].value.rename(columns=shown).map(shown)
    return table.set_index("setting")


def shown(text):
    """Text without the backslashes of Markdown."""
    return re.sub(r"\\(.)", r"\1", text)


def differs(table):
    """True for each setting whose two values differ."""
    left, right = (table[name] for name in table.columns[:2])
    return list(left != right)


def test_settings_that_differ_have_both_values_meaning_and_source(monkeypatch, tmp_path):
    page = open_page(monkeypatch, tmp_path, "recipes")
    table = table_of(page)
    assert set(differs(table)) == {True}
    row = table.loc["loss.type"]
    assert (row[f"{NAMES[0]} (left)"], row[f"{NAMES[1]} (right)"]) == ("cispo", "dapo")
    assert row["source"] == "arXiv 2506.13585"  # MiniMax-M1, where CISPO comes from
    row = table.loc["loss.max_ratio"]
    assert (row[f"{NAMES[0]} (left)"], row[f"{NAMES[1]} (right)"]) == ("5", "-")
    assert row["meaning"].startswith("Upper bound of importance weights")
    assert page.markdown[0].value == f"{len(table)} of {len(table_of(all_of(page)))} settings differ\\."


def all_of(page):
    return page.toggle[0].set_value(True).run()


def test_all_settings_have_those_that_differ_first(monkeypatch, tmp_path):
    page = all_of(open_page(monkeypatch, tmp_path, "recipes", scale="smoke"))
    found = differs(table_of(page))
    assert found == sorted(found, reverse=True)
    assert set(found) == {True, False}
    assert page.query_params["all"] == "1"
    assert "--scale smoke" in page.caption[-1].value


def test_every_setting_of_every_recipe_file_has_a_meaning():
    recipe = load_resolved("ppo_critic", "laptop")
    assert [line["setting"] for line in setting_lines(recipe, recipe) if not line["meaning"]] == []


def test_a_variant_that_was_trained_is_compared_with_a_file(monkeypatch, tmp_path):
    sweep = make_home(tmp_path)
    recipe = load_resolved("scalerl", "smoke", ["batch.prompts=12"])
    run = PlannedRun(seed=0, id=recipe.identity(0))
    sweep = replace(
        sweep, plan=replace(sweep.plan, variants=(PlannedVariant(name="scalerl", overrides={}, runs=(run,)),))
    )
    sweep.write_plan()
    sweep.run(run.id).path.mkdir()
    sweep.run(run.id).create(recipe, 0)
    page = open_page(
        monkeypatch, tmp_path, "recipes", left="variant loo/scalerl", right="recipe scalerl", scale="smoke"
    )
    assert table_of(page)["variant loo/scalerl (left)"].to_dict() == {"batch.prompts": "12"}
    assert f"`platform diff {run.id} scalerl --scale smoke --home {tmp_path}`" in page.caption[-1].value


def test_a_variant_whose_recipe_is_damaged_says_so(monkeypatch, tmp_path):
    make_home(tmp_path)  # its recipe.json have three settings
    page = open_page(monkeypatch, tmp_path, "recipes", left="variant loo/scalerl")
    assert "recipe" in messages(page)
    assert len(page.table) == 0
    assert len(page.selectbox) == 3
