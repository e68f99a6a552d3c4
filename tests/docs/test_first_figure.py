"""The numbers in the text of README, first page and tutorial, and the first figure, are those of the kept runs."""

import re

import pytest
from page_numbers import FIGURE, SAID, Facts, figure, line, with_numbers
from places import REPOSITORY

PAGES = ("README.md", "docs/index.md", "docs/tutorial.md")
FROM_ELSEWHERE = {
    "3.11": "a version of Python",
    "2510.13786": "the paper",
    ".94": "simulated studies, docs/statistics.md",
}
"""Numbers in the text that no kept run makes, and what they are."""


@pytest.fixture(scope="module")
def facts(tmp_path_factory) -> Facts:
    return Facts(tmp_path_factory.mktemp("kept"))


def verdicts(results, variant):
    return [line(results, variant)[name] for name in ("level_verdict", "ceiling_verdict", "compute_verdict")]


@pytest.mark.parametrize("page", PAGES)
def test_the_numbers_in_the_text_are_those_of_the_kept_runs(page, facts):
    text = (REPOSITORY / page).read_text()
    assert with_numbers(page, text, facts) == text, "`make numbers TRAIN=` writes them"


@pytest.mark.parametrize("page", PAGES)
def test_every_decimal_in_the_text_is_one_of_those_or_named(page):
    text = re.sub(r"^(?: {4}.*|```.*)$", "", (REPOSITORY / page).read_text(), flags=re.MULTILINE)
    text = re.sub(r"\]\([^)]*\)|`[^`]*`", "", text)
    for said in SAID:
        text = said.pattern.sub("", text) if said.page == page else text
    assert set(re.findall(r"(?<![\w.])\d*\.\d+(?![\w])", text)) <= set(FROM_ELSEWHERE)


def test_the_verdicts_are_those_of_the_text(facts):
    expected = ["level down", "no difference seen", "more compute"]
    assert verdicts(facts.readme, "ppo-off-policy-8") == expected
    assert verdicts(facts.added, "in_turns") == expected
    assert verdicts(facts.added, "dapo") == ["no difference seen"] * 3
    assert verdicts(facts.twice, "in_turns") == ["cannot tell", "cannot tell", "more compute"]


def test_the_figure_is_what_the_code_draws_of_the_kept_runs(facts):
    drawn = figure(facts.readme)
    assert FIGURE.read_text() == drawn
    runs = [run for run in facts.kept["runs"].values() if run["variant"] in ("scalerl", "in_turns")]
    at_one = [row for run in runs for row in run["rows"] if row["step"] <= steps_at_one(run)]
    assert drawn.count("<circle") == len(at_one) == 6 * 21
    assert "prefers-color-scheme: dark" in drawn


def steps_at_one(run):
    return next(row["step"] for row in run["rows"] if row["compute_gpu_hours"] >= 625)
