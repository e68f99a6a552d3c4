"""A document with every kind of block as Markdown, read by another program: nothing that people wrote is obeyed."""

import markdown as python_markdown
import pytest
from fixtures_document import DOCUMENT, HOSTILE, Tags

from ablations.report.writers.markdown import markdown_files, markdown_text
from ablations.terminal.visible import made_visible


def read(text: str) -> Tags:
    return Tags(python_markdown.markdown(text, extensions=["tables"]))


def test_every_block_is_written_and_nothing_is_obeyed():
    files = markdown_files(DOCUMENT, "report.md")
    assert files.keys() == {"report.md", "curves.png"}
    assert files["curves.png"].startswith(b"\x89PNG")
    page = read(files["report.md"].decode())
    names = [name for name, _ in page.found]
    for name, number in (("h1", 1), ("h2", 2), ("h3", 1), ("table", 2), ("blockquote", 1), ("strong", 1), ("code", 1)):
        assert names.count(name) == number, name
    assert page.those("img") == [{"alt": "Pass rate against compute", "src": "curves.png"}]
    assert not page.those("a") + page.those("em") + page.those("script")
    text = page.text.replace("\\~", "~")  # GitHub knows this escape, this reader does not
    assert text.count(" ".join(made_visible(HOSTILE).split())) == 2
    assert "lower" in text
    assert "-0.049 [-0.071, …]*" in text


@pytest.mark.parametrize("text", ["- a", "1. a", "# a", "> a", "+ a", "=== a", "a * b", "a|b", "[a](b)", "<b>", "_a_"])
def test_no_text_begins_markup(text):
    page = read(markdown_text(text))
    assert {name for name, _ in page.found} == {"p"}
    assert page.text == text
