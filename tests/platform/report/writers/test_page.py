"""A document with every kind of block as a page: nothing that people wrote is obeyed, and tables sort by number."""

import pytest
from fixtures_document import DOCUMENT, HOSTILE, LEVELS, Tags

from ablations.report.documents.blocks import Cell
from ablations.report.writers.page import heat_colour, page_of
from ablations.terminal.visible import made_visible


@pytest.fixture(scope="module")
def tags() -> Tags:
    return Tags(page_of(DOCUMENT, title=f"loo {HOSTILE}"))


def test_every_block_has_its_element(tags):
    names = [name for name, _ in tags.found]
    for name, number in (("h1", 1), ("h2", 1), ("h3", 1), ("table", 2), ("figure", 1), ("details", 1), ("code", 1)):
        assert names.count(name) == number, name
    assert [one.get("class") for one in tags.those("p")] == ["lead", None, "note", "warning", "error", "note", None]
    assert tags.those("figure") == [{"role": "group", "aria-label": "Pass rate against compute"}]
    assert "Thin is measured." in tags.text
    assert tags.text.index("All words") < tags.text.index("Method: means")


def test_nothing_is_obeyed_or_asked_of_a_network(tags):
    assert not {name for name, _ in tags.found} & {"img", "a", "link", "iframe"}
    assert not [one for _, attrs in tags.found for one in attrs if one in ("src", "href", "onerror")]
    assert tags.text.count(made_visible(HOSTILE)) == 3  # title, error, cell


def test_a_table_is_sorted_by_a_button_that_the_keyboard_reaches_and_cells_have_their_numbers(tags):
    assert len(tags.those("button")) == len(tags.those("th")) == 6
    cells = tags.those("td")[:15]
    assert [one.get("data-number") for one in cells[1::5]] == ["0.594", "-0.049", "0.012"]
    assert [one.get("data-number") for one in cells[2::5]] == ["12000.0", "9000.0", None]
    assert [one["class"] for one in cells[:5]] == [one.kind for one in LEVELS.columns]


def test_colours_name_the_variant_and_say_direction_size_and_whether_it_is_decided(tags):
    assert [one["style"] for one in tags.those("i")] == ["background:#1a1a1a", "background:#216da4"]
    blue, orange = "rgba(33,109,164,", "rgba(215,101,29,"
    cells = [Cell("", heat=0.5), Cell("", heat=-1.0), Cell("", heat=-1.0, tone="faint"), Cell("")]
    assert [*map(heat_colour, cells)] == [f"{blue}0.25)", f"{orange}0.5)", f"{orange}0.12)", ""]
    assert [one["style"] for one in tags.those("td") if "style" in one] == [
        f"background: {orange}0.5)",
        f"background: {blue}0.125)",
    ]
