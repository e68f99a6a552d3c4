"""The pages say of the first figure what its record says."""

import json

import pytest
from places import REPOSITORY

RECORD = json.loads((REPOSITORY / "benchmarks/results/off_policy.json").read_text())
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
    assert f"3 of 3 reference reference {asymptotes[0]} reference" in FOLDED[page]
    assert f"3 of 3 level down cannot tell {asymptotes[1]} more compute" in FOLDED[page]


@pytest.mark.parametrize("page", list(FOLDED))
def test_the_code_that_made_it_is_named(page):
    assert all(version in FOLDED[page] for version in RECORD["code_versions"])
    assert f"ade on {RECORD['date']}" in FOLDED[page]


def test_the_figure_has_the_verdict_as_its_title_and_every_reading_as_a_point():
    figure = (REPOSITORY / "docs/figures/off_policy.svg").read_text()
    assert f"PPO-off-policy-8 needs {RATIO} times the compute of PipelineRL-8" in figure
    assert figure.count("<circle") == sum(len(curve["score"]) for curve in RECORD["readings"].values())
    assert "prefers-color-scheme: dark" in figure
