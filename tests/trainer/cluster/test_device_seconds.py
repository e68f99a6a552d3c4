"""Where the hours go: an account by hand, and what a checkpoint without one becomes."""

import pytest

from scalerl.cluster.device_seconds import Account


def two_devices():
    """Three seconds, in which they decode for five of six device-seconds, and one second of waiting."""
    account = Account(devices=2)
    account.book("wait_prompts", until=3.0, of_which={"decode": 5.0})
    account.book("wait_weights", until=4.0)
    return account


def test_what_is_left_of_a_stretch_goes_to_its_activity():
    assert two_devices().seconds == {"decode": 5.0, "wait_prompts": 1.0, "wait_weights": 2.0}


def test_time_is_not_booked_twice():
    with pytest.raises(AssertionError, match=r"booked up to 4.0, so no stretch can end at 3.5"):
        two_devices().book("sync", until=3.5)


def test_devices_cannot_do_more_than_there_is_time_for():
    with pytest.raises(AssertionError, match="is more than 2 devices have"):
        two_devices().book("sync", until=5.0, of_which={"decode": 2.1})


def test_an_account_may_be_read_inside_its_last_stretch():
    account = Account(devices=2)
    account.book("wait_weights", until=4.0)
    account.book("wait_prompts", until=8.0, of_which={"decode": 6.0})  # of eight device-seconds
    assert account.at(5.0, "unplayed") == {"wait_weights": 8.0, "decode": 1.5, "wait_prompts": 0.5}
    assert account.seconds == {"wait_weights": 8.0, "decode": 6.0, "wait_prompts": 2.0}
    with pytest.raises(AssertionError, match=r"from 4.0 on, not at 3.9"):
        account.at(3.9, "unplayed")


def test_an_account_goes_on_where_it_was_saved():
    account = Account(**two_devices().state_dict())
    assert account == two_devices()
    account.book("decode", until=5.0)
    assert account.seconds["decode"] == 7.0
    assert two_devices().seconds["decode"] == 5.0
