"""A run-log row as flat numbers."""

import pytest

from ablations.tracking.scalars import row_scalars


@pytest.mark.parametrize(
    ("row", "numbers"),
    [
        (
            {"kind": "train", "step": 3, "wall_s": 1.5, "loss": -0.5, "prompt_counts": "8:87", "grad_norm": None},
            {"loss": -0.5},
        ),
        (
            {"skipped": True, "staleness": {"0": 1, "4": 3}},
            {"skipped": 1.0, "staleness_mean": 3.0, "staleness_max": 4.0},
        ),
        (
            {"outcomes": {"right": 3, "timed_out": 1}, "pass_at": {"1": 0.5}},
            {"outcomes_right": 3.0, "outcomes_timed_out": 1.0, "pass_at_mean": 1.0, "pass_at_max": 1.0},
        ),
        (
            {"device_s": {"generator": {"decode": 3.0, "sync": 1.0}, "trainer": {}}},
            {"device_s_generator_decode": 3.0, "device_s_generator_sync": 1.0},
        ),
    ],
)
def test_a_row_gives_numbers_only_and_a_histogram_its_mean(row, numbers):
    assert row_scalars(row) == numbers
