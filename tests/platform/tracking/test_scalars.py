"""A run-log row as flat numbers."""

from ablations.tracking.scalars import row_scalars


def test_a_row_gives_numbers_only_and_a_histogram_its_mean():
    row = {
        "kind": "train",
        "step": 3,
        "wall_s": 1.5,
        "loss": -0.5,
        "prompt_counts": "8:8705",
        "skipped": True,
        "grad_norm": None,
        "staleness": {"0": 1, "4": 3},
    }
    assert row_scalars(row) == {
        "loss": -0.5,
        "skipped": 1.0,
        "staleness_mean": 3.0,
        "staleness_max": 4.0,
    }


def test_numbers_under_names_are_numbers_of_their_own():
    row = {"outcomes": {"right": 3, "timed_out": 1}, "pass_at": {"1": 0.5}}
    assert row_scalars(row) == {
        "outcomes_right": 3.0,
        "outcomes_timed_out": 1.0,
        "pass_at_mean": 1.0,
        "pass_at_max": 1.0,
    }


def test_device_seconds_have_names_by_role_and_activity():
    row = {"device_s": {"generator": {"decode": 3.0, "sync": 1.0}, "trainer": {}}, "mfu": None, "tokens_per_s": 7.0}
    assert row_scalars(row) == {"device_s_generator_decode": 3.0, "device_s_generator_sync": 1.0, "tokens_per_s": 7.0}
