"""Every page of the dashboard in headless Chromium, on logs of another trainer that were imported."""

from urllib.parse import urlsplit

import pytest
from dashboard.browser import served_in_browser
from nine_logs import CEILINGS, import_ladder, import_nine, write_nine

from ablations.home.home import Home
from ablations.home.started_sweep import read_sweep
from ablations_dashboard.reading.contents import empty_pages

VARIANTS = tuple(CEILINGS)
PAGES: dict[str, tuple[dict[str, str], tuple[str, ...], int]] = {
    "": ({}, ("mine", "9 of 9 done", "highest pass rate: cispo"), 0),
    "compare": ({"sweep": "mine"}, ("cispo leads dapo by", *VARIANTS), 2),
    "forecast": ({"sweep": "mine"}, ("mine: what more compute would buy", *VARIANTS), 2),
    "ladder": ({"study": "study"}, ("new: carries", "1e8", "1e9"), 1),
    "run": ({"sweep": "mine"}, ("cispo-s1", "by the reader verl", "Newest evaluation by task"), 3),
    "recipes": ({}, ("variants of study@1e9, study@1e8, mine are not listed", "settings differ"), 0),
    "runs": ({"sweep": "mine"}, ("mine: runs", "9 of 9 runs"), 0),
    "search": ({"sweep": "mine"}, ("Search: mine", "not a search, so it has no trials"), 0),
    "paper": ({}, ("No card in",), 0),
    "campaigns": ({}, ("No campaign in",), 0),
}
"""By path, what its URL selects, what a reader finds there, and the number of its figures."""


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Home:
    """The nine logs as sweep `mine`, and a study at two scales."""
    home, folder = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("logs") / "runs"
    folder.mkdir()
    import_nine(home, write_nine(folder))
    import_ladder(home, folder.parent)
    return Home(home)


@pytest.fixture(scope="module")
def page(home):
    """One tab for all pages, so that it loads Streamlit's scripts once."""
    for browser in served_in_browser(home.path):
        with browser.window() as page:
            yield page


def selected(home: Home, path: str) -> dict[str, str]:
    """What the URL selects; of the page of a run, the second seed of the first variant."""
    query = PAGES[path][0]
    return query | ({"run": read_sweep(home, "mine").plan.variants[0].runs[1].id} if path == "run" else {})


@pytest.mark.parametrize("path", PAGES)
def test_a_page_shows_an_imported_sweep(page, home, path):
    _, found, figures = PAGES[path]
    page.open(path, **selected(home, path))
    for text in found:
        page.page.wait_for_function("text => document.body.innerText.includes(text)", arg=text)
    page.is_whole(figures=figures)
    assert page.page.locator('[data-testid="stAlertContentError"]').count() == 0, page.text()


def test_no_page_is_left_out_but_those_without_content(page, home):
    page.open()
    empty = empty_pages(home)
    assert empty == {"search", "campaigns", "paper"}
    links = page.page.locator('[data-testid="stSidebarNavLink"]')
    links.nth(len(PAGES) - len(empty) - 1).wait_for()
    listed = {urlsplit(link.get_attribute("href")).path.strip("/") for link in links.all()}
    assert listed == PAGES.keys() - empty
