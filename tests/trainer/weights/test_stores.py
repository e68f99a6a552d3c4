"""Stores of weights: what is published is what is fetched, and whatever is damaged is refused by name."""

import json
import multiprocessing
from collections import UserDict

import pytest
import safetensors.torch
import torch

from scalerl.weights.folder import FolderStore
from scalerl.weights.shared_memory import SharedMemoryStore
from scalerl.weights.store import UnusablePublication, layer_group, names_of_rank

NAMES = ("model.embed_tokens.weight", "model.layers.0.mlp.weight", "model.layers.1.mlp.weight", "model.norm.weight")


def weights_of(seed):
    """Four tensors of three types, one of them without axes."""
    draw = torch.Generator().manual_seed(seed)
    embed, first, second, norm = NAMES
    return {
        embed: torch.randn(5, 3, generator=draw),
        first: torch.randn(7, generator=draw).bfloat16(),
        second: torch.randn(7, generator=draw).bfloat16(),
        norm: torch.randn((), generator=draw, dtype=torch.float64),
    }


def part(weights, rank, ranks):
    return {name: weights[name] for name in names_of_rank(weights, rank, ranks)}


@pytest.fixture(params=["folder", "shared memory"])
def store(request, tmp_path):
    made = FolderStore(tmp_path / "weights", weights_of(0)) if request.param == "folder" else None
    made = made or SharedMemoryStore(weights_of(0))
    yield made
    made.close()


@pytest.fixture
def folder(tmp_path):
    return FolderStore(tmp_path / "weights", weights_of(0))


def assert_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert (found[name].dtype, found[name].shape) == (tensor.dtype, tensor.shape)
        assert torch.equal(found[name], tensor)


# --- what every store does --------------------------------------------------------------------------------------------


def test_a_publication_leaves_the_one_before_as_it_is_and_keeps_types_and_shapes(store):
    for publication, version in ((4, 40), (5, 41)):
        store.publish(publication, version, weights_of(version))
    for publication, version in ((4, 40), (5, 41)):
        assert_equal(store.fetch(publication, version), weights_of(version))


@pytest.mark.parametrize("ranks", [2, 5])
def test_ranks_publish_their_shares_and_what_lacks_one_is_torn(store, ranks):
    weights = weights_of(1)
    for rank in reversed(range(ranks)):  # in any order: no rank waits for another
        if part(weights, rank, ranks):
            with pytest.raises(UnusablePublication, match=r"publication 1 is|publication 1 cannot"):
                store.fetch(1, 9)
        store.publish(1, 9, part(weights, rank, ranks), rank=rank, ranks=ranks)
    assert_equal(store.fetch(1, 9), weights)


def test_a_late_reader_is_told_that_a_publication_is_gone_and_gets_the_newest(store):
    for publication in range(1, 6):
        store.publish(publication, publication + 10, weights_of(publication))
    with pytest.raises(
        UnusablePublication, match=r"publication 3 is (gone: overwritten by publication 5|not in .*has 4, 5)"
    ):
        store.fetch(3, 13)
    assert_equal(store.fetch(5, 15), weights_of(5))


def test_another_version_than_announced_is_refused(store):
    store.publish(1, 6, weights_of(1))
    with pytest.raises(UnusablePublication, match=r"^publication 1 holds version 6 of the weights, not 7$"):
        store.fetch(1, 7)


@pytest.mark.parametrize(("name", "value"), [(NAMES[1], float("nan")), (NAMES[3], -float("inf"))])
def test_what_is_not_finite_is_refused_by_name(store, name, value):
    weights = weights_of(1)
    weights[name].view(-1)[-1] = value
    store.publish(1, 1, weights)
    with pytest.raises(UnusablePublication, match=f"publication 1 has NaN or infinite values in {name};"):
        store.fetch(1, 1)


def test_weights_may_be_gathered_as_they_are_asked_for(store):
    asked = []

    class Gathered(UserDict):
        """Says which tensors were asked for, in which order."""

        def __getitem__(self, name):
            asked.append(name)
            return super().__getitem__(name)

    store.publish(1, 1, Gathered(weights_of(1)))
    assert asked == list(NAMES)  # once, in order


def publish_elsewhere(store):
    store.publish(3, 30, weights_of(3))


def test_another_process_that_was_started_with_the_store_publishes_to_the_same(store):
    process = multiprocessing.get_context("spawn").Process(target=publish_elsewhere, args=(store,))
    process.start()
    process.join(250)
    assert process.exitcode == 0
    assert_equal(store.fetch(3, 30), weights_of(3))


# --- damage to a folder -----------------------------------------------------------------------------------------------


def rewrite(path, weights):
    """Other tensors in place of those that were published, with a manifest that fits their size, not their content."""
    content = safetensors.torch.save(weights)
    path.write_bytes(content)
    manifest = path.with_suffix(".json")
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"bytes": len(content)}))


def cut_off(path):
    path.write_bytes(path.read_bytes()[:-8])


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def flip_a_bit_of_the_header(path):
    content = bytearray(path.read_bytes())
    content[9] ^= 1
    path.write_bytes(content)


def other_shape(path):
    weights = weights_of(1)
    rewrite(path, weights | {NAMES[0]: weights[NAMES[0]].T.contiguous()})


def other_type(path):
    weights = weights_of(1)
    rewrite(path, weights | {NAMES[1]: weights[NAMES[1]].half()})


def tensor_missing(path):
    weights = weights_of(1)
    del weights[NAMES[2]]
    rewrite(path, weights)


def tensor_unknown(path):
    rewrite(path, weights_of(1) | {"model.other": torch.zeros(1)})


def cut_off_manifest(path):
    manifest = path.with_suffix(".json")
    manifest.write_bytes(manifest.read_bytes()[:-9])


def no_manifest(path):
    path.with_suffix(".json").unlink()


DAMAGE = {
    cut_off: r"0-of-1\.safetensors of publication 1 has \d+ bytes instead of \d+",
    flip_a_bit: f"publication 1 are damaged .*: {NAMES[2]}$",
    flip_a_bit_of_the_header: "cannot read publication 1 in .*",
    other_shape: rf"tensors do not fit this model: of another shape: {NAMES[0]} \(\[3, 5\] instead of \[5, 3\]\)",
    other_type: rf"publication 1 are of another type: {NAMES[1]} \(torch.float16 instead of torch.bfloat16\)",
    tensor_missing: f"tensors do not fit this model: missing: {NAMES[2]}$",
    tensor_unknown: "tensors do not fit this model: unexpected: model.other$",
    cut_off_manifest: "cannot read publication 1 in .*: JSONDecodeError",
    no_manifest: r"publication 1 is incomplete: .* lacks 0-of-1\.json",
}


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_every_damage_to_a_folder_is_refused_and_named(folder, damage):
    folder.publish(1, 1, weights_of(1))
    assert_equal(folder.fetch(1, 1), weights_of(1))
    damage(folder.folder / "1" / "0-of-1.safetensors")
    with pytest.raises(UnusablePublication, match=DAMAGE[damage]):
        folder.fetch(1, 1)
    folder.publish(2, 1, weights_of(1))
    assert_equal(folder.fetch(2, 1), weights_of(1))


def test_a_share_of_another_version_than_the_rest_is_refused(folder):
    weights = weights_of(1)
    folder.publish(1, 1, part(weights, 0, 2), rank=0, ranks=2)
    folder.publish(1, 2, part(weights, 1, 2), rank=1, ranks=2)
    with pytest.raises(UnusablePublication, match=r"^publication 1 holds version 2 of the weights, not 1$"):
        folder.fetch(1, 1)


def test_a_folder_keeps_two_publications_and_none_of_an_earlier_attempt(folder):
    for publication in range(1, 8):
        folder.publish(publication, publication, weights_of(publication))
        numbers = sorted(int(path.name) for path in folder.folder.iterdir())
        assert numbers == [number for number in (publication - 1, publication) if number]
    again = FolderStore(folder.folder, weights_of(0))
    with pytest.raises(UnusablePublication, match=r"publication 7 is not in .*, which has none"):
        again.fetch(7, 7)


# --- damage to shared memory ------------------------------------------------------------------------------------------


def test_a_publication_that_a_rank_left_half_written_is_refused_by_name():
    class Torn(UserDict):
        """The rank dies after the second tensor."""

        def __getitem__(self, name):
            if name not in NAMES[:2]:
                raise KeyboardInterrupt
            return super().__getitem__(name)

    shared = SharedMemoryStore(weights_of(0))
    shared.publish(1, 1, weights_of(1))
    shared.publish(2, 2, weights_of(2))
    with pytest.raises(KeyboardInterrupt):
        shared.publish(3, 3, Torn(weights_of(3)))
    with pytest.raises(UnusablePublication, match=f"publication 3 is incomplete: it lacks {NAMES[2]}, {NAMES[3]}$"):
        shared.fetch(3, 3)
    assert_equal(shared.fetch(2, 2), weights_of(2))


def test_bytes_that_change_after_they_were_sealed_are_noticed():
    shared = SharedMemoryStore(weights_of(0))
    shared.publish(1, 1, weights_of(1))
    shared.fetch(1, 1)[NAMES[2]][3] += 1
    with pytest.raises(UnusablePublication, match=f"publication 1 are damaged .*: {NAMES[2]}$"):
        shared.fetch(1, 1)


# --- layer groups -----------------------------------------------------------------------------------------------------


def test_every_tensor_belongs_to_one_rank_and_a_layer_is_never_split():
    names = ["model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"]
    names += [f"model.layers.{layer}.{part}.weight" for layer in range(7) for part in ("q_proj", "mlp.up_proj")]
    assert [layer_group(name) for name in names] == [0, 0, 0] + [1 + layer for layer in range(7) for _ in range(2)]
    for ranks in (1, 2, 3, 16):
        shares = [names_of_rank(names, rank, ranks) for rank in range(ranks)]
        assert sorted(name for each in shares for name in each) == sorted(names)
        for rank, each in enumerate(shares):
            assert {layer_group(name) % ranks for name in each} <= {rank}
    assert names_of_rank(names, 1, 2) == [
        name for name in names if ".layers." in name and int(name.split(".")[2]) % 2 == 0
    ]
