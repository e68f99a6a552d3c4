"""Trees of dataclasses and arrays: back equal to the bit, and nothing else than what was asked for."""

import math
from dataclasses import dataclass
from typing import NamedTuple

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


def tree() -> Tree:
    awkward = np.array([0.1, 1 / 3, -0.0, math.inf, 5e-324])
    leaf = Leaf(
        name="ä\n", numbers=awkward, end=math.inf, point=Point(np.float64(0.1) + 0.2, np.arange(3, dtype=np.int32))
    )
    other = Leaf(name="", numbers=np.zeros((0, 2)), end=None, point=Point(1e-308, np.array([True, False])))
    return Tree(leaves=(leaf, other), weights={"b": 1 / 7, "a": 2.0}, rows=slice(3, None))


def test_everything_comes_back_to_the_bit():
    found = tree_from_bytes(tree_bytes(tree()), Tree)
    assert (list(found.weights.items()), found.rows) == ([("b", 1 / 7), ("a", 2.0)], slice(3, None))
    for ours, theirs in zip(tree().leaves, found.leaves, strict=True):
        assert (theirs.name, theirs.end, theirs.point.x) == (ours.name, ours.end, ours.point.x)
        for mine, its in ((ours.numbers, theirs.numbers), (ours.point.y, theirs.point.y)):
            assert (its.dtype, its.shape, its.tobytes()) == (mine.dtype, mine.shape, mine.tobytes())
            assert its.flags.writeable


@pytest.mark.parametrize(
    ("value", "said"), [(np.array([object()], dtype=object), "object"), ({"a": object()}, "object")]
)
def test_what_is_not_plain_is_not_saved(value, said):
    with pytest.raises(TypeError, match=said):
        tree_bytes(value)


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (["<f8", [3], "C", b"\0" * 16], "in 16 bytes"),
        (["<f8", [-1], "C", b"\0" * 16], "in 16 bytes"),
        (["|O", [1], "C", b"\0" * 16], "cannot read an array of"),
        (["<f8", [2], "K", b"\0" * 16], "order"),
        (["<f8", [1]], "unpack"),
        (3, "unpack"),
    ],
)
def test_an_array_that_is_none_of_numbers_is_refused(array, said):
    with pytest.raises(NotATree, match=said):
        tree_from_bytes(tree_bytes(array), np.ndarray)


def test_arrays_keep_their_order_in_memory_on_which_sums_hang_to_the_last_bit():
    rows = np.arange(12.0).reshape(3, 4)
    content = tree_bytes((rows, np.asfortranarray(rows), rows[:, ::2], np.array(5), rows[:0]))
    c, fortran, every_other, scalar, empty = tree_from_bytes(content, tuple[np.ndarray, ...])
    assert (c.flags.c_contiguous, fortran.flags.f_contiguous, fortran.flags.c_contiguous) == (True, True, False)
    for found, expected in ((c, rows), (fortran, rows), (every_other, rows[:, ::2])):
        np.testing.assert_array_equal(found, expected)
    assert (scalar.shape, int(scalar), empty.shape) == ((), 5, (0, 4))


def test_a_file_that_is_cut_short_damaged_or_of_another_type_is_no_tree():
    whole = tree_bytes(tree())
    for damaged in (
        whole[: int(0.3 * len(whole))],
        whole[: int(0.95 * len(whole))],
        b"\0" * len(whole),
        whole[:-1] + b"x",
    ):
        with pytest.raises(NotATree):
            tree_from_bytes(damaged, Tree)
    with pytest.raises(NotATree, match="missing required field"):
        tree_from_bytes(whole, Leaf)
