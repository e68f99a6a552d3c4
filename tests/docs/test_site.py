"""The site: built from the pages without a warning, whole, and readable without a network."""

import os
import re
import subprocess
import sys

import pytest
from dashboard.browser import CHROMIUM, require_chromium
from places import REPOSITORY


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    # A proxy that nobody listens at: the build fetches nothing.
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    environment = os.environ | nowhere | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    assert built.stderr == ""
    return folder


def test_every_page_of_docs_is_on_the_site(site):
    docs = REPOSITORY / "docs"
    pages = {path.relative_to(docs).with_suffix(".html").as_posix() for path in docs.rglob("*.md")}
    built = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    from_code = {"commands.html", "recipes.html", "sweep_file.html"}
    assert built == pages | from_code | {"changelog.html", "contributing.html", "404.html"}


def test_a_page_loads_nothing_from_the_network(site):
    for page in site.rglob("*.html"):
        loaded = re.findall(r'<(?:script|img|iframe)[^>]*\ssrc="?([^"\s>]+)', page.read_text())
        loaded += re.findall(r'<link[^>]*rel="?(?:stylesheet|icon|preconnect)[^>]*href="?([^"\s>]+)', page.read_text())
        assert loaded
        assert not [address for address in loaded if "//" in address]


def test_no_markdown_is_left_on_a_page(site):
    for page in site.rglob("*.html"):
        article = page.read_text().partition("<article")[2].partition("</article>")[0]
        prose = re.sub(r"<(pre|code)\b.*?</\1>", "", article, flags=re.DOTALL)
        lines = [line for line in re.sub(r"<[^>]+>", "", prose).splitlines() if re.match(r"\s*(\* |\||#+ )", line)]
        assert not lines, page.name
        assert "](" not in prose, page.name


@pytest.fixture(scope="module")
def chromium():
    require_chromium()
    from playwright.sync_api import sync_playwright

    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"]) as browser,
    ):
        yield browser


CUT = """() => [document.documentElement, ...document.querySelectorAll('pre, pre > code, .md-typeset__scrollwrap')]
  .filter(one => one.scrollWidth > one.clientWidth + 1)
  .map(one => `${one.tagName} ${one.scrollWidth} in ${one.clientWidth}: ${one.innerText.slice(0, 60)}`)"""


@pytest.mark.slow
@pytest.mark.parametrize("width", [1440, 400])
def test_nothing_is_cut_at_the_right(site, chromium, width):
    page = chromium.new_context(viewport={"width": width, "height": 900}).new_page()
    for path in sorted(site.rglob("*.html")):
        if path.name != "404.html":  # whose links are those of a server
            page.goto(path.as_uri())
            assert page.evaluate(CUT) == [], path.name


def test_the_search_works_on_pages_that_are_opened_from_a_folder(site, chromium):
    page = chromium.new_context().new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto((site / "results/paper.html").as_uri())
    page.locator("input.md-search__input").click()
    page.keyboard.type("wandb")
    page.get_by_role("link", name="Coming from W&B, MLflow, TRL, Hydra").first.wait_for()
    assert [url for url in requests if not url.startswith("file:")] == []
