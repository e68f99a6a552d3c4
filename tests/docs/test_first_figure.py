"""The pages say of the first figure what its record says."""

import json

import pytest
from places import REPOSITORY

RECORD = json.loads((REPOSITORY / "benchmarks/results/off_policy.json").read_text())
REFERENCE, OTHER = RECORD["comparison"]["variants"]
LO, HI = (
    "…" if OTHER[f"compute_ratio_{end}"] is None else f"{OTHER[f'compute_ratio_{end}']:.2f}" for end in ("lo", "hi")
)
RATIO = f"{OTHER['compute_ratio']:.2f} [{LO}, {HI}]"
FOLDED = {
    page: " ".join((REPOSITORY / page).read_text().split())
    for page in ("README.md", "docs/index.md", "docs/tutorial.md")
}


def test_the_verdicts_of_the_record_are_those_of_the_text():
    assert (OTHER["curve"], OTHER["efficiency"], OTHER["difference"]) == (
        "ppo-off-policy-8",
        "more compute",
        "cannot tell",
    )
    assert REFERENCE["curve"] == "scalerl"


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_the_printed_table_has_the_numbers_of_the_record(page):
    assert f"{RATIO} more compute" in FOLDED[page]
    assert f"{OTHER['compute_ratio']:.2f} times the compute" in FOLDED[page]
    for variant in (REFERENCE, OTHER):
        assert f"3 of 3 {variant['asymptote'].removeprefix('A ')}" in FOLDED[page]


@pytest.mark.parametrize("page", list(FOLDED))
def test_the_code_that_made_it_is_named(page):
    assert all(version in FOLDED[page] for version in RECORD["code_versions"])
    assert f"ade on {RECORD['date']}" in FOLDED[page]


def test_the_figure_has_the_verdict_as_its_title_and_every_reading_as_a_point():
    figure = (REPOSITORY / "docs/figures/off_policy.svg").read_text()
    assert f"PPO-off-policy-8 needs {RATIO} times the compute of PipelineRL-8" in figure
    assert figure.count("<circle") == sum(len(curve["score"]) for curve in RECORD["readings"].values())
    assert "prefers-color-scheme: dark" in figure
