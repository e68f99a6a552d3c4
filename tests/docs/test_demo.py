"""What `make demo` says is what its record says, and seven other seeds bear it out."""

import json

import pytest
from places import REPOSITORY

LEGS = json.loads((REPOSITORY / "benchmarks/results/demo.json").read_text())["legs"]
LOG = " ".join((REPOSITORY / "docs/log.md").read_text().split())


def interval(line, name, style):
    """The number and its interval as pages write them."""
    lo, hi = ("…" if line[f"{name}_{end}"] is None else f"{line[f'{name}_{end}']:{style}}" for end in ("lo", "hi"))
    return f"{line[name]:{style}} [{lo}, {hi}]"


def test_the_page_has_the_difference_in_ceiling_that_only_the_demo_bounds():
    (demo, seven) = (LEGS[1][which]["variants"][1] for which in ("demo", "seven_other_seeds"))
    assert interval(demo, "delta_A", "+.3f") in LOG
    assert seven["delta_A"] is None


@pytest.mark.parametrize("which", ["demo", "seven_other_seeds"])
@pytest.mark.parametrize("leg", LEGS, ids=lambda leg: f"budget-{leg['budget']:g}")
def test_the_page_has_the_numbers_of_the_record(leg, which):
    _, other = leg[which]["variants"]
    assert interval(other, "delta_level", "+.3f") in LOG
    assert interval(other, "compute_ratio", ".2f") in LOG
