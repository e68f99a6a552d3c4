"""A with its interval: one value, and the three forms in which it is shown."""

import pytest

from ablations.fit.asymptote import asymptote_of, verdict_on_interval


@pytest.mark.parametrize(
    ("hi", "verdict", "cell", "sentence", "json"),
    [
        (0.633, "roughly known", "0.612 [0.588, 0.633]", "A 0.612 [0.588, 0.633]", "0.612 [0.588, 0.633]"),
        # 0.588 rounds to 0.59, which would not be a lower bound.
        (None, "lower bound only", ">= 0.58", "A >= 0.58", "A >= 0.58"),
        (0.633, "no rise", "no rise", "no rise", "no rise"),
        (None, "no rise", "no rise", "no rise", "no rise"),
    ],
)
def test_an_asymptote_is_shown_with_its_interval_or_as_a_bound(hi, verdict, cell, sentence, json):
    asymptote = asymptote_of(0.612, lo=0.588, hi=hi, verdict=verdict)
    assert (asymptote.cell(), str(asymptote), asymptote.to_json()) == (cell, sentence, json)
    assert (asymptote.A, asymptote.hi) == ((0.612, 0.633) if cell.startswith("0.612") else (None, None))


@pytest.mark.parametrize(
    ("hi", "verdict", "unseen"),
    [
        (0.6375, "resolved", "level only"),
        (0.641, "roughly known", "roughly known"),
        (None, "lower bound only", "lower bound only"),
    ],
)  # from 0.6: 0.0375 and 0.041 wide
def test_the_verdict_is_the_width_of_the_interval_and_a_narrow_one_needs_a_rise_in_view(hi, verdict, unseen):
    assert verdict_on_interval(0.6, hi, is_rise_seen=True) == verdict
    assert verdict_on_interval(0.6, hi, is_rise_seen=False) == unseen
