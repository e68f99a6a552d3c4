"""The files of a user's own function: all that it imports from its folder, and nothing else."""

import pytest
from trainer.own_functions import written

from scalerl.recipe.own_files import find_source


def write(folder, **files):
    """Files by their path with `__` for a slash."""
    for name, text in files.items():
        written(folder, text, head="", file=f"{name.replace('__', '/')}.py")


def test_everything_that_is_imported_from_the_folder_belongs_to_the_function(tmp_path):
    write(
        tmp_path,
        my_ideas__losses="import torch\nimport my_ideas.ratios as r\nfrom shared import near, far\n",
        my_ideas__ratios="def late():\n    from . import constants\n    from .deep.inner import one\n",
        my_ideas__constants="",
        my_ideas__unused="",
        shared="from json import dumps\n",
        json="",
    )
    written(tmp_path, "from ..constants import two\n", head="", file="my_ideas/deep/inner.py")
    written(tmp_path, "import shared\n", head="", file="my_ideas/deep/__init__.py")
    folder, files = find_source("my_ideas.losses", [tmp_path])
    assert folder == tmp_path
    names = ["constants", "deep/__init__", "deep/inner", "losses", "ratios"]
    assert files == [*(f"my_ideas/{name}.py" for name in names), "shared.py"]


def test_an_init_file_around_the_module_belongs_to_it(tmp_path):
    write(tmp_path, a__b__c="x = 1\n", a__b____init__="")
    written(tmp_path, "import helper\n", head="", file="a/__init__.py")
    written(tmp_path, "", head="", file="a/b/__init__.py")
    write(tmp_path, helper="")
    assert find_source("a.b.c", [tmp_path])[1] == ["a/__init__.py", "a/b/__init__.py", "a/b/c.py", "helper.py"]


def test_modules_that_import_each_other_are_read_once(tmp_path):
    write(tmp_path, one="import two\n", two="import one\n")
    assert find_source("one", [tmp_path])[1] == ["one.py", "two.py"]


def test_the_first_folder_that_has_the_module_wins(tmp_path):
    beside, current = tmp_path / "sweeps", tmp_path / "here"
    write(current, mine="")
    assert find_source("mine", [beside, current])[0] == current
    write(beside, mine="")
    assert find_source("mine", [beside, current])[0] == beside


def test_a_module_that_is_nowhere_is_refused_with_the_folders_that_were_searched(tmp_path):
    with pytest.raises(ValueError, match=f"found no file my_ideas/losses.py: looked in {tmp_path}/a and in {tmp_path}"):
        find_source("my_ideas.losses", [tmp_path / "a", tmp_path])


def test_a_name_of_pythons_own_modules_is_refused(tmp_path):
    write(tmp_path, random="")
    with pytest.raises(
        ValueError, match="module 'random' shares its name with a standard-library module; rename the file"
    ):
        find_source("random", [tmp_path])


def test_a_file_that_is_not_python_is_refused_with_its_line(tmp_path):
    write(tmp_path, mine="import torch\ndef f(:\n")
    with pytest.raises(ValueError, match=f"{tmp_path}/mine.py:2 is not Python"):
        find_source("mine", [tmp_path])
