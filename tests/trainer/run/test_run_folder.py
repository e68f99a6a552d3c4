"""Files of a run: whole or as they were before, never in between."""

import os

import pytest
from trainer.tiny import tiny_recipe

from scalerl.run.run_folder import RunFolder, write_atomically
from scalerl.run.status import RunStatus


def test_recipe_and_seed_come_back(tmp_path):
    folder = RunFolder(tmp_path / "runs" / "3f0c")
    recipe = tiny_recipe(loss={"type": "gspo"})
    folder.create(recipe, seed=3)
    assert folder.read_recipe() == (recipe, 3)


def test_creating_a_folder_again_leaves_what_is_there(tmp_path):
    folder = RunFolder(tmp_path)
    folder.create(tiny_recipe(), seed=3)
    before = (tmp_path / "recipe.json").read_bytes()
    folder.create(tiny_recipe(), seed=3)
    assert (tmp_path / "recipe.json").read_bytes() == before


def test_a_status_comes_back(tmp_path):
    folder = RunFolder(tmp_path)
    written = RunStatus(state="done", step=3, warnings=("truncates",), code_versions=("4f1c2d",))
    folder.write_status(RunStatus(state="running", step=2))
    folder.write_status(written)
    assert folder.read_status() == written


@pytest.mark.parametrize("content", [None, b"", b'{"state": "runn', b"[]", b"3", b'{"warnings": null}', b"\xff\x00"])
def test_a_missing_or_unreadable_status_is_empty(tmp_path, content):
    if content is not None:
        (tmp_path / "status.json").write_bytes(content)
    assert RunFolder(tmp_path).read_status() == RunStatus()


def test_a_finished_write_leaves_one_file(tmp_path):
    write_atomically(tmp_path / "recipe.json", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["recipe.json"]
    assert (tmp_path / "recipe.json").read_bytes() == b"new"


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_content_and_no_rubbish(tmp_path, monkeypatch, call):
    path = tmp_path / "recipe.json"
    write_atomically(path, b"old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["recipe.json"]


def test_content_is_on_disk_before_the_name_changes(tmp_path, monkeypatch):
    calls = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda fd: (calls.append("sync"), fsync(fd)))
    monkeypatch.setattr(os, "replace", lambda *paths: (calls.append("rename"), replace(*paths)))
    write_atomically(tmp_path / "recipe.json", b"new")
    assert calls == ["sync", "rename", "sync"]


def test_a_reader_never_sees_half_a_file(tmp_path, monkeypatch):
    path = tmp_path / "status.json"
    write_atomically(path, b"a" * 100_000)
    seen = []
    replace = os.replace

    def look(*paths):
        seen.append(path.read_bytes())
        replace(*paths)
        seen.append(path.read_bytes())

    monkeypatch.setattr(os, "replace", look)
    write_atomically(path, b"b" * 50_000)
    assert seen == [b"a" * 100_000, b"b" * 50_000]


def test_a_task_file_that_has_moved_gets_its_new_path_and_nothing_else_changes(tmp_path):
    def recipe(name, **changes):
        path = tmp_path / name
        path.write_text('{"question": "1+1=", "answer": "2"}\n')
        return tiny_recipe(tasks=[{"type": "math", "path": str(path)}], **changes)

    folder = RunFolder(tmp_path / "run")
    folder.create(recipe("before.jsonl"), seed=3)
    os.utime(folder.path / "recipe.json", (1e9, 1e9))  # MLflow shows it as the start of the run
    folder.create(recipe("after.jsonl"), seed=3)
    assert folder.read_recipe() == (recipe("after.jsonl"), 3)
    assert (folder.path / "recipe.json").stat().st_mtime == 1e9
    folder.create(recipe("after.jsonl", epochs=2), seed=3)  # another run: it has a folder of its own
    assert folder.read_recipe() == (recipe("after.jsonl"), 3)
