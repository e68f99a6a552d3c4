"""The first screen of Compare, and the texts of its figures and of the report's, in headless Chromium."""

import re
from datetime import UTC, datetime
from itertools import combinations

import pytest
from dashboard.browser import served_in_browser
from fixtures_home import make_home
from generated_home import NAME

from ablations.findings.results import read_results
from ablations.report.page import write_report

HEIGHTS = {1440: 900, 400: 800}
"""Height of a screen by its width."""
PLACES = """() => [...document.querySelectorAll('.js-plotly-plot')].map(plot => {
    const box = plot.getBoundingClientRect();
    const texts = [...plot.querySelectorAll('.main-svg text')].filter(one => one.textContent.trim());
    return {top: box.top, bottom: box.bottom, left: box.left, right: box.right, texts: texts.map(one => {
        const own = one.getBoundingClientRect();
        return {text: one.textContent, left: own.left, right: own.right, top: own.top, bottom: own.bottom}; })
        .filter(one => one.right > one.left)}; })"""
CLOSE_PX = 1.5
"""Boxes hold the air above and below the letters; this much of it may be shared."""


@pytest.fixture(scope="module")
def browser(many_variants):
    make_home(many_variants.home.path, seeds=(0, 1, 2))
    yield from served_in_browser(many_variants.home.path)


def overlapping(figure):
    """Pairs of texts of a figure of which one covers another."""
    return [
        (one["text"], other["text"])
        for one, other in combinations(figure["texts"], 2)
        if min(one["right"], other["right"]) - max(one["left"], other["left"]) > CLOSE_PX
        and min(one["bottom"], other["bottom"]) - max(one["top"], other["top"]) > CLOSE_PX
    ]


def cut(figure):
    """Texts that leave their figure."""
    return [
        one["text"] for one in figure["texts"] if one["left"] < figure["left"] - 1 or one["right"] > figure["right"] + 1
    ]


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
            assert len(figure["texts"]) > 10
            assert overlapping(figure) == []
            assert cut(figure) == []
        assert page.page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_figure_changes_its_layout_with_the_width_of_its_place(browser):
    with browser.window() as page:
        page.open("compare", sweep="loo")
        page.is_whole(figures=2)
        wide = page.page.evaluate(PLACES)[1]
        page.page.set_viewport_size({"width": 500, "height": 900})
        page.page.wait_for_function("document.querySelectorAll('.js-plotly-plot')[1].clientHeight > 300")
        narrow = page.page.evaluate(PLACES)[1]
        assert narrow["bottom"] - narrow["top"] > 2 * (wide["bottom"] - wide["top"])
        assert overlapping(narrow) == []


def test_the_report_begins_with_verdict_and_curves_and_no_text_covers_another(browser, many_variants, tmp_path):
    report = write_report(read_results(many_variants), now=datetime(2026, 11, 26, tzinfo=UTC), folder=tmp_path)
    with browser.window(width=400, height=HEIGHTS[400]) as page:
        page.page.goto(report.as_uri())
        page.page.wait_for_function("document.querySelectorAll('.main-svg').length >= 4")
        curves, differences, *_ = page.page.evaluate(PLACES)
        assert page.page.locator("p.headline").bounding_box()["y"] < curves["top"] < HEIGHTS[400]
        assert [overlapping(figure) for figure in (curves, differences)] == [[], []]
        assert [cut(figure) for figure in (curves, differences)] == [[], []]
