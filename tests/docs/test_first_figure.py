"""The pages say of the first figure what its record says."""

import json

import pytest
from places import REPOSITORY

from ablations.terminal.sparkline import means_along, sparkline

RECORD = json.loads((REPOSITORY / "benchmarks/results/off_policy.json").read_text())
TUTORIAL = json.loads((REPOSITORY / "benchmarks/results/tutorial.json").read_text())
REFERENCE, OTHER = RECORD["comparison"]["variants"]
LO, HI = (
    "…" if OTHER[f"compute_ratio_{end}"] is None else f"{OTHER[f'compute_ratio_{end}']:.2f}" for end in ("lo", "hi")
)
LEVEL = f"{OTHER['delta_level']:+.3f} [{OTHER['delta_level_lo']:+.3f}, {OTHER['delta_level_hi']:+.3f}]"
RATIO = f"{OTHER['compute_ratio']:.2f} [{LO}, {HI}]"
FOLDED = {
    page: " ".join((REPOSITORY / page).read_text().split())
    for page in ("README.md", "docs/index.md", "docs/tutorial.md")
}


def test_the_verdicts_of_the_record_are_those_of_the_text():
    assert OTHER["curve"] == "ppo-off-policy-8"
    verdicts = [OTHER[name] for name in ("level_difference", "difference", "efficiency")]
    assert verdicts == ["level down", "cannot tell", "more compute"]
    assert REFERENCE["curve"] == "scalerl"


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_the_printed_table_has_the_numbers_of_the_record(page):
    assert f"{LEVEL} {RATIO}" in FOLDED[page]
    assert f"{OTHER['compute_ratio']:.2f} times the compute" in FOLDED[page]
    assert f"{-OTHER['delta_level']:.3f}".lstrip("0") in FOLDED[page]
    asymptotes = [variant["asymptote"].removeprefix("A ") for variant in (REFERENCE, OTHER)]
    curves = curves_drawn()
    assert f"3 of 3 {curves[0]} reference reference {asymptotes[0]} reference" in FOLDED[page]
    assert f"3 of 3 {curves[1]} level down cannot tell {asymptotes[1]} more compute" in FOLDED[page]


def curves_drawn() -> list[str]:
    """The readings of the record, of the reference and of the other, as the table draws them."""
    points = {
        one["curve"]: [
            point
            for name, curve in RECORD["readings"].items()
            if name.startswith(f"{one['curve']}-s")
            for point in zip(curve["compute"], curve["score"], strict=True)
        ]
        for one in (REFERENCE, OTHER)
    }
    end = max(compute for one in points.values() for compute, _ in one)
    means = [[value for value in means_along(one, end) if value is not None] for one in points.values()]
    low, high = min(map(min, means)), max(map(max, means))
    assert all(f"from {low:.3f} (▁) to {high:.3f} (█)" in FOLDED[page] for page in ("README.md", "docs/tutorial.md"))
    return [sparkline(one, low=low, high=high) for one in means]


@pytest.mark.parametrize(
    ("page", "record"), [("README.md", RECORD), ("docs/index.md", RECORD), ("docs/tutorial.md", TUTORIAL)]
)
def test_the_code_that_made_it_is_named(page, record):
    assert all(version in FOLDED[page] for version in record["code_versions"])
    assert f"ade on {record['date']}" in FOLDED[page]


def test_the_figure_has_the_verdict_as_its_title_and_every_reading_as_a_point():
    figure = (REPOSITORY / "docs/figures/off_policy.svg").read_text()
    assert f"PPO-off-policy-8 needs {RATIO} times the compute of PipelineRL-8" in figure
    assert figure.count("<circle") == sum(len(curve["score"]) for curve in RECORD["readings"].values())
    assert "prefers-color-scheme: dark" in figure


def test_the_tutorial_says_what_twice_the_budget_decided():
    other = TUTORIAL["at_twice_the_budget"]["in_turns"]
    assert [other[name] for name in ("level_difference", "difference", "efficiency")] == [
        *("cannot tell", "cannot tell"),
        "more compute",
    ]
    ends = ", ".join(f"{other[f'compute_ratio_{end}']:.2f}" for end in ("lo", "hi"))
    assert f"more compute: {other['compute_ratio']:.2f} [{ends}] times" in FOLDED["docs/tutorial.md"]
