"""Where the hours of a variant went: by hand, from rows of run logs."""

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


def test_the_last_step_says_what_was_spent():
    rows = [
        {"kind": "train", "device_s": {}, "tokens_per_s": 1.0, "mfu": None},
        {"kind": "train", **ONE.to_json()},
        {"kind": "eval", "pass_rate": 0.5},
    ]
    assert Hours.of_rows(rows) == ONE


@pytest.mark.parametrize("rows", [[], [{"kind": "eval"}], [{"kind": "train", "generator_idle": 0.5}]])
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


def test_shares_are_of_each_roles_time():
    assert ONE.shares == {
        ("generator", "decode"): 0.75,
        ("generator", "sync"): 0.25,
        ("trainer", "forward_backward"): 0.5,
        ("trainer", "sync"): 0.5,
    }
    assert ONE.numbers() == {
        "hours_generator_decode": 0.75, "hours_generator_sync": 0.25, "hours_trainer_forward_backward": 0.5,
        "hours_trainer_sync": 0.5, "mfu_generator": 0.1, "mfu_trainer": 0.2, "tokens_per_s": 100.0,
    }  # fmt: skip


def test_a_table_has_the_activities_that_took_time_anywhere():
    unknown = Hours(device_s=TWO.device_s, tokens_per_s=1234.5, mfu=None)
    lines = hours_cells({"a": ONE, "old": None, "b": unknown})
    assert lines == [
        {
            "variant": "a", "generators decode": "75.0%", "generators sync": "25.0%", "generators dead": "0.0%",
            "trainers forward, backward": "50.0%", "trainers sync": "50.0%",
            "tokens/s": "100", "MFU of generators": "10.0%", "MFU of trainers": "20.0%",
        },
        {
            "variant": "b", "generators decode": "83.3%", "generators sync": "0.0%", "generators dead": "16.7%",
            "trainers forward, backward": "100.0%", "trainers sync": "0.0%",
            "tokens/s": "1,234", "MFU of generators": "", "MFU of trainers": "",
        },
    ]  # fmt: skip


def test_an_activity_that_took_no_time_has_no_column():
    never = Hours(device_s={"generator": {"decode": 3.0, "unplayed": 0.0}}, tokens_per_s=1.0, mfu=None)
    assert "generators not played yet" not in hours_cells({"a": never})[0]
