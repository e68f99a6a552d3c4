"""Where the hours of a variant went: by hand, from rows of run logs."""

from dataclasses import replace

import pytest

from ablations.readings.hours import Hours, hours_cells

ONE = Hours(
    device_s={"generator": {"decode": 6.0, "sync": 2.0}, "trainer": {"forward_backward": 1.0, "sync": 1.0}},
    tokens_per_s=100.0,
    mfu={"generator": 0.1, "trainer": 0.2},
)
TWO = Hours(
    device_s={"generator": {"decode": 20.0, "dead": 4.0}, "trainer": {"forward_backward": 6.0}},
    tokens_per_s=200.0,
    mfu={"generator": 0.5, "trainer": 0.6},
)


NO_WASTE = {"no_signal": 0.0, "truncated": 0.0, "masked": 0.0, "no_verdict": 0.0}


def test_the_last_step_says_what_was_spent():
    rows = [
        {"kind": "train", "compute_gpu_hours": 1.0, "device_s": {}, "tokens_per_s": 1.0, "mfu": None},
        {"kind": "train", "compute_gpu_hours": 4.0, **ONE.to_json()},
        {"kind": "eval", "pass_rate": 0.5},
    ]
    assert Hours.of_rows(rows) == replace(ONE, compute=4.0, wasted=NO_WASTE)


def test_a_step_counts_by_the_compute_that_it_spent():
    answers = {"right": 6, "wrong": 1, "timed_out": 2, "crashed": 1}
    first = {"zero_variance": 0.5, "truncated": 0.2, "corrected_below": 0.1, "corrected_above": 0.05}
    rows = [
        {"kind": "train", "compute_gpu_hours": 1.0, **ONE.to_json(), **first, "outcomes": answers},
        {"kind": "train", "compute_gpu_hours": 4.0, **ONE.to_json(), "zero_variance": 0.1, "truncated": None},
    ]
    found = Hours.of_rows(rows, masks=True)
    assert found is not None
    # 1 and 3 hours: (.5 + 3 x .1) / 4, .2 / 4, .15 / 4, .3 / 4
    assert found.wasted == pytest.approx({"no_signal": 0.2, "truncated": 0.05, "masked": 0.0375, "no_verdict": 0.075})
    assert found.to_json()["wasted"]["no_signal"] == pytest.approx({"share": 0.2, "compute": 0.8})
    truncating = Hours.of_rows(rows)  # a correction that truncates leaves no token out
    assert truncating is not None
    assert truncating.wasted["masked"] == 0.0
    both = Hours.of_runs([found, replace(ONE, compute=12.0, wasted=NO_WASTE)])
    assert both is not None
    assert both.wasted == pytest.approx({name: share / 4 for name, share in found.wasted.items()})
    (cells,) = hours_cells({"a": truncating})
    assert [cells.get(name) for name in ("no signal", "truncated", "masked", "not judged")] == [
        "20.0%", "5.0%", None, "7.5%",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "rows", [[], [{"kind": "eval"}], [{"kind": "train", "compute_gpu_hours": 1.0, "generator_idle": 0.5}]]
)
def test_a_log_that_does_not_say_has_none(rows):
    assert Hours.of_rows(rows) is None


def test_several_runs_count_by_their_device_time():
    both = Hours.of_runs([ONE, TWO])  # 10 and 30 device-seconds
    assert both is not None
    assert both.device_s == {
        "generator": {"decode": 26.0, "sync": 2.0, "dead": 4.0},
        "trainer": {"forward_backward": 7.0, "sync": 1.0},
    }
    assert both.tokens_per_s == pytest.approx(0.25 * 100 + 0.75 * 200)
    assert both.mfu == pytest.approx({"generator": 0.25 * 0.1 + 0.75 * 0.5, "trainer": 0.25 * 0.2 + 0.75 * 0.6})
    assert Hours.of_runs([]) is None
