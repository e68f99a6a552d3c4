"""A checkpoint: whole or the one before, weights once, and a damaged part is named."""

import hashlib
import json
import os
import resource
import signal

import pytest
import torch
from safetensors.torch import load_file, save_file
from trainer.tiny import make_cluster, random_policy, tiny_recipe

from scalerl.durable import part_of_rank, write_part
from scalerl.errors import CannotResume
from scalerl.run import checkpoint
from scalerl.run.checkpoint import read_checkpoint, write_checkpoint
from scalerl.run.run_log import EMPTY_LOG, LogMark
from scalerl.run.sealed_json import seal
from scalerl.schedules import SCHEDULES


def parts_of(folder, manifest="manifest.json"):
    """Files by name of their part."""
    content = json.loads((folder / manifest).read_text())
    return {name: folder / part["file"] for name, part in content["parts"].items()}


def write(folder, number=3, before=None):
    """A checkpoint that says its number; each has other weights."""
    return write_checkpoint(folder, {"weights": torch.arange(6.0) + number, "num_readings": number}, EMPTY_LOG, before)


def read(folder):
    """The newest whole checkpoint, of a run without a log."""
    return read_checkpoint(folder, folder / "no log", ())


def number_in(folder):
    found = read(folder)
    assert found is not None
    return found.state["num_readings"]


def test_a_folder_has_two_manifests_and_the_parts_that_they_name(tmp_path):
    folder, last = tmp_path / "checkpoint", None
    assert read(folder) is None
    for number in range(4):
        last = write(folder, number, last)
    assert {path.name for path in folder.iterdir()} == {
        *("manifest.json", "previous.json"),
        *(path.name for path in parts_of(folder).values()),
        *(path.name for path in parts_of(folder, "previous.json").values()),
    }
    assert number_in(folder) == 3
    (folder / "manifest.json").unlink()
    assert number_in(folder) == 2


@pytest.mark.parametrize("call", ["fsync", "replace", "save_file"])
def test_a_write_that_fails_leaves_the_last_checkpoint_and_the_next_cleans_up(tmp_path, monkeypatch, call):
    folder = tmp_path / "checkpoint"
    last = write(folder, 3)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*{"save_file": (checkpoint.safetensors.torch, call)}.get(call, (os, call)), full)
    with pytest.raises(OSError, match="No space left"):
        write(folder, 4, last)
    monkeypatch.undo()
    assert number_in(folder) == 3
    (folder / ".tensors.4242.tmp").write_bytes(b"of a killed process")
    write(folder, 5)
    assert len(list(folder.iterdir())) == 4
    assert number_in(folder) == 5


DAMAGES = {
    "one bit": lambda content: (
        content[: len(content) // 2] + bytes([content[len(content) // 2] ^ 1]) + content[len(content) // 2 + 1 :]
    ),
    "truncated": lambda content: content[:-1],
    "emptied": lambda _: b"",
    "deleted": lambda _: None,
}


def damage(path, how):
    content = DAMAGES[how](path.read_bytes())
    path.unlink() if content is None else path.write_bytes(content)


@pytest.mark.parametrize("how", list(DAMAGES))
@pytest.mark.parametrize("name", ["manifest", "state", "tensors"])
def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(tmp_path, name, how):
    folder = tmp_path / "checkpoint"
    last = write(folder, 4, write(folder, 3))
    path = folder / "manifest.json" if name == "manifest" else parts_of(folder)[name]
    damage(path, how)
    found = read(folder)
    assert found is not None
    assert found.state["num_readings"] == 3
    (fault,) = found.faults
    assert fault.startswith(str(path))
    assert found.manifest != last
    # The next checkpoint keeps the one that was used, never the damaged one.
    write(folder, 5, found.manifest)
    assert number_in(folder) == 5
    (folder / "manifest.json").unlink()
    assert number_in(folder) == 3


def test_two_damaged_checkpoints_are_both_named_with_the_command_that_starts_again(tmp_path):
    folder = tmp_path / "checkpoint"
    write(folder, 4, write(folder, 3))
    paths = [parts_of(folder)["tensors"], parts_of(folder, "previous.json")["tensors"]]
    for path in paths:
        damage(path, "truncated")
    with pytest.raises(CannotResume, match=f"`rm -r {folder}`") as caught:
        read(folder)
    assert all(str(path) in str(caught.value) for path in paths)


def test_parts_without_a_manifest_are_damage(tmp_path):
    folder = tmp_path / "checkpoint"
    write(folder)
    (folder / "manifest.json").unlink()
    with pytest.raises(CannotResume, match=r"manifest\.json is missing\. The run cannot resume"):
        read(folder)


@pytest.mark.parametrize(
    "content",
    [b"", b"nonsense", b"[]", b"{}", b'{"form": 5, "parts": {}}', seal({"form": 5, "parts": {}}), b"\xff"],
)
def test_a_damaged_manifest_is_named(tmp_path, content):
    (tmp_path / "manifest.json").write_bytes(content)
    with pytest.raises(CannotResume, match=r"manifest.json is damaged"):
        read(tmp_path)


@pytest.mark.parametrize(
    "content", [json.dumps({"form": 1, "parts": {}}).encode(), seal({"form": 3}), seal({"form": 9})]
)
def test_a_checkpoint_of_another_form_is_refused_in_words_and_the_one_before_is_not_used(tmp_path, content):
    folder = tmp_path / "checkpoint"
    write(folder, 4, write(folder, 3))
    (folder / "manifest.json").write_bytes(content)
    form = json.loads(content)["form"]
    with pytest.raises(CannotResume) as caught:
        read_checkpoint(folder, folder / "no log", (), ("5b233c1", "413bb1f"))
    assert str(caught.value) == (
        f"{folder} has format {form}, written by code version 5b233c1 or 413bb1f; this version resumes only format 5. "
        "The run cannot resume, but it can still be compared. To train it further, use the code that wrote the "
        "checkpoint, or retrain the run from its start: delete the checkpoint with "
        f"`rm -r {folder}`, then repeat the command (`platform sweep` or `platform train`)"
    )


# --- files of a learner's ranks -------------------------------------------------------------------------------------


def write_of_ranks(folder, number, before=None, *, ranks=2, dies=None):
    """A checkpoint of a learner on so many ranks, of which one may die before it has written."""

    def write_kept(place):
        parts = []
        for rank in range(ranks):
            if rank == dies:
                raise RuntimeError(f"rank {rank} died")
            values = {"values": torch.full((4,), 10.0 * number + rank)}
            name = part_of_rank(rank, ranks)
            parts.append(write_part(place, name, ".safetensors", lambda path, values=values: save_file(values, path)))
        return parts

    return write_checkpoint(folder, {"num_readings": number}, EMPTY_LOG, before, write_kept)


def names_in(folder):
    return {path.name for path in folder.iterdir()}


def names_of_both(folder):
    """Of the manifests and of all files that they name."""
    named = [*parts_of(folder).values(), *parts_of(folder, "previous.json").values()]
    return {"manifest.json", "previous.json", *(path.name for path in named)}


def kept_in(found):
    return [float(load_file(path)["values"][0]) for path in found.kept]


def test_ranks_files_belong_to_their_checkpoint_and_go_with_it(tmp_path):
    folder, last = tmp_path / "checkpoint", None
    for number, ranks in enumerate((2, 2, 3, 1)):
        last = write_of_ranks(folder, number, last, ranks=ranks)
    assert names_in(folder) == names_of_both(folder)
    assert len([path for path in folder.iterdir() if path.name.startswith("rank-")]) == 4
    found = read(folder)
    assert (found.state["num_readings"], kept_in(found)) == (3, [30.0])
    (folder / "manifest.json").unlink()
    found = read(folder)
    assert (found.state["num_readings"], kept_in(found)) == (2, [20.0, 21.0, 22.0])


@pytest.mark.parametrize("how", ["one bit", "deleted"])
def test_a_torn_or_missing_file_of_a_rank_is_named_and_the_checkpoint_before_is_used(tmp_path, how):
    folder = tmp_path / "checkpoint"
    write_of_ranks(folder, 4, write_of_ranks(folder, 3))
    path = parts_of(folder)["rank-1-of-2"]
    damage(path, how)
    found = read(folder)
    assert (found.state["num_readings"], kept_in(found)) == (3, [30.0, 31.0])
    (fault,) = found.faults
    assert fault.startswith(str(path))


@pytest.mark.parametrize("lost", ["rank-1-of-2", "tensors"])
def test_a_manifest_without_a_part_or_the_file_of_a_rank_is_damaged(tmp_path, lost):
    folder = tmp_path / "checkpoint"
    write_of_ranks(folder, 4, write_of_ranks(folder, 3))
    content = json.loads((folder / "manifest.json").read_text())
    parts = {name: part for name, part in content["parts"].items() if name != lost}
    (folder / "manifest.json").write_bytes(seal({"form": 5, "log": content["log"], "parts": parts}))
    found = read(folder)
    assert (found.state["num_readings"], kept_in(found)) == (3, [30.0, 31.0])
    assert "manifest.json is damaged" in found.faults[0]


def test_a_rank_that_dies_while_it_writes_leaves_the_last_checkpoint_and_the_next_cleans_up(tmp_path):
    folder = tmp_path / "checkpoint"
    with pytest.raises(RuntimeError, match="rank 1 died"):
        write_of_ranks(folder, 2, dies=1)
    assert list(tmp_path.iterdir()) == []
    last = write_of_ranks(folder, 3)
    with pytest.raises(RuntimeError, match="rank 1 died"):
        write_of_ranks(folder, 4, last, dies=1)
    (folder / ".rank-1-of-2.4242.tmp").write_bytes(b"of a killed rank")
    found = read(folder)
    assert (found.state["num_readings"], kept_in(found), found.faults) == (3, [30.0, 31.0], ())
    write_of_ranks(folder, 5, last)
    assert names_in(folder) == names_of_both(folder)
    assert len([name for name in names_in(folder) if name.startswith("rank-")]) == 4


def test_a_checkpoint_whose_log_has_changed_gives_way_to_the_one_before(tmp_path):
    folder, log = tmp_path / "checkpoint", tmp_path / "metrics.jsonl"
    marks = [LogMark(bytes=len(text), sha256=hashlib.sha256(text).hexdigest()) for text in (b"one\n", b"one\ntwo\n")]
    first = write_checkpoint(folder, {"num_readings": 1}, marks[0])
    write_checkpoint(folder, {"num_readings": 2}, marks[1], first)
    for content, number in ((b"one\ntwo\nthree", 2), (b"one\nTwo\n", 1), (b"one\n", 1)):
        log.write_bytes(content)
        found = read_checkpoint(folder, log, ())
        assert found is not None
        assert found.state["num_readings"] == number
        assert (found.manifest.log, len(found.faults)) == (marks[number - 1], 2 - number)
    log.write_bytes(b"One\ntwo\n")
    with pytest.raises(CannotResume, match=f"{log} has changed since it was written"):
        read_checkpoint(folder, log, ())


def test_whoever_may_read_the_folder_may_read_every_part(tmp_path):
    folder = tmp_path / "checkpoint"
    write(folder)
    (tmp_path / "a file").touch()
    modes = {path.stat().st_mode for path in folder.iterdir()}
    assert modes == {(tmp_path / "a file").stat().st_mode}


def test_a_full_disk_is_an_os_error_and_leaves_the_checkpoint_before(tmp_path):
    folder = tmp_path / "checkpoint"
    write(folder)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
        with pytest.raises(OSError, match="File too large"):
            write_checkpoint(folder, {"weights": torch.arange(10_000.0), "num_readings": 4}, EMPTY_LOG)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert number_in(folder) == 3


def test_every_weight_of_a_run_is_written_once(tmp_path):
    recipe = tiny_recipe(
        off_policy={"type": "pipeline", "k": 3},
        kl={"coefficient": 0.01},
    )
    policy = random_policy(recipe)
    cluster = make_cluster(recipe, policy)
    folder = tmp_path / "checkpoint"
    write_checkpoint(folder, cluster.state_dict(), EMPTY_LOG)
    num_weights = sum(tensor.numel() for tensor in policy.exported_weights().values())
    # Learner and generators are the same before the first step; the reference is in the folder of the run's start.
    tensors = load_file(parts_of(folder)["tensors"])
    assert sum(tensor.numel() for tensor in tensors.values() if tensor.dtype == torch.float32) == num_weights
    for _ in range(3):
        SCHEDULES["pipeline"](cluster)
    write_checkpoint(folder, cluster.state_dict(), EMPTY_LOG)
    found = read_checkpoint(folder, folder / "no log", cluster.task.train)
    assert found is not None
    state = found.state
    different = {
        json.dumps(weights["model.embed_tokens.weight"].tolist())
        for weights in (
            state["learner"]["policy"],
            state["generator"]["weights"],
            *(weights for _, _, weights in state["pushes"]),
        )
    }
    written = [name for name in load_file(parts_of(folder)["tensors"]) if name.endswith("/model.embed_tokens.weight")]
    assert len(written) == len(different)
