"""Files of a run: whole or as they were before, never in between."""

import json
import os
from dataclasses import replace

import pytest
from trainer.tiny import tiny_recipe

from scalerl.errors import CannotResume
from scalerl.run.run_folder import RunFolder, write_atomically
from scalerl.run.status import RunStatus
from scalerl.run.status_file import StatusFile


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


def test_the_pace_of_a_run_leaves_out_how_slowly_it_began(tmp_path):
    folder = RunFolder(tmp_path)
    status = StatusFile(folder, 100.0, "code")
    assert folder.read_status().pace_s is None
    for step in range(1, 61):  # the first ten GPU-hours take 30 s each, all others 2 s
        status.beat(every=0.0, compute_gpu_hours=float(step), wall_s=2.0 * step + 28 * min(step, 10))
        if step in (10, 30, 60):
            assert folder.read_status().pace_s == pytest.approx(30.0 if step == 10 else 2.0)
    again = StatusFile(folder, 100.0, "code")
    assert folder.read_status().pace_s is None
    again.beat(every=0.0, compute_gpu_hours=61.0, wall_s=500.0)
    again.beat(every=0.0, compute_gpu_hours=62.0, wall_s=504.0)
    assert folder.read_status().pace_s == pytest.approx(4.0)


def test_a_run_without_a_status_has_not_started(tmp_path):
    assert RunFolder(tmp_path).read_status() == RunStatus()


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"", "Expecting value"),
        (b'{"state": "runn', "Unterminated string"),
        (b"[]", "not a JSON object"),
        (b"\xff\xff\xff", "codec can't decode"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"state": "sleeping"}', "state: found 'sleeping'; must be one of running, done, failed, cancelled"),
        (b'{"state": "done", "warnings": null}', "warnings: Input should be a valid array"),
        (b'{"state": "done", "step": "three"}', "step: Input should be a valid integer"),
        (b"{}", "state: found ''"),
    ],
)
def test_a_damaged_status_is_that_of_a_run_that_has_not_started_and_says_why(tmp_path, content, fault):
    (tmp_path / "status.json").write_bytes(content)
    status = RunFolder(tmp_path).read_status()
    assert replace(status, message="") == RunStatus()
    assert f"{tmp_path / 'status.json'} is damaged (" in status.message
    assert fault in status.message


def test_a_status_that_was_edited_is_not_believed(tmp_path):
    folder = RunFolder(tmp_path)
    folder.write_status(RunStatus(state="cancelled", step=12, compute_gpu_hours=3.0))
    path = tmp_path / "status.json"
    path.write_text(path.read_text().replace('"cancelled"', '"done"').replace("3.0", "3000.0"))
    assert not folder.read_status().has_started
    assert "the SHA-256 does not match the content" in folder.read_status().message


def test_a_status_of_an_earlier_version_has_no_sha256(tmp_path):
    (tmp_path / "status.json").write_text('{"state": "done", "step": 3, "compute_gpu_hours": 2, "later": 1}')
    assert RunFolder(tmp_path).read_status() == RunStatus(state="done", step=3, compute_gpu_hours=2.0)


# --- recipe.json ----------------------------------------------------------------------------------------------------


def edit(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


CHANGES = {
    "a setting": lambda content: content["recipe"]["optimiser"].update(learning_rate=0.5),
    "a setting that is younger than the run": lambda content: content["recipe"].update(epochs=2),
    "the seed": lambda content: content.update(seed=1),
    "the id": lambda content: content.update(id="0123456789ab"),
}


@pytest.mark.parametrize("change", list(CHANGES))
@pytest.mark.parametrize("has_id", [True, False])
def test_an_edited_recipe_is_refused_with_the_file_and_the_way_back(tmp_path, change, has_id):
    recipe = tiny_recipe()
    folder = RunFolder(tmp_path / recipe.identity(0))
    folder.create(recipe, seed=0)
    path = folder.path / "recipe.json"
    if not has_id:  # as earlier versions wrote it: the folder's name is the id
        edit(path, lambda content: content.pop("id"))
        assert folder.read_recipe() == (recipe, 0)
    edit(path, CHANGES[change])
    for act in (folder.read_recipe, lambda: folder.create(recipe, 0)):
        with pytest.raises(CannotResume, match=rf"{path} describes run .*{recipe.identity(0)}.*delete it and repeat"):
            act()
    path.unlink()
    folder.create(recipe, 0)
    assert folder.read_recipe() == (recipe, 0)


def test_what_changes_no_result_may_be_edited(tmp_path):
    folder = RunFolder(tmp_path)
    folder.create(tiny_recipe(), seed=0)
    edit(tmp_path / "recipe.json", lambda content: content["recipe"].update(checkpoint_every_s=3.0))
    assert folder.read_recipe() == (tiny_recipe(checkpoint_every_s=3.0), 0)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (None, "is missing"),
        (b"", r"is damaged \(Expecting value"),
        (b"[]", "is damaged"),
        (b'{"seed": 0}', r"is damaged \(no key 'recipe'\)"),
        (b'{"seed": "0", "recipe": {}}', "is damaged|is not a recipe"),
        (b'{"seed": 0, "recipe": {"losss": 1}}', "is not a recipe of this version .* another version wrote it"),
        (b"\xff", "is damaged"),
    ],
)
def test_a_damaged_recipe_is_named_with_the_way_back(tmp_path, content, fault):
    if content is not None:
        (tmp_path / "recipe.json").write_bytes(content)
    with pytest.raises(CannotResume, match=f"recipe.json ({fault}).*which rewrites it"):
        RunFolder(tmp_path).read_recipe()


# --- writing --------------------------------------------------------------------------------------------------------


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
