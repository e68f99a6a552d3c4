"""The pages Sweeps, Compare and Forecast as people use them, in headless Chromium."""

import csv
import io
from dataclasses import replace

import pytest
from dashboard.browser import LIMIT_MS, served_in_browser
from fixtures_home import TRUTH, changed, make_home, write_run
from waiting import wait_until

from ablations.home.plan import PlannedRun


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """Three sweeps: `loo`, `more` beside it, and `damaged`, which cannot be read."""
    sweep = make_home(tmp_path_factory.mktemp("home"))
    plan = sweep.plan
    again = replace(plan.variants[1], name="again", runs=(PlannedRun(seed=0, id="ab" * 6),))
    write_run(sweep.home, "ab" * 6, (0.60, 1.8, 330.0))
    changed(sweep, sweep="more", doc="Another question.", variants=(plan.variants[0], again)).write_plan()
    damaged = changed(sweep, sweep="damaged")
    damaged.write_plan()
    (damaged.folder / "plan.json").write_text("{")
    sweep.write_plan()  # the last one started is shown first
    return sweep


@pytest.fixture(scope="module")
def browser(sweep):
    yield from served_in_browser(sweep.home.path)


def traces(page):
    """Names of the traces of the curves."""
    names = page.page.evaluate("(document.querySelector('.js-plotly-plot')?.data ?? []).map(one => one.name || '')")
    return {name for name in names if name}


def axis(page):
    """The horizontal axis of the curves as it is drawn; before, nothing."""
    return page.page.evaluate(
        """() => { const found = document.querySelector('.js-plotly-plot')?._fullLayout?.xaxis;
            return {type: found?.type, title: found?.title?.text}; }"""
    )


def shows(page, is_drawn):
    """Wait until the figures are as they should be: they are drawn after the page has settled."""
    page.is_whole(figures=1)
    wait_until(is_drawn, "the figure", limit_s=LIMIT_MS / 1000)


def table_of(content):
    """The lines of a downloaded table."""
    return list(csv.DictReader(io.StringIO(content.decode())))


def test_controls_of_compare_do_what_they_say_are_in_the_url_and_what_it_shows_is_downloaded(browser):
    with browser.window(height=1400) as page:
        page.open("compare", sweep="loo")
        shows(page, lambda: traces(page) == set(TRUTH))
        page.act(page.page.get_by_role("button", name="loo-loss", exact=True).click)
        page.choose("Baseline", "loo-loss")
        page.page.get_by_role("heading", name="Compared with loo-loss").wait_for()
        page.choose("Compare with sweeps", "more")
        page.act(page.page.get_by_role("button", name="again (more)", exact=True).click)
        shows(page, lambda: traces(page) == {"loo-loss", "again (more)"})
        page.choose("x axis", "optimiser steps")
        page.act(page.page.get_by_text("Logarithmic").click)
        page.act(page.page.get_by_text("All numbers").click)
        url = page.page.url
        for part in (
            *("variant=loo-loss&variant=again+%28more%29", "baseline=loo-loss", "with=more"),
            *("against=step", "log=1", "open=numbers"),
        ):
            assert part in url
        page.act(page.page.reload)
        assert page.page.url == url
        shows(page, lambda: traces(page) == {"loo-loss", "again (more)"})
        shows(page, lambda: axis(page) == {"type": "log", "title": "optimiser steps"})
        tables = [
            table_of(page.downloads(one.click))
            for one in page.page.get_by_role("button", name="Table as CSV").all()
            if one.is_visible()
        ]
        assert [{line["variant"] for line in table} >= {"loo-loss", "again (more)"} for table in tables] == [True] * 2
        html = page.downloads(page.page.get_by_role("button", name="Figure as HTML").first.click).decode()
        assert "Plotly.newPlot" in html
        page.page.locator(".js-plotly-plot").first.hover()
        png = page.downloads(page.page.locator('.modebar-btn[data-title^="Download plot"]').first.click)
        assert png.startswith(b"\x89PNG")
        page.is_whole(figures=2)


def test_sweeps_are_found_and_lead_to_their_comparison(browser):
    with browser.window() as page:
        page.open()
        shown = page.text()
        assert "not a plan" in shown
        assert "Another question." in shown
        table = table_of(page.downloads(page.page.get_by_role("button", name="Table as CSV").click))
        assert {line["sweep"] for line in table} == {"loo", "more", "damaged"}
        find = page.page.get_by_role("textbox", name="Find")
        page.act(lambda: find.fill("another"), lambda: find.press("Enter"))
        assert "Which choice raises the ceiling?" not in page.text()
        assert "find=another" in page.page.url
        page.act(page.page.reload)
        assert "Which choice raises the ceiling?" not in page.text()
        page.act(page.page.get_by_role("link", name="more").click)
        page.page.get_by_role("heading", name="more", exact=True).wait_for()
        page.is_whole(figures=2)
        assert "sweep=more" in page.page.url


def test_controls_of_forecast_do_what_they_say_and_are_in_the_url(browser):
    with browser.window(height=1400) as page:
        page.open("forecast", sweep="loo")
        page.is_whole(figures=1)
        slider = page.page.get_by_role("slider", name="Compute per run")
        page.act(slider.focus, lambda: page.page.keyboard.press("ArrowRight"))
        target = page.page.get_by_role("spinbutton", name="Pass rate to reach")
        page.act(lambda: target.fill("0.5"), lambda: target.press("Enter"))
        page.choose("Uncertainty of", "loo-loss")
        url = page.page.url
        for part in ("times=2.5", "target=0.5", "forecast_band=loo-loss"):
            assert part in url
        page.act(page.page.reload)
        page.is_whole(figures=1)
        assert page.page.url == url
        first = table_of(page.downloads(page.page.get_by_role("button", name="Table as CSV").first.click))
        assert [line["variant"] for line in first] == list(TRUTH)


PLACES = """() => [...document.querySelectorAll('.js-plotly-plot')].map(plot => {
    const box = one => { const found = one.getBoundingClientRect(); return {
        left: found.left, right: found.right, top: found.top, bottom: found.bottom}; };
    const all = what => [...plot.querySelectorAll(what)].map(box);
    return {area: box(plot.querySelector('.bglayer .bg, .plot')), ticks: all('.xtick text'), names: all('.ytick text'),
            legend: all('.legend'), ink: getComputedStyle(plot.querySelector('.xtick text')).fill}; })"""


def test_the_forecast_reads_on_a_dark_phone(browser):
    with browser.window(dark=True, width=400, height=2200) as page:
        page.open("forecast", sweep="more")
        page.is_whole(figures=2)
        curves, chances = page.page.evaluate(PLACES)
        for one in (curves, chances):
            assert all(name["left"] >= 0 and name["right"] <= 400 for name in one["ticks"] + one["names"])
            assert all(a["right"] < b["left"] for a, b in zip(one["ticks"], one["ticks"][1:], strict=False))
            assert one["ink"] == "rgb(230, 233, 237)"  # the ink of dark pages
        assert curves["area"]["right"] - curves["area"]["left"] > 170  # names stand at the ends of the curves
        assert curves["legend"] == []
        assert chances["ticks"][0]["top"] > max(tick["bottom"] for tick in curves["ticks"])  # the bars lie below
        assert page.page.evaluate("document.documentElement.scrollWidth") <= 400
