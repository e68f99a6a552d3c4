"""A wait returns what it waited for, or says what that was and what it saw instead."""

import subprocess
import sys

import pytest
from waiting import wait_until


def test_what_the_condition_returned_is_returned():
    answers = iter(["", None, "third"])
    assert wait_until(lambda: next(answers), "an answer", every_s=0.0) == "third"


def test_a_wait_in_vain_shows_what_the_test_asked_it_to_show():
    with pytest.raises(pytest.fail.Exception, match="for a line; saw what the log says"):
        wait_until(lambda: False, "a line", limit_s=0.0, shown=lambda: "what the log says")


def test_nobody_waits_for_a_process_that_has_ended():
    process = subprocess.Popen([sys.executable, "-c", "raise SystemExit(7)"])
    with pytest.raises(pytest.fail.Exception, match="for a line; the process ended with code 7; saw False"):
        wait_until(lambda: False, "a line", process=process)
