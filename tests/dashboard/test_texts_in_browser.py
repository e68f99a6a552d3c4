"""No text of a page covers another, is cut off or leaves the page: with few and many variants, wide and on a phone."""

import pytest
from dashboard.browser import served_in_browser
from dashboard.texts import crowded
from fixtures_home import collapse, make_home, planned_run
from generated_home import NAME, Size, write_home

PLANTED = """([style, text]) => {
    const one = document.createElement('div');
    one.style = style; one.textContent = text;
    document.querySelector('[data-testid=stMain]').append(one);
}"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """The pages of `loo`, three variants of which one has a collapsed run, and of a sweep with eight."""
    path = tmp_path_factory.mktemp("home")
    write_home(path, Size(variants=8, seeds=2, evaluations=24, metrics=12))
    sweep = make_home(path, seeds=(0, 1, 2))
    collapse(sweep, planned_run("loo-loss", 1).id, after=1500.0)
    yield from served_in_browser(path)


@pytest.mark.parametrize("width", [1440, 400])
@pytest.mark.parametrize(
    ("path", "query", "figures"),
    [
        ("compare", {"sweep": NAME}, 2),
        ("compare", {"sweep": "loo", "open": ["words", "numbers", "plane", "fits", "linearised", "metrics"]}, 5),
        ("run", {"sweep": "loo", "run": planned_run("loo-loss", 1).id}, 3),
        ("runs", {"sweep": NAME, "matters": "1"}, 1),
        ("forecast", {"sweep": NAME}, 2),
    ],
)
def test_no_text_covers_another_or_is_cut_off_and_nothing_scrolls_sideways(browser, path, query, figures, width):
    with browser.window(width=width) as page:
        page.open(path, **query)
        page.is_whole(figures=figures)
        assert crowded(page) == []


def test_what_is_planted_on_a_page_is_found(browser):
    with browser.window(width=400) as page:
        page.open("compare", sweep="loo")
        page.is_whole(figures=2)
        figure = page.page.locator(".xtitle").first.bounding_box()
        on_top = f"position: fixed; left: {figure['x']}px; top: {figure['y']}px"
        for planted in (
            [on_top, "over the title of an axis"],
            ["position: fixed; bottom: 0; width: 40px; overflow: hidden; white-space: nowrap", "too long for its box"],
            ["position: absolute; left: 390px; width: 200px", "too far right"],
        ):
            page.page.evaluate(PLANTED, planted)
        found = "\n".join(crowded(page))
        for said in (
            "'over the title of an axis' covers 'compute (modelled GPU-hours)'",
            "'too long for its box' is cut off",
            "'too far right' is beside the page",
            "px wide in a window of 400 px",
        ):
            assert said in found
