"""The eight questions of docs/tour.md are answered where it says, in the words that it quotes."""

import re
import time
from dataclasses import replace

import pytest
from dashboard.app_pages import html_of, messages, open_page
from dashboard.test_run_page import HELD_OUT, ROLLOUT, write_rollouts
from fixtures_home import make_home, planned_run, write_state
from places import REPOSITORY

TOUR = (REPOSITORY / "docs/tour.md").read_text()


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """Three variants with three seeds; one run has failed, one has rollouts."""
    sweep = make_home(tmp_path_factory.mktemp("home"), seeds=(0, 1, 2))
    write_state(sweep.home, planned_run("loo-loss", 1).id, "failed", message="loss is not finite at step 12")
    write_rollouts(sweep, [ROLLOUT, HELD_OUT])
    return sweep


def said(page) -> str:
    """All text of a page on one line, as a reader sees it."""
    kinds = (page.markdown, page.caption, page.title, page.header, page.subheader, page.text, page.code)
    texts = [str(one.value) for kind in kinds for one in kind]
    texts += [element.proto.text for element in page.get("progress")]
    text = " ".join([*texts, messages(page), re.sub("<[^>]+>", " ", html_of(page))])
    return " ".join(re.sub(r"\\([^\w\s])", r"\1", text).split())  # Markdown's escapes


def test_which_variant_leads(monkeypatch, sweep):
    assert "highest pass rate: scalerl" in said(open_page(monkeypatch, sweep.home.path, "sweeps"))
    assert '"highest pass rate: ' in TOUR


def test_by_how_much_is_it_decided_what_did_it_change_and_what_would_decide(monkeypatch, sweep):
    text = said(open_page(monkeypatch, sweep.home.path, "compare", sweep="loo", open=["words"]))
    assert re.search(
        r"scalerl leads: the runner-up, loo-curriculum \(curriculum.type = uniform\), is 0\.\d+ \[[^]]+\] lower", text
    )
    undecided = re.findall("cannot be told apart|cannot tell which", text)
    assert bool(undecided) == ("Undecided: " in text) == ("To decide: " in text)
    assert bool(undecided) != ("Every comparison is decided" in text)
    assert all(quoted in TOUR for quoted in ("leads baseline by ", '"Undecided: ', '"To decide: '))


def test_when_it_will_end(monkeypatch, sweep):
    home, now = sweep.home, time.time()
    for run in sweep.plan.runs[:2]:
        status = home.run(run.id).read_status()
        begun = replace(status, state="running", heartbeat=now, compute_gpu_hours=1000.0, wall_s=500.0)
        home.run(run.id).write_status(begun)
    text = said(open_page(monkeypatch, home.path, "sweeps"))
    assert "; about 8.3 min left" in text  # 1,000 of 2,000 GPU-hours took 500 s
    for run in sweep.plan.runs[:2]:
        write_state(home, run.id, "done")


def test_why_a_run_failed(monkeypatch, sweep):
    run = planned_run("loo-loss", 1).id
    text = said(open_page(monkeypatch, sweep.home.path, "run", sweep="loo", run=run))
    assert "loss is not finite at step 12" in text


def test_what_the_policy_writes(monkeypatch, sweep):
    page = open_page(monkeypatch, sweep.home.path, "run", sweep="loo", run=planned_run("scalerl", 0).id)
    assert "What the policy writes" in said(page)
    assert "3:k9a2" in html_of(page)
