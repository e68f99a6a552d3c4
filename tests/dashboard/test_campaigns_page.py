"""The page of campaigns, beside the numbers of the ledger."""

from dashboard.app_pages import figures_of, open_page

from ablations.findings.campaign import CampaignTerms, new_campaign, opened
from ablations.findings.fair_runs import NewRun
from ablations.home.home import Home

START, WIDER = (0.40, 0.41, 0.39, 0.40), (0.47, 0.46, 0.48, 0.47)


def runs(scores):
    return [NewRun(score=one) for one in scores]


def test_a_home_without_campaigns_says_what_starts_one(monkeypatch, tmp_path):
    page = open_page(monkeypatch, tmp_path, "campaigns")
    assert f"platform campaign NAME --proposals 200 --home {tmp_path}" in page.info[0].value


def test_kept_and_discarded_proposals_are_shown_with_their_gains(monkeypatch, tmp_path):
    home = Home(tmp_path)
    new_campaign(home, "night", CampaignTerms(proposals=20))
    with opened(home, "night") as campaign:
        campaign.add("start", runs(START))
        wider = campaign.add("wider", runs(WIDER), says="a wider net")
        assert campaign.decide(wider).word == "keep"
        campaign.add("best", runs((0.455, 0.465, 0.45, 0.47)))
        assert campaign.decide(campaign.add("broken", runs((0.1,)))).word == "worse"
    page = open_page(monkeypatch, tmp_path, "campaigns")
    table = page.dataframe[0].value
    assert table["proposal"].tolist() == ["start", "wider", "broken"]
    assert table["answer"].tolist() == ["start", "keep", "discard: worse"]
    (figure,) = figures_of(page)
    assert figure["layout"]["xaxis"]["ticktext"] == ["0", "1"]
    shown = " ".join(one.value for one in page.caption).replace("\\", "")
    assert "at most one false keep in 95 % of campaigns of 20 proposals" in shown
    assert "Gain when kept +0.0650; by fresh runs +0.0600" in shown  # .47 and .46 less .40
