"""The page that holds the paper against what studies found."""

import csv
import io

import pytest
from dashboard.app_pages import messages, open_page
from dashboard.browser import served_in_browser
from fixtures_home import changed, make_home

from ablations.cli.reproduce import written_card
from ablations.findings.results import read_results
from ablations.home.started_sweep import StartedSweep

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
    assert claims["the paper says"].tolist()[1] == "loo-curriculum: less compute by a factor of 1.2"
    assert claims["here"].tolist()[1].startswith("x 1.")
    assert ceilings["A in the paper"].tolist() == [0.62, 0.61]
    assert ceilings["order"].tolist() == ["other order: loo-loss < scalerl"] * 2
    assert "One study, 3 claims: 2 holds, 1 opposite." in "\n".join(one.value for one in page.caption)


def test_claims_are_filtered_by_their_outcome(monkeypatch, home):
    page = open_page(monkeypatch, home, "paper", outcome="opposite")
    assert page.dataframe[0].value["the claim"].tolist() == ["opposite"]
    page.selectbox[0].set_value("cannot tell").run()
    assert not page.exception
    assert "No claim has this outcome." in messages(page)
    assert page.query_params["outcome"] == "cannot tell"


def test_without_a_card_the_page_names_the_command(monkeypatch, tmp_path):
    make_home(tmp_path)
    assert "platform reproduce fig4a" in messages(open_page(monkeypatch, tmp_path, "paper"))


def test_a_damaged_card_is_said_and_costs_no_other(monkeypatch, tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1, 2))
    make_study(sweep)
    damaged = make_study(sweep, sweep="torn")
    (damaged.folder / "card.json").write_text('{"study": "torn"')
    page = open_page(monkeypatch, tmp_path, "paper")
    assert "platform reproduce torn" in messages(page)
    assert len(page.dataframe[0].value) == len(CLAIMS)


HOSTILE = """'"><img src=x onerror=alert(1)> ![i](https://elsewhere.example/i.png) **b** \x1b[31m"""


def test_in_a_browser_its_control_and_tables_work_and_what_people_wrote_is_text(tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1, 2))
    claims = ({**CLAIMS[0], "source": HOSTILE}, CLAIMS[1])
    make_study(sweep, claims=claims, doc=HOSTILE)
    for browser in served_in_browser(tmp_path):
        with browser.window() as page:
            page.open("paper")
            page.choose("With the outcome", "opposite")
            assert "outcome=opposite" in page.page.url
            page.act(lambda: page.page.reload())
            content = page.downloads(page.page.get_by_role("button", name="Table as CSV").first.click)
            (line,) = csv.DictReader(io.StringIO(content.decode()))
            assert (line["the claim"], line["sign"]) == ("opposite", "other")
            page.choose("With the outcome", "all")
            assert "outcome=" not in page.page.url
            assert page.page.locator("img[src*=elsewhere], img[src=x]").count() == 0
            page.is_whole()
