"""Keys and values of rows side by side, against the rows one by one."""

import numpy as np
import pytest
import torch

from scalerl.model.kernels.cache import as_numbers, copy_rows, move_rows, read_row, write_lanes, write_row
from scalerl.model.kernels.lanes import LANES, side_by_side, single_rows

ROWS, HEADS, POSITIONS, SIZE = 70, 3, 8, 6


def rows_of(dtype=torch.float32, seed=0):
    return torch.randn(ROWS, HEADS, 2, POSITIONS, SIZE, generator=torch.Generator().manual_seed(seed)).to(dtype)


def cache_of(rows):
    """The cache in lanes, and its numbers as kernels see them."""
    blocks = side_by_side(rows)
    return blocks, as_numbers(blocks)


@pytest.fixture(params=[torch.float32, torch.bfloat16])
def dtype(request):
    return request.param


def test_rows_come_back_as_they_were_and_the_rest_is_zero(dtype):
    rows = rows_of(dtype)
    blocks = side_by_side(rows)
    assert blocks.shape == (3, HEADS, 2, POSITIONS, 2, 128)
    found = single_rows(blocks, SIZE)
    assert torch.equal(found[:ROWS], rows)
    assert blocks.float().abs().sum() == pytest.approx(rows.float().abs().sum().item(), rel=1e-4)
    # Row 33 is the second lane of the second block, and number 5 the second of the second four.
    assert torch.equal(blocks[1, :, :, :, 1, 5], rows[33, :, :, :, 5])


def test_copies_are_those_of_the_first_positions(dtype):
    rows = rows_of(dtype)
    blocks, numbers = cache_of(rows)
    copy_rows(numbers, np.array([[2, 40, 5], [2, 3, 5], [66, 0, 1]]))
    for source, target, length in ((2, 40, 5), (2, 3, 5), (66, 0, 1)):
        rows[target, :, :, :length] = rows[source, :, :, :length]
    assert torch.equal(single_rows(blocks, SIZE)[:ROWS], rows)


def test_rows_move_together_also_where_one_takes_the_place_of_another(dtype):
    rows = rows_of(dtype)
    blocks, numbers = cache_of(rows)
    move_rows(numbers, np.array([0, 65, 40]), np.array([65, 0, 12]))
    rows[[0, 65, 40]] = rows[[65, 0, 12]]
    assert torch.equal(single_rows(blocks, SIZE)[:ROWS], rows)


def test_a_row_is_written_and_read_alone(dtype):
    rows = rows_of(dtype)
    blocks, numbers = cache_of(rows)
    fresh = torch.from_numpy(np.random.default_rng(1).normal(size=(2, SIZE)).astype(np.float32)).to(dtype)
    write_row(fresh.float().numpy(), numbers[1], 2, 3, 9)
    rows[LANES + 9, 2, :, 3] = fresh
    assert torch.equal(single_rows(blocks, SIZE)[:ROWS], rows)
    found = np.full((HEADS, 2, POSITIONS, SIZE), 7.0, np.float32)
    read_row(numbers[1], 9, 5, found)
    np.testing.assert_array_equal(found[:, :, :5], rows[LANES + 9, :, :, :5].float().numpy())
    assert (found[:, :, 5:] == 7).all()


def test_the_first_lanes_of_a_block_are_written_each_at_its_position(dtype):
    rows = rows_of(dtype)
    blocks, numbers = cache_of(rows)
    qkv = torch.randn(LANES, HEADS, 3, SIZE, generator=torch.Generator().manual_seed(2)).to(dtype)
    position = np.random.default_rng(3).integers(0, POSITIONS, LANES)
    write_lanes(np.ascontiguousarray(qkv.float().flatten(1).numpy().T), numbers[1], position, 20)
    for lane in range(20):
        rows[LANES + lane, :, :, position[lane]] = qkv[lane, :, 1:]
    assert torch.equal(single_rows(blocks, SIZE)[:ROWS], rows)
