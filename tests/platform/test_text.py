import random
import re

import pytest

from ablations.answers.questions import COMPUTE
from ablations.report.documents.number_cells import number_cell
from ablations.text import (
    MINUTE_S,
    changes_text,
    compute_interval_text,
    cut_message,
    duration_text,
    interval_text,
    ratio_text,
)


@pytest.mark.parametrize(
    ("minutes", "text"),
    [
        (0.5, "0.5 min"),
        (90, "1.5 h"),
        (80, "1.33 h"),
        (4320, "72 h"),
        (18000, "12.5 days"),
    ],
)
def test_durations_read_as_people_say_them(minutes, text):
    assert duration_text(MINUTE_S * minutes) == text


@pytest.mark.parametrize(
    ("numbers", "text"),
    [
        ((0.61, 0.59, 0.633), "0.610 [0.590, 0.633]"),
        ((None, -0.1, None), "[-0.100, …]"),
        ((0.5, None, None), "0.500"),
        ((None, None, None), ""),
    ],
)
def test_an_interval_shows_which_ends_it_has(numbers, text):
    estimate, lo, hi = numbers
    assert interval_text(estimate, lo, hi, ".3f") == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (0.63, "0.63"),
        (1.314, "1.31"),
        (12.5, "12.50"),
        (0.1, "0.10"),
        (0.0994, "0.0994"),
        (0.001, "0.001"),
        (0.0010437, "0.00104"),
        (2.3456e-6, "2.35e-06"),
        (99.994, "99.99"),
        (99.996, "100"),
        (1000.4, "1,000"),
        (12_345.0, "12,300"),
        (4.567e10, "4.57e+10"),
    ],
)
def test_a_ratio_has_three_digits_where_two_after_the_point_would_say_little(ratio, text):
    assert ratio_text(ratio) == text


def test_an_interval_of_small_ratios_is_not_all_zeros():
    assert interval_text(0.00104, 0.00098, 0.00111, COMPUTE.form) == "0.00104 [0.00098, 0.00111]"
    assert number_cell(1000.4, COMPUTE.form).text == "1,000"


@pytest.mark.parametrize("form", [".3f", "+.3f", "+z.3f", ".2f", "ratio", "compute"])
def test_no_estimate_is_rounded_past_an_end_that_it_lies_within(form):
    rng = random.Random(48)
    for _ in range(2000):
        scale = 10 ** rng.uniform(-6, 12) if form in ("compute", "ratio") else 1.0
        apart = 10 ** rng.uniform(-5, 0)
        numbers = sorted(scale * (rng.uniform(0.2, 1) + apart * rng.random()) for _ in range(3))
        lo, estimate, hi = numbers
        text = compute_interval_text(estimate, lo, hi) if form == "compute" else interval_text(estimate, lo, hi, form)
        estimate_said, lo_said, hi_said = map(float, re.sub(r"[\[\],]", "", text).split())
        assert lo_said <= estimate_said <= hi_said, text


@pytest.mark.parametrize(
    ("overrides", "text"),
    [
        ({}, ""),
        ({"batch.prompts": 32}, "batch.prompts = 32 instead of 48"),
        ({"loss": {"type": "dapo"}}, "loss.type = dapo instead of cispo"),
        ({"loss.type": "dapo", "loss.clip_low": 0.2}, "loss.type = dapo instead of cispo, loss.clip_low = 0.2"),
        ({"batch.prompts": 48}, "batch.prompts = 48"),
        ({"length_control": {"type": "penalty", "buffer": 8}}, "length_control = {type: penalty, buffer: 8}"),
    ],
)
def test_a_change_names_what_it_is_instead_of(overrides, text):
    assert changes_text(overrides, {"batch.prompts": "48", "loss.type": "cispo"}) == text


def test_a_message_that_is_too_long_keeps_its_beginning_and_its_end():
    said = cut_message("step 3: the checkpoint is damaged. " + "x " * 200 + "Delete it with rm -r run/checkpoint", 120)
    assert 110 < len(said) <= 120
    assert said.startswith("step 3: the checkpoint is damaged. x")
    assert said.endswith("Delete it with rm -r run/checkpoint")
    assert cut_message(" two\n lines ", 9) == "two lines"
