"""Where two recipes differ, also in functions of the user's own."""

from trainer.own_functions import GOOD, own_loss

from ablations.study.recipe_differences import recipe_differences
from scalerl.recipe import ResolvedRecipe


def recipe_in(folder, body=GOOD):
    return ResolvedRecipe.model_validate({"loss": own_loss(folder, body).model_dump()})


def test_copies_of_one_function_do_not_differ_and_edited_ones_do(tmp_path):
    one, copy, other = (
        recipe_in(tmp_path / name, body) for name, body in (("a", GOOD), ("b", GOOD), ("c", GOOD + " "))
    )
    assert recipe_differences(one, copy) == []
    assert [difference.path for difference in recipe_differences(one, other)] == ["loss.folder_sha256"]
