"""A document with every kind of block, in the terminal."""

import re

import pytest
from fixtures_document import DOCUMENT, HOSTILE, LEVELS, printed

from ablations.report.documents.blocks import Text, table_of_rows


def test_every_block_but_a_figure_is_printed_in_its_order():
    text = printed(DOCUMENT)
    table = ["levels of loo", "12,000", "-0.049", "9000", "weak", "A note below"]
    texts = ["loo", "loo-loss trails", "`platform compare loo`", "Levels are", "2 of 3", "dapo collapsed", "Comparison"]
    said = [*texts, *table, "All words", "Method", "a sentence"]
    places = [text.index(one) for one in said]
    assert places == sorted(places)
    assert "Thin is measured" not in text
    assert "\x1b" not in text
    assert "\\x1b[31m \\u202e" in text


def test_paragraphs_stand_together_and_tables_apart():
    lines = printed(DOCUMENT).splitlines()
    assert lines[lines.index("levels of loo") - 1] == "Comparison"
    assert lines[lines.index("Run `platform compare loo` again.") + 1] == "Levels are means."
    assert lines[lines.index("A note below the table.") + 1] == ""


def test_a_tone_is_a_colour_of_the_terminal():
    text = printed(DOCUMENT, colour=True, width=300)
    for colour, said in ((31, "lower"), (32, r"\+0\.012"), (33, "weak"), (33, "2 of 3"), (31, "dapo")):
        assert re.search(rf"\x1b\[{colour}m *{said}", text), said


@pytest.mark.parametrize("width", [40, 60, 80, 160])
def test_at_no_width_is_a_cell_cut_or_a_line_too_long(width):
    text = printed([LEVELS], width=width)
    assert max(map(len, text.splitlines())) <= width
    for whole in ("-0.049", "[-0.071, …]*", "12,000", "resolved", "loo-loss", *HOSTILE.split(" ")[:2]):
        assert whole in text


def test_a_table_of_sentences_alone_is_printed_at_any_width():
    rows = [{"said": " ".join(["word"] * 30)}]
    assert printed([table_of_rows(rows, name="said", kinds={"said": "prose"})], width=30).count("word") == 30


def test_nothing_is_printed_of_no_blocks():
    assert printed([]) == ""
    assert printed([Text(text="")]) == "\n"
