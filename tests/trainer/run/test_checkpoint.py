"""A checkpoint: whole or the one before, weights once, and a damaged part is named."""

import json
import os
import resource
import signal

import pytest
import torch
from safetensors.torch import load_file
from trainer.tiny import make_cluster, random_policy, tiny_recipe

from scalerl.run import checkpoint
from scalerl.run.checkpoint import checkpoint_exists, read_checkpoint, write_checkpoint
from scalerl.run.errors import CannotResume
from scalerl.run.old_checkpoint import read_old_checkpoint
from scalerl.schedules import SCHEDULES

STATE = {"weights": torch.arange(6.0), "num_readings": 3}


def parts_of(folder):
    """Files by name of their part."""
    manifest = json.loads((folder / "manifest.json").read_text())
    return {name: folder / part["file"] for name, part in manifest["parts"].items()}


def test_a_folder_has_its_manifest_and_the_parts_that_it_names(tmp_path):
    folder = tmp_path / "checkpoint"
    assert not checkpoint_exists(folder)
    for number in range(3):
        write_checkpoint(folder, {**STATE, "num_readings": number})
    assert checkpoint_exists(folder)
    assert {path.name for path in folder.iterdir()} == {
        "manifest.json",
        *(path.name for path in parts_of(folder).values()),
    }
    assert read_checkpoint(folder, ())["num_readings"] == 2


@pytest.mark.parametrize("call", ["fsync", "replace", "save_file"])
def test_a_write_that_fails_leaves_the_last_checkpoint_and_the_next_cleans_up(tmp_path, monkeypatch, call):
    folder = tmp_path / "checkpoint"
    write_checkpoint(folder, STATE)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*{"save_file": (checkpoint.safetensors.torch, call)}.get(call, (os, call)), full)
    with pytest.raises(OSError, match="No space left"):
        write_checkpoint(folder, {**STATE, "num_readings": 4})
    monkeypatch.undo()
    assert read_checkpoint(folder, ())["num_readings"] == 3
    (folder / ".tensors.4242.tmp").write_bytes(b"of a killed process")
    write_checkpoint(folder, {**STATE, "num_readings": 5})
    assert len(list(folder.iterdir())) == 4
    assert read_checkpoint(folder, ())["num_readings"] == 5


@pytest.mark.parametrize("name", ["state", "tensors", "arrays"])
def test_a_damaged_part_is_named(tmp_path, name):
    folder = tmp_path / "checkpoint"
    write_checkpoint(folder, STATE)
    path = parts_of(folder)[name]
    content = path.read_bytes()
    for damage, fault in (
        (content[:-1], f"has {len(content) - 1} bytes instead of {len(content)}"),
        (content[:-1] + bytes([content[-1] ^ 1]), "has changed since it was written"),
        (None, "is missing"),
    ):
        path.unlink() if damage is None else path.write_bytes(damage)
        with pytest.raises(CannotResume, match=fault) as caught:
            read_checkpoint(folder, ())
        assert str(path) in str(caught.value)
        assert f"delete {folder}" in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"nonsense", b"[]", b'{"form": 1}', b'{"form": 1, "parts": {}}', b"\xff"])
def test_a_damaged_manifest_is_named(tmp_path, content):
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(CannotResume, match=r"manifest.json is not a manifest"):
        read_checkpoint(tmp_path, ())


def test_a_checkpoint_of_another_form_is_refused(tmp_path):
    write_checkpoint(tmp_path / "checkpoint", STATE)
    path = tmp_path / "checkpoint" / "manifest.json"
    path.write_text(path.read_text().replace('"form": 1', '"form": 2'))
    with pytest.raises(CannotResume, match="has form 2, and this version reads form 1"):
        read_checkpoint(tmp_path / "checkpoint", ())


def test_whoever_may_read_the_folder_may_read_every_part(tmp_path):
    folder = tmp_path / "checkpoint"
    write_checkpoint(folder, STATE)
    (tmp_path / "a file").touch()
    modes = {path.stat().st_mode for path in folder.iterdir()}
    assert modes == {(tmp_path / "a file").stat().st_mode}


def test_a_full_disk_is_an_os_error_and_leaves_the_checkpoint_before(tmp_path):
    folder = tmp_path / "checkpoint"
    write_checkpoint(folder, STATE)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
        with pytest.raises(OSError, match="File too large"):
            write_checkpoint(folder, {"weights": torch.arange(10_000.0), "num_readings": 4})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert read_checkpoint(folder, ())["num_readings"] == 3


def test_a_strange_folder_in_a_checkpoint_does_not_end_the_run(tmp_path):
    folder = tmp_path / "checkpoint"
    (folder / "not ours").mkdir(parents=True)
    write_checkpoint(folder, STATE)
    assert read_checkpoint(folder, ())["num_readings"] == 3


@pytest.mark.parametrize("content", [b"", b"garbage", b"PK\x03\x04 cut off"])
def test_a_damaged_checkpoint_of_an_earlier_version_is_named(tmp_path, content):
    path = tmp_path / "checkpoint.pt"
    path.write_bytes(content)
    with pytest.raises(CannotResume, match=f"{path} is not a checkpoint .* delete {path} to train"):
        read_old_checkpoint(path, tiny_recipe())


def test_every_weight_of_a_run_is_written_once(tmp_path):
    recipe = tiny_recipe(
        off_policy={"type": "pipeline", "k": 3},
        kl={"coefficient": 0.01},
        loss={"type": "grpo", "max_weight": 4.0},
        epochs=2,
    )
    policy = random_policy(recipe)
    cluster = make_cluster(recipe, policy)
    folder = tmp_path / "checkpoint"
    write_checkpoint(folder, cluster.state_dict())
    num_weights = sum(tensor.numel() for tensor in policy.exported_weights().values())
    # Learner, generators, reference and the start of the round: all the same before the first step.
    tensors = load_file(parts_of(folder)["tensors"])
    assert sum(tensor.numel() for tensor in tensors.values() if tensor.dtype == torch.float32) == num_weights
    for _ in range(3):
        SCHEDULES["pipeline"](cluster)
    write_checkpoint(folder, cluster.state_dict())
    state = read_checkpoint(folder, cluster.task.train)
    different = {
        json.dumps(weights["model.embed_tokens.weight"].tolist())
        for weights in (
            *(state["learner"][name] for name in ("policy", "reference", "start")),
            state["generator"]["weights"],
            *(weights for _, _, weights in state["pushes"]),
        )
    }
    written = [name for name in load_file(parts_of(folder)["tensors"]) if name.endswith("/model.embed_tokens.weight")]
    assert len(written) == len(different)
