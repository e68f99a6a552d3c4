"""No number outside its own interval: a few random studies of benchmarks/inside.py, and its record of many."""

import json
from collections import Counter

import numpy as np
import pytest
from inside import compared, count, drawn_study, is_outside, of_fit, of_study, of_text
from places import REPOSITORY


@pytest.mark.parametrize(
    ("text", "outside"),
    [
        ("A 0.712 [0.688, 0.708]", True),
        ("A 0.730 [0.666, 0.729]", True),
        ("twice the compute would add +0.004 [+0.000, +0.003].", True),
        ("A 0.730 [0.666, 0.730]", False),
        ("C_mid 10,380 [9,512, …]", False),
        ("C_mid 10,380 [11,512, …]", True),
        ("-0.049 [-0.071, -0.027]", False),
        ("1.2e+21 [1.1e+21, 1.3e+21]", False),
    ],
)
def test_a_printed_number_outside_its_interval_is_counted(text, outside):
    (found,) = of_text("", text)
    assert is_outside(*found[1:]) is outside


def test_no_number_lies_outside_its_interval():
    rng, fits, comparisons = np.random.default_rng(7), 0, 0
    counted, outside, verdicts = Counter(), Counter(), set()
    while fits < 60 or comparisons < 20:
        study = drawn_study(rng)
        count((one for seeds in study.values() for fit in seeds for one in of_fit(fit)), counted, outside)
        fits, comparisons = fits + sum(map(len, study.values())), comparisons + (len(study) > 1)
        verdicts |= {fit.verdict for seeds in study.values() for fit in seeds}
        if len(study) > 1:
            count(of_study(study, compared(study), None), counted, outside)
    assert +outside == Counter()
    assert counted["95 % of A"] > 40
    assert counted["main effect: ceiling"] > 20
    assert len(verdicts) >= 5


def test_the_record_is_of_enough_fits_and_has_none_outside():
    record = json.loads((REPOSITORY / "benchmarks" / "results" / "inside.json").read_text())
    assert record["fits"] >= 2000
    assert record["comparisons"] >= 500
    assert (record["outside"], record["outside_by_name"]) == (0, {})
