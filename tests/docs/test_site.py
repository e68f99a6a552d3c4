"""The site: built from the pages without a warning, whole, and readable without a network."""

import os
import re
import subprocess
import sys

import pytest
import yaml
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
    assert built == pages | {"changelog.html", "contributing.html", "404.html"}


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


def test_a_link_to_code_becomes_its_path(site):
    page = (site / "statistics.html").read_text()
    assert "<code>platform/ablations/fit</code>" in page
    assert 'href="../' not in page


def test_every_page_is_in_the_menu():
    # `strict` fails for pages that the menu leaves out; this holds as long as nothing takes it away.
    settings = yaml.load((REPOSITORY / "mkdocs.yml").read_text(), yaml.SafeLoader)
    assert settings["strict"] is True
    assert settings["validation"] == dict.fromkeys(
        ("omitted_files", "absolute_links", "unrecognized_links", "anchors"), "warn"
    )
