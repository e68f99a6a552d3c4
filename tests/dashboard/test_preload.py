"""What the server does before anybody asks: what is kept is read, nothing is fitted, and nothing wrong ends it."""

import os

import pytest
from dashboard.app_pages import messages, open_page
from fixtures_home import make_home

from ablations.findings.results import read_results
from ablations_dashboard.reading import cache
from ablations_dashboard.server.preload import IMPORTING, work_ahead


@pytest.fixture
def sweep(tmp_path):
    """Every run of it is read, fitted and kept."""
    sweep = make_home(tmp_path)
    for run in sweep.plan.runs:
        log = sweep.run(run.id).metrics
        then = os.stat(log).st_mtime - 10
        os.utime(log, (then, then))  # a log that has just been written is not kept
    read_results(sweep)
    return sweep


@pytest.fixture
def fits(monkeypatch):
    """Runs that are read and fitted because a page asks, by name."""
    asked, real = [], cache.fit_sweep

    def fit_sweep(sweep):
        asked.extend(f"{one.name} {run.seed}" for one in sweep.plan.variants for run in one.runs)
        return real(sweep)

    monkeypatch.setattr(cache, "fit_sweep", fit_sweep)
    return asked


def ahead(monkeypatch, home):
    """The server's thread, once it has ended."""
    monkeypatch.setenv("ABLATIONS_HOME", str(home))
    thread = work_ahead()
    thread.join(timeout=250)
    assert not thread.is_alive()
    assert not IMPORTING.locked()


def test_a_page_finds_what_was_read_ahead(monkeypatch, sweep, fits):
    ahead(monkeypatch, sweep.home.path)
    page = open_page(monkeypatch, sweep.home.path, "compare")
    assert "Compared with scalerl" in [one.value for one in page.subheader]
    assert fits == []


def test_a_run_that_is_not_kept_is_fitted_when_a_page_asks_for_it(monkeypatch, sweep, fits):
    (kept,) = sweep.run(sweep.plan.runs[1].id).path.glob("readings/*.msgpack")
    kept.unlink()
    ahead(monkeypatch, sweep.home.path)
    assert fits == []
    open_page(monkeypatch, sweep.home.path, "compare")
    assert fits == ["loo-loss 0"]


def test_what_is_wrong_with_a_home_folder_is_said_by_the_page(monkeypatch, sweep):
    (sweep.folder / "plan.json").write_text("{")
    ahead(monkeypatch, sweep.home.path)
    assert "not a plan" in messages(open_page(monkeypatch, sweep.home.path, "compare"))
    ahead(monkeypatch, sweep.home.path / "nothing")
    assert "No sweep in" in messages(open_page(monkeypatch, sweep.home.path / "nothing", "compare"))
