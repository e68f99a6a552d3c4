"""The page that holds the paper against what studies found."""

import json
import math

import pytest
from dashboard.app_pages import figures_of, messages, open_page
from fixtures_home import changed, make_home

from ablations.answers.answer import Answer
from ablations.answers.questions import BY_NAME
from ablations.cli.reproduce import written_card
from ablations.findings.claim_card import JudgedClaim
from ablations.findings.results import read_results
from ablations.home.started_sweep import StartedSweep
from ablations.report.figures.chart import GREY
from ablations.report.figures.colours import GREEN
from ablations.study.claims import Claim
from ablations_dashboard.drawings.claims import (
    RED,
    claim_lines,
    claimed_span,
    claims_chart,
    published_size,
)
from ablations_dashboard.escape import in_markdown

CLAIMS = (
    {"variant": "loo-loss", "of": "ceiling", "says": "down", "by": 0.05, "source": "figure 5a"},
    {"variant": "loo-curriculum", "of": "compute", "says": "down", "by": 1.2, "source": "figure 6b"},
    {"variant": "loo-curriculum", "of": "ceiling", "says": "same", "by": 0.05, "source": "section 4"},
)
"""Of the truth of `fixtures_home`: loo-loss ends .07 lower, loo-curriculum needs half as much compute again."""
PUBLISHED = {"loo-loss": {"A": 0.62}, "scalerl": {"A": 0.61}}
"""The other way round than the truth."""


def make_study(runs: StartedSweep, **changes) -> StartedSweep:
    """A study with a card over the runs of a sweep with three seeds."""
    doc = "Which loss has the highest ceiling?"
    study = changed(runs, **{"sweep": "study", "doc": doc, "claims": CLAIMS, "published": PUBLISHED, **changes})
    study.write_plan()
    written_card(read_results(study), study.folder, [])
    return study


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    path = tmp_path_factory.mktemp("home")
    make_study(make_home(path, seeds=(0, 1, 2)))
    return path


def test_each_claim_stands_beside_what_was_found(monkeypatch, home):
    page = open_page(monkeypatch, home, "paper")
    claims, ceilings = (one.value for one in page.dataframe)
    assert claims["the claim"].tolist() == ["holds", "opposite", "holds"]
    assert claims["sign"].tolist() == ["same", "other", ""]
    assert claims["claimed"].tolist()[1] == "loo-curriculum: less compute by a factor of 1.2"
    card = json.loads((home / "sweeps/study/card.json").read_text())
    assert claims["here"].tolist() == [one["found"]["estimate"] for one in card["claims"]]
    assert ceilings["A in the paper"].tolist() == [0.62, 0.61]
    assert ceilings["order"].tolist() == ["other order: loo-loss < scalerl"] * 2
    assert "One study, 3 claims: 2 holds, 1 opposite." in "\n".join(one.value for one in page.caption)
    assert page.title[0].value == "Claims of the paper, and what we found"
    assert [one.label for one in page.expander] == ["All claims as a table", "Ceilings in the paper and here"]


def test_each_study_has_a_picture_of_the_claims_beside_what_was_found(monkeypatch, home):
    (figure,) = figures_of(open_page(monkeypatch, home, "paper"))
    labels = [one["text"] for one in figure["layout"]["annotations"]]
    assert labels == [
        "loo-loss: ceiling down by 0.05: <b>holds</b>",
        "loo-curriculum: same ceiling within 0.05: <b>holds</b>",
        "loo-curriculum: less compute by a factor of<br>1.2: <b>opposite</b>",
    ]
    _, size, found, _, _, band, same, _, _, ratio, slower, _ = figure["data"]
    assert (size["x"], band["x"], ratio["x"]) == ([-0.05], [-0.05, 0.05], [pytest.approx(1 / 1.2)])
    assert [one["line"]["color"] for one in (found, same, slower)] == [GREEN, GREEN, RED]
    card = json.loads((home / "sweeps/study/card.json").read_text())
    ends = [one["found"] for one in card["claims"]]
    assert found["x"] == [ends[0]["lo"], ends[0]["hi"]]
    assert slower["x"] == [ends[1]["lo"], ends[1]["hi"]]
    assert figure["layout"]["xaxis2"]["type"] == "log"
    assert figure["layout"]["xaxis2"]["ticktext"] == ["0.8", "1", "1.2", "1.4", "1.6"]
    only = figures_of(open_page(monkeypatch, home, "paper", outcome="opposite"))[0]
    assert [one["text"] for one in only["layout"]["annotations"]] == labels[2:]


def test_a_claim_over_scales_is_a_sentence_beside_the_picture(monkeypatch, tmp_path):
    over = {"variant": "loo-loss", "of": "level", "says": "carries", "source": "our guess"}
    make_study(make_home(tmp_path, seeds=(0, 1)), claims=(*CLAIMS[:1], over))
    page = open_page(monkeypatch, tmp_path, "paper")
    (figure,) = figures_of(page)
    assert len(figure["layout"]["annotations"]) == 1
    said = "loo-loss: difference in level carries over scales: one scale, or no interval at two, cannot tell"
    assert in_markdown(said) in [one.value for one in page.markdown]


@pytest.mark.parametrize(
    ("claim", "size", "span"),
    [
        ({"of": "ceiling", "says": "up", "by": 0.09}, 0.09, (0.0, math.inf)),
        ({"of": "level", "says": "down"}, None, (-math.inf, 0.0)),
        ({"of": "ceiling", "says": "same", "by": 0.03}, None, (-0.03, 0.03)),
        ({"of": "compute", "says": "down", "by": 1.25}, 0.8, (0.0, 1.0)),
        ({"of": "compute", "says": "up"}, None, (1.0, math.inf)),
        ({"of": "compute", "says": "same"}, None, (1 / 1.1, 1.1)),  # 1.1 is the paper's smallest difference
    ],
)
def test_a_claim_is_drawn_with_its_sign_on_its_side(claim, size, span):
    one = Claim(variant="a", source="figure 1", **claim)
    assert published_size(one) == (None if size is None else pytest.approx(size))
    assert claimed_span(one) == pytest.approx(span)


@pytest.mark.parametrize(
    ("numbers", "outcome", "symbols", "colour"),
    [
        ((0.02, -0.01, 0.05), "cannot tell", ["circle"], GREY),
        ((None, 0.01, None), "holds", ["triangle-right"], GREEN),
        ((0.0, -0.01, 0.01), "no difference of that size", ["circle"], RED),
    ],
)
def test_what_was_found_has_the_colour_of_its_outcome_and_arrows_at_open_ends(numbers, outcome, symbols, colour):
    claim = Claim(variant="a", of="ceiling", says="up", by=0.09, source="figure 1")
    estimate, lo, hi = numbers
    found = Answer.written(BY_NAME["ceiling"], estimate=estimate, lo=lo, hi=hi)
    (panel,) = claims_chart([JudgedClaim(claim=claim, found=found, outcome=outcome)]).panels
    *_, bar, mark = panel.marks
    assert (bar.colour, bar.x[0], list(mark.symbol)) == (colour, lo, symbols)


def test_long_words_are_broken_where_a_phone_ends():
    claim = Claim(
        variant="learning-rate-1e-4", against="learning-rate-1e-3", of="ceiling", says="down", by=0.05, source="a"
    )
    judged = JudgedClaim(claim=claim, found=None, outcome="no difference of that size")
    assert claim_lines(judged) == ("learning-rate-1e-4 against learning-rate-1e-3:", "ceiling down by 0.05: ")


def test_without_a_card_the_page_names_the_command(monkeypatch, tmp_path):
    make_home(tmp_path)
    assert f"platform reproduce fig4a --home {tmp_path}" in messages(open_page(monkeypatch, tmp_path, "paper"))


def test_a_damaged_card_is_said_and_costs_no_other(monkeypatch, tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1, 2))
    make_study(sweep)
    damaged = make_study(sweep, sweep="torn")
    (damaged.folder / "card.json").write_text('{"study": "torn"')
    page = open_page(monkeypatch, tmp_path, "paper")
    assert "platform reproduce torn" in messages(page)
    assert len(page.dataframe[0].value) == len(CLAIMS)
