"""What `make demo` says is what its record says, and seven other seeds bear it out."""

import json

import pytest
from places import REPOSITORY

LEGS = json.loads((REPOSITORY / "benchmarks/results/demo.json").read_text())["legs"]
VERDICTS = {"level": "level_difference", "ceiling": "difference", "compute": "efficiency"}
LOG = " ".join((REPOSITORY / "docs/log.md").read_text().split())


def verdicts(comparison):
    """Level, ceiling and compute of PPO-off-policy-8."""
    return [comparison["variants"][1][field] for field in VERDICTS.values()]


def interval(line, name, style):
    """The number and its interval as pages write them."""
    lo, hi = ("…" if line[f"{name}_{end}"] is None else f"{line[f'{name}_{end}']:{style}}" for end in ("lo", "hi"))
    return f"{line[name]:{style}} [{lo}, {hi}]"


def test_both_legs_compare_three_seeds_with_seven_others():
    assert [leg["budget"] for leg in LEGS] == [1.0, 3.0]
    for leg in LEGS:
        assert [one["num_seeds"] for one in leg["demo"]["variants"]] == [3, 3]
        assert [one["num_seeds"] for one in leg["seven_other_seeds"]["variants"]] == [7, 7]
        assert {sum(counts.values()) for counts in leg["any_three_of_seven"].values()} == {35}
    assert not set(LEGS[0]["demo"]["code_versions"]) - set(LEGS[1]["demo"]["code_versions"])


def test_two_verdicts_of_the_demo_are_decided_and_seven_other_seeds_say_the_same():
    first, last = LEGS
    assert (
        verdicts(first["demo"]) == verdicts(first["seven_other_seeds"]) == ["level down", "cannot tell", "more compute"]
    )
    assert verdicts(last["demo"]) == ["no difference seen", "cannot tell", "more compute"]
    assert (first["is_borne_out"]["level"], first["is_borne_out"]["compute"], last["is_borne_out"]["compute"]) == (
        True,
        True,
        True,
    )


def test_the_ceiling_of_the_reference_has_an_upper_end_after_three_units():
    reference = LEGS[1]["demo"]["variants"][0]
    assert reference["verdict"] == "weak"
    assert reference["A_hi"] < 1


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
