"""A user's own function in a recipe: its content belongs to the run, its folder does not."""

import shutil

import pytest
from pydantic import ValidationError
from trainer.own_functions import written

from scalerl.recipe import Own, ResolvedRecipe


def recipe_in(folder, **settings):
    loss = {"type": "custom", "function": "my_ideas.losses:mine", "folder": str(folder), **settings}
    return ResolvedRecipe.model_validate({"loss": loss})


def test_an_edited_function_is_another_run(tmp_path):
    written(tmp_path)
    before = recipe_in(tmp_path)
    assert recipe_in(tmp_path).identity(0) == before.identity(0)
    written(tmp_path, "def mine(given): ...\n")
    assert recipe_in(tmp_path).identity(0) != before.identity(0)


def test_an_edit_of_a_file_that_the_function_imports_is_another_run(tmp_path):
    written(tmp_path, head="from my_ideas.ratios import ratio\n")
    written(tmp_path, "ratio = 1\n", head="", file="my_ideas/ratios.py")
    written(tmp_path, "ratio = 1\n", head="", file="my_ideas/other.py")
    before = recipe_in(tmp_path).identity(0)
    written(tmp_path, "ratio = 3\n", head="", file="my_ideas/other.py")
    assert recipe_in(tmp_path).identity(0) == before
    written(tmp_path, "ratio = 2\n", head="", file="my_ideas/ratios.py")
    assert recipe_in(tmp_path).identity(0) != before


def test_a_moved_folder_is_the_same_run(tmp_path):
    written(tmp_path / "here")
    here = recipe_in(tmp_path / "here")
    shutil.move(tmp_path / "here", tmp_path / "there")
    there = recipe_in(tmp_path / "there")
    assert there.loss.folder != here.loss.folder
    assert there.identity(0) == here.identity(0)


def test_a_stored_recipe_reads_no_files(tmp_path):
    written(tmp_path)
    recipe = recipe_in(tmp_path, parameters={"beta": 0.5, "kind": "a", "on": True, "none": None})
    shutil.rmtree(tmp_path)
    stored = ResolvedRecipe.model_validate(recipe.model_dump(mode="json"))
    assert stored == recipe
    assert stored.identity(0) == recipe.identity(0)


def test_only_a_loss_that_asks_for_it_is_weighed_by_the_start_of_the_round(tmp_path):
    written(tmp_path)
    assert not recipe_in(tmp_path).needs_start
    assert recipe_in(tmp_path, start=True).needs_start


def test_a_run_with_two_different_files_of_one_name_is_refused(tmp_path):
    for number in (1, 2):
        written(tmp_path / str(number), f"# {number}\n")
    own = {"type": "custom", "function": "my_ideas.losses:mine"}
    settings = {"loss": {**own, "folder": str(tmp_path / "1")}, "reward": {**own, "folder": str(tmp_path / "1")}}
    assert list(ResolvedRecipe.model_validate(settings).own) == ["loss", "reward"]
    settings["reward"]["folder"] = str(tmp_path / "2")
    with pytest.raises(ValidationError, match=r"reward: .* and that of loss use different files named my_ideas/losses"):
        ResolvedRecipe.model_validate(settings)


def test_what_a_function_replaces_cannot_be_set_beside_it(tmp_path):
    written(tmp_path)
    own = {"type": "custom", "function": "my_ideas.losses:mine", "folder": str(tmp_path)}
    with pytest.raises(ValidationError, match="length_control 'penalty' changes the reward of right answers"):
        ResolvedRecipe.model_validate({"reward": own, "length_control": {"type": "penalty"}})
    with pytest.raises(ValidationError, match=r"advantage 'my_ideas\.losses:mine' centres rewards"):
        ResolvedRecipe.model_validate({"advantage": own, "critic": {"type": "value_network"}, "epochs": 2})


@pytest.mark.parametrize("function", ["my_ideas.losses", "my_ideas/losses.py:mine", ":mine", "a..b:c", "a:b.c"])
def test_a_function_without_a_module_and_a_name_is_refused(function):
    with pytest.raises(ValidationError, match=r"write module and name, as in `my_ideas\.losses:topr`"):
        Own(function=function)
