"""A with its interval: one value, and the three forms in which it is shown."""

import pytest

from ablations.fit.asymptote import AsymptoteEstimate, verdict_on_interval


@pytest.mark.parametrize(
    ("hi", "rises", "cell", "sentence", "json"),
    [
        (0.633, True, "0.612 [0.588, 0.633]", "A 0.612 [0.588, 0.633]", "0.612 [0.588, 0.633]"),
        # 0.588 rounds to 0.59, which would not be a lower bound.
        (None, True, ">= 0.58", "A >= 0.58", "A >= 0.58"),
        (0.633, False, "no rise", "no rise", "no rise"),
        (None, False, "no rise", "no rise", "no rise"),
    ],
)
def test_an_asymptote_is_shown_with_its_interval_or_as_a_bound(hi, rises, cell, sentence, json):
    asymptote = AsymptoteEstimate(A=0.612, lo=0.588, hi=hi, rises=rises)
    assert (asymptote.cell(), str(asymptote), asymptote.to_json()) == (cell, sentence, json)
    assert asymptote.is_bounded == cell.startswith("0.612")


@pytest.mark.parametrize(
    ("hi", "verdict"), [(0.6375, "resolved"), (0.641, "weak"), (None, "lower bound only")]
)  # from 0.6: 0.0375 and 0.041 wide
def test_the_verdict_is_the_width_of_the_interval(hi, verdict):
    assert verdict_on_interval(0.6, hi) == verdict
