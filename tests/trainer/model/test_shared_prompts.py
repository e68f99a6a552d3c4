"""Rows that read one copy of a prompt, and when they stop."""

import numpy as np

from scalerl.model.shared_prompts import SharedPrompts


def of(shared, *position):
    """Source and number of shared positions of each row."""
    source, length = shared.sources(np.array(position))
    return [(int(one), int(size)) if size else None for one, size in zip(source, length, strict=True)]


def two_prompts():
    shared = SharedPrompts(8)
    shared.cached(np.array([0, 1, 2, 4]), np.array([0, 0, 1, 1]), np.array([5, 5, 3, 3]))
    return shared


def test_rows_of_a_prompt_read_the_first_of_them():
    assert of(two_prompts(), 5, 6, 3, 9, 3) == [(0, 5), (0, 5), (2, 3), None, (2, 3)]


def test_a_row_with_a_new_prompt_is_no_longer_read_by_the_others():
    shared = two_prompts()
    shared.cached(np.array([0]), np.array([0]), np.array([5]))
    assert of(shared, 5, 6, 3, 9, 3) == [(0, 5), (1, 5), (2, 3), None, (2, 3)]


def test_a_row_that_starts_without_prefill_is_no_longer_read_by_the_others():
    shared = two_prompts()
    assert of(shared, 0, 6, 3, 9, 3) == [None, (1, 5), (2, 3), None, (2, 3)]
    assert of(shared, 6, 7, 4, 9, 4) == [None, (1, 5), (2, 3), None, (2, 3)]


def test_a_moved_row_keeps_its_prompt_and_only_active_rows_are_read():
    shared = two_prompts()
    shared.moved([2, 3], [1, 2])
    assert of(shared, 5, 5, 6, 4, 3) == [(0, 5), (0, 5), (0, 5), (3, 3), (3, 3)]
    shared.moved([0], [4])
    assert of(shared, 3, 5) == [(0, 3), (1, 5)]


def test_after_forgetting_no_row_reads_another():
    shared = two_prompts()
    shared.forget()
    assert of(shared, 5, 6, 3) == [None, None, None]
