"""A user's own function is loaded from its own files, and what it raises names them."""

import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
from trainer.own_functions import own_loss, written

from scalerl.recipe import Own
from scalerl.recipe.own_function import OwnFailed, call_own, copy_files, function_of


def function_in(folder, text, file="ideas.py", name="mine", **settings):
    written(folder, text, head="", file=file)
    module = file.removesuffix(".py").replace("/", ".")
    return Own(function=f"{module}:{name}", folder=str(folder), **settings)


def test_parameters_are_passed_as_keywords(tmp_path):
    own = function_in(tmp_path, "def mine(x, *, beta, kind='a'):\n    return x, beta, kind\n", parameters={"beta": 2})
    assert call_own(own, 1) == (1, 2, "a")


def test_modules_of_one_name_in_two_folders_do_not_meet(tmp_path):
    owns = []
    for number in (1, 2):
        folder = tmp_path / str(number)
        written(folder, f"value = {number}\n", head="", file="pack/values.py")
        owns.append(function_in(folder, "from pack.values import value\ndef mine(): return value\n", "pack/ideas.py"))
    assert [call_own(own) for own in owns] == [1, 2]
    assert [call_own(own) for own in owns] == [1, 2]


def test_two_functions_of_one_folder_share_what_they_import(tmp_path):
    written(tmp_path, "calls = []\n", head="", file="pack/shared.py")
    text = "from .shared import calls\ndef mine():\n    calls.append(1)\n    return len(calls)\n"
    one, two = (function_in(tmp_path, text, f"pack/{name}.py") for name in ("one", "two"))
    assert [call_own(one), call_own(two), call_own(one)] == [1, 2, 3]


def test_an_import_inside_the_function_finds_the_file(tmp_path):
    written(tmp_path, "value = 7\n", head="", file="late_values.py")
    own = function_in(tmp_path, "def mine():\n    import late_values\n    return late_values.value\n")
    function_of(own)
    assert call_own(own) == 7


def test_a_file_that_does_not_belong_to_the_function_cannot_be_imported(tmp_path):
    text = "import importlib\ndef mine():\n    return importlib.import_module('hid' + 'den')\n"
    written(tmp_path, "", head="", file="hidden.py")
    with pytest.raises(OwnFailed, match=r"ideas.py:3: mine raised ModuleNotFoundError: No module named 'hidden'"):
        call_own(function_in(tmp_path, text))


def test_no_file_is_written_beside_the_function(tmp_path):
    function_of(function_in(tmp_path, "def mine(): ...\n"))
    assert [path.name for path in tmp_path.rglob("*")] == ["ideas.py"]


def test_the_search_for_other_modules_is_as_it_was(tmp_path):
    before = list(sys.path)
    function_of(function_in(tmp_path, "def mine(): ...\n"))
    assert sys.path == before


def test_an_error_names_the_last_line_of_the_users_own(tmp_path):
    written(tmp_path, "import json\ndef read(text):\n    return json.loads(text)\n", head="", file="pack/reading.py")
    own = function_in(tmp_path, "from .reading import read\ndef mine():\n    return read('{')\n", "pack/ideas.py")
    with pytest.raises(OwnFailed, match=f"{tmp_path}/pack/reading.py:3: mine raised JSONDecodeError: Expecting"):
        call_own(own)


def test_a_missing_parameter_is_said_at_the_function(tmp_path):
    own = function_in(tmp_path, "\n\ndef mine(x, *, beta): ...\n")
    with pytest.raises(OwnFailed, match=r"ideas.py:3: mine raised TypeError: .*'beta'"):
        call_own(own, 1)


def test_a_file_that_has_changed_is_not_loaded(tmp_path):
    own = function_in(tmp_path, "def mine(): return 1\n")
    function_in(tmp_path, "def mine(): return 2\n")
    with pytest.raises(OwnFailed, match=f"{tmp_path}/ideas.py is missing or has changed since the run was planned"):
        call_own(own)


def test_an_edit_of_what_a_function_imports_is_seen_by_a_process_that_has_loaded_it(tmp_path):
    text = "from .values import value\ndef mine(): return value\n"
    found = []
    for number in (1, 2):
        written(tmp_path, f"value = {number}\n", head="", file="pack/values.py")
        found.append(call_own(function_in(tmp_path, text, "pack/ideas.py")))
    assert found == [1, 2]


def test_copies_are_those_of_the_hashes(tmp_path):
    own = own_loss(tmp_path / "here")
    copy = copy_files(own, tmp_path / "copy")
    assert (tmp_path / "copy/my_ideas/losses.py").read_bytes() == own.file.read_bytes()
    assert (copy.folder, copy.files) == (str(tmp_path / "copy"), own.files)
    own.file.write_text("edited\n")
    assert copy_files(own, tmp_path / "copy") == copy
    with pytest.raises(OwnFailed, match=r"losses.py has changed since this command read it; repeat the command"):
        copy_files(own, tmp_path / "another")


def test_a_function_is_found_in_a_process_that_is_started_anew(tmp_path, monkeypatch):
    # Generators, ranks and jobs get the recipe, and no path of the process that starts them.
    own = function_in(tmp_path, "def mine(x, *, beta):\n    return beta * x\n", "pack/ideas.py", parameters={"beta": 3})
    monkeypatch.chdir("/")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        assert processes.submit(call_own, own, 5).result(timeout=550) == 15
