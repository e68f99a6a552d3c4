import pytest

from ablations.text import MINUTE_S, duration_text


@pytest.mark.parametrize(
    ("minutes", "text"),
    [
        (0.5, "0.5 min"),
        (30, "30 min"),
        (60, "1 h"),
        (90, "1.5 h"),
        (80, "1.33 h"),
        (4320, "72 h"),
        (7 * 1440, "7 days"),
        (18000, "12.5 days"),
    ],
)
def test_durations_read_as_people_say_them(minutes, text):
    assert duration_text(MINUTE_S * minutes) == text


@pytest.mark.parametrize(("seconds", "text"), [(3600 * 2.49, "2.5 h"), (86400 * 314, "310 days")])
def test_an_estimate_has_two_digits(seconds, text):
    assert duration_text(seconds, digits=2) == text
