"""The page Compare and the report in headless Chromium: first screens, texts of figures, controls."""

import csv
import io
import re
from contextlib import chdir
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from dashboard.browser import LIMIT_MS, served_in_browser
from dashboard.texts import crowded
from fixtures_home import TRUTH, changed, make_home, write_run
from generated_home import NAME
from waiting import wait_until

from ablations.findings.results import read_results
from ablations.home.plan import PlannedRun
from ablations.report.formats import write_in_format

HEIGHTS = {1440: 900, 400: 800}
"""Height of a screen by its width."""
PLACES = """() => [...document.querySelectorAll('.js-plotly-plot')].map(plot => {
    const {top, bottom, left, right} = plot.getBoundingClientRect();
    const texts = [...plot.querySelectorAll('.main-svg text')].filter(one => one.textContent.trim());
    return {top, bottom, left, right, texts: texts.length}; })"""
A4_WIDTH = 688
"""CSS pixels of 210 mm less two margins of 14 mm, at 96 to the inch."""


@pytest.fixture(scope="module")
def browser(many_variants, tmp_path_factory):
    """The pages of two studies beside each other, `loo` and `more`, and of one with many variants, in ./ablation-runs,
    which no command that a page shows has to name."""
    sweep = make_home(many_variants.home.path, seeds=(0, 1, 2))
    again = replace(sweep.plan.variants[1], name="again", runs=(PlannedRun(seed=0, id="ab" * 6),))
    write_run(sweep.home, "ab" * 6, (0.60, 1.8, 330.0))
    changed(sweep, sweep="more", variants=(sweep.plan.variants[0], again)).write_plan()
    place = tmp_path_factory.mktemp("place")
    (place / "ablation-runs").symlink_to(many_variants.home.path)
    with chdir(place):
        yield from served_in_browser(place / "ablation-runs")


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


@pytest.mark.parametrize(("sweep", "width"), [("loo", 400), (NAME, 1440)])
def test_verdict_and_curves_are_on_the_first_screen_and_no_text_covers_another(browser, sweep, width):
    with browser.window(width=width, height=HEIGHTS[width]) as page:
        page.open("compare", sweep=sweep)
        page.is_whole(figures=2)
        verdict = page.page.get_by_role("heading", name=re.compile(" lead")).bounding_box()
        curves, differences = page.page.evaluate(PLACES)
        assert 0 < verdict["y"] < curves["top"]
        assert curves["bottom"] < HEIGHTS[width]
        assert curves["bottom"] < differences["top"]
        for figure in (curves, differences):
            assert figure["texts"] > 10
        assert crowded(page) == []


def test_a_figure_changes_its_layout_with_the_width_of_its_place(browser):
    with browser.window() as page:
        page.open("compare", sweep="loo")
        page.is_whole(figures=2)
        wide = page.page.evaluate(PLACES)[1]
        page.page.set_viewport_size({"width": 500, "height": 900})
        page.page.wait_for_function("document.querySelectorAll('.js-plotly-plot')[1].clientHeight > 300")
        narrow = page.page.evaluate(PLACES)[1]
        assert narrow["bottom"] - narrow["top"] > 2 * (wide["bottom"] - wide["top"])
        assert crowded(page) == []


def test_the_report_reads_on_a_phone_and_on_paper_and_asks_for_nothing(browser, many_variants, tmp_path):
    report = write_in_format(
        read_results(many_variants), "html", now=datetime(2026, 11, 26, tzinfo=UTC), folder=tmp_path
    )
    with browser.window(width=400, height=HEIGHTS[400]) as window:
        page = window.page
        page.goto(report.as_uri())
        page.wait_for_function("document.querySelectorAll('.main-svg').length >= 4")
        curves, differences = page.evaluate(PLACES)  # each once
        assert page.locator("p.lead").bounding_box()["y"] < curves["top"] < HEIGHTS[400]
        for figure in (curves, differences):
            assert figure["right"] <= 400
            assert figure["right"] - figure["left"] >= 360
        assert crowded(window) == []
        buttons = page.evaluate("[...document.querySelectorAll('.modebar-btn')].map(one => one.dataset.title)")
        assert "Download plot as a PNG" in buttons
        assert not [title for title in buttons if re.search("share|cloud|chart studio", title, re.IGNORECASE)]
        column = page.locator("table").first.locator("thead th").all_inner_texts().index("compute ÷ scalerl")
        numbers = f"[...document.querySelector('table').tBodies[0].rows].map(one => one.cells[{column}].dataset.number)"
        for order in ("descending", "ascending"):
            page.locator("table").first.get_by_role("button", name="compute ÷ scalerl").press("Enter")
            found = [float(one) for one in page.evaluate(numbers) if one is not None]
            assert len(found) > 2
            assert found == sorted(found, reverse=order == "descending")
            assert page.locator(f"th[aria-sort={order}]").inner_text() == "compute ÷ scalerl"
        page.set_viewport_size({"width": A4_WIDTH, "height": 900})
        page.emulate_media(media="print")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        widths = "[...document.querySelectorAll('.main-svg, table')].map(one => one.getBoundingClientRect().right)"
        page.wait_for_function(f"Math.max(...{widths}) <= {A4_WIDTH}")
        assert not window.errors
        assert [url for url in window.elsewhere if not url.startswith("file:")] == []


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
        table = page.downloads(page.page.get_by_role("button", name="Table as CSV").first.click).decode()
        assert [line["variant"] for line in csv.DictReader(io.StringIO(table))] == ["again (more)", "loo-loss"]
        html = page.downloads(page.page.get_by_role("button", name="Figure as HTML").first.click).decode()
        assert "Plotly.newPlot" in html
        page.page.locator(".js-plotly-plot").first.hover()
        png = page.downloads(page.page.locator('.modebar-btn[data-title^="Download plot"]').first.click)
        assert png.startswith(b"\x89PNG")
        page.is_whole(figures=2)
