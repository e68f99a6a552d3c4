"""Trees of dataclasses and arrays: back equal to the bit, and nothing else than what was asked for."""

import json
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

from ablations.files.trees import NotATree, tree_bytes, tree_from_bytes


class Point(NamedTuple):
    x: float
    y: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Leaf:
    name: str
    numbers: np.ndarray
    end: float | None
    point: Point


@dataclass(frozen=True, kw_only=True)
class Tree:
    leaves: tuple[Leaf, ...]
    weights: dict[str, float]
    rows: slice
    law: object


LAW = object()
CLASSES = (Tree, Leaf, Point)


def tree() -> Tree:
    awkward = np.array([0.1, 1 / 3, -0.0, math.inf, 5e-324])
    leaf = Leaf(
        name="ä\n", numbers=awkward, end=math.inf, point=Point(np.float64(0.1) + 0.2, np.arange(3, dtype=np.int32))
    )
    other = Leaf(name="", numbers=np.zeros((0, 2)), end=None, point=Point(1e-308, np.array([True, False])))
    return Tree(leaves=(leaf, other), weights={"b": 1 / 7, "a": 2.0}, rows=slice(3, None), law=LAW)


def test_everything_comes_back_to_the_bit():
    found = tree_from_bytes(tree_bytes(tree(), named={"law": LAW}), classes=CLASSES, named={"law": LAW})
    assert isinstance(found, Tree)
    assert found.law is LAW
    assert (list(found.weights.items()), found.rows) == ([("b", 1 / 7), ("a", 2.0)], slice(3, None))
    for ours, theirs in zip(tree().leaves, found.leaves, strict=True):
        assert (theirs.name, theirs.end, theirs.point.x) == (ours.name, ours.end, ours.point.x)
        for mine, its in ((ours.numbers, theirs.numbers), (ours.point.y, theirs.point.y)):
            assert (its.dtype, its.shape, its.tobytes()) == (mine.dtype, mine.shape, mine.tobytes())


def test_pickled_objects_are_refused(tmp_path):
    path = tmp_path / "tree.npz"
    tree = np.array(json.dumps({"array": ["<f8", [1], "C", 0]}))
    held: dict[str, Any] = {"tree": tree, "numbers": np.array([object()], dtype=object)}
    np.savez(path, **held)
    with pytest.raises(NotATree, match="allow_pickle"):
        tree_from_bytes(path.read_bytes(), classes=())
    for value, said in ((np.array([object()], dtype=object), "object"), ({"a": {1, 2}}, "set")):
        with pytest.raises(TypeError, match=said):
            tree_bytes(value)


@pytest.mark.parametrize(
    ("place", "said"),
    [
        (["<f8", [2], "C", 8], "bytes 8 to 24 of 16"),
        (["<f8", [1], "C", -8], "bytes -8 to 0 of 16"),
        (["<f8", [-1], "C", 8], "bytes 8 to 0 of 16"),
        (["|O", [1], "C", 0], "cannot read an array of |O"),
        (["<f8", [1], "K", 0], "order"),
    ],
)
def test_an_array_that_lies_outside_or_is_no_numbers_is_refused(tmp_path, place, said):
    path = tmp_path / "tree.npz"
    np.savez(path, tree=np.array(json.dumps({"array": place})), numbers=np.zeros(16, dtype=np.uint8))
    with pytest.raises(NotATree, match=said):
        tree_from_bytes(path.read_bytes(), classes=())


def test_arrays_keep_their_order_in_memory_on_which_sums_hang_to_the_last_bit():
    rows = np.arange(12.0).reshape(3, 4)
    content = tree_bytes((rows, np.asfortranarray(rows), rows[:, ::2], np.array(5), rows[:0]))
    c, fortran, every_other, scalar, empty = tree_from_bytes(content, classes=())
    assert (c.flags.c_contiguous, fortran.flags.f_contiguous, fortran.flags.c_contiguous) == (True, True, False)
    for found, expected in ((c, rows), (fortran, rows), (every_other, rows[:, ::2])):
        np.testing.assert_array_equal(found, expected)
    assert (scalar.shape, int(scalar), empty.shape) == ((), 5, (0, 4))


@pytest.mark.parametrize("where", [0.3, 0.95])
def test_a_file_that_is_cut_short_or_damaged_is_no_tree(where):
    whole = tree_bytes(tree(), named={"law": LAW})
    with pytest.raises(NotATree, match="Leaf"):  # nor is another class made
        tree_from_bytes(whole, classes=(Tree, Point), named={"law": LAW})
    for damaged in (whole[: int(where * len(whole))], b"\0" * len(whole)):
        with pytest.raises(NotATree):
            tree_from_bytes(damaged, classes=CLASSES, named={"law": LAW})
