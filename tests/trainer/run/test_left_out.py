"""A run keeps which rows it does not use, and does not resume what was trained on other rows."""

import json

import pytest
from trainer.tiny import tiny_recipe

from scalerl.errors import CannotResume
from scalerl.run.run_folder import RunFolder
from scalerl.run.train import train
from scalerl.tasks import Tasks


@pytest.fixture
def folder(tmp_path):
    """A run on twenty problems, the first four of which are written again with a colon at the end."""
    names = [f"{a}{b}" for a in "bcdef" for b in "ghij"]
    rows = [{"question": name, "answers": "k", "solution": "k"} for name in (*names, *(f"{n}:" for n in names[:4]))]
    path = tmp_path / "quiz.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = {"type": "qa", "path": str(path), "template": "{question}", "validation": 0.3}
    folder = RunFolder(tmp_path / "run")
    folder.create(tiny_recipe(tasks=[task], curriculum={"type": "uniform"}), 0)
    return folder


def trained(folder, budget):
    train(folder.path, budget_gpu_hours=budget, warm_starts=folder.path.parent / "starts")


def test_the_rows_that_a_run_does_not_use_are_in_its_folder_and_it_resumes(folder, capsys):
    trained(folder, 0.002)
    rows = [json.loads(line) for line in folder.left_out.read_text().splitlines()]
    assert [(row["task"], row["where"], row["reason"], row["same_as"]) for row in rows] == [
        ("qa", f"quiz.jsonl:{21 + i}", "duplicate", f"quiz.jsonl:{1 + i}") for i in range(4)
    ]
    said = capsys.readouterr().out
    assert "left out: 4 duplicate" in said
    assert "first quiz.jsonl:21 = quiz.jsonl:1" in said
    trained(folder, 0.004)
    assert folder.read_status().state == "done"


def test_a_run_that_an_earlier_version_trained_on_these_rows_is_not_resumed(folder, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(Tasks, "newly_left_out", [])
        trained(folder, 0.002)
    with pytest.raises(CannotResume, match=r"earlier version used problems .*left_out\.jsonl names them.*`rm -r "):
        trained(folder, 0.004)
    assert folder.read_status().state == "failed"
