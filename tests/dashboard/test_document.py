"""A document with every kind of block on a page of the dashboard."""

from fixtures_document import DOCUMENT, HOSTILE, LEVELS
from streamlit.testing.v1 import AppTest

from ablations.report.documents.blocks import Cell, table_of_rows
from ablations.terminal.visible import made_visible
from ablations_dashboard.widgets.document import table_frame, wide_columns


def page() -> None:
    from fixtures_document import DOCUMENT

    from ablations_dashboard.widgets.document import show_document

    show_document(DOCUMENT, scope="loo", sheets={"words": b"said\n"})


def test_every_block_is_shown_and_nothing_is_obeyed():
    shown = AppTest.from_function(page, default_timeout=250).run()
    assert not shown.exception
    assert [one.value for one in shown.title] == ["loo"]
    assert [one.value for one in shown.subheader] == ["Comparison"]
    said = [one.value for one in shown.markdown]
    assert said[0] == r"##### loo\-loss trails scalerl by 0\.049\."
    assert said[1] == r"Run `platform compare loo` again\."
    assert len(shown.warning) == len(shown.error) == 1
    assert "](https" not in shown.error[0].value
    assert r"\!\[p\]" in shown.error[0].value
    assert [len(one.value.columns) for one in shown.dataframe] == [5, 1]
    assert [one.label for one in shown.expander] == ["All words"]
    notes = [one.value for one in shown.caption]
    assert notes == [r"Levels are means\.", r"A note below the table\.", r"Thin is measured\.", ""][: len(notes)]
    assert len(DOCUMENT) == 10


def test_a_table_holds_numbers_and_shows_texts():
    styled = table_frame(LEVELS)
    assert styled.data["level [95 %]"].tolist() == [0.594, -0.049, 0.012]
    assert styled.data["cost"].fillna(-1.0).tolist() == [12000.0, 9000.0, -1.0]
    html = styled.to_html()
    for text in ("12,000", "-0.049 [-0.071, …]*", "+0.012 [+0.003, +0.021]"):
        assert text in html
    assert "nan" not in html
    assert styled.data["variant"].tolist()[2] == made_visible(HOSTILE)
    assert "color: #216da4" in html
    assert "background-color: rgba(215,101,29,0.5)" in html


def test_equal_numbers_keep_their_texts_and_texts_without_a_number_are_shown():
    rows = [
        {"variant": "a", "A": Cell("0.5*", 0.5)},
        {"variant": "b", "A": Cell("0.5", 0.5)},
        {"variant": "c", "A": "no fit"},
        {"variant": "d", "A": "…"},
        {"variant": "e", "A": ""},
    ]
    styled = table_frame(table_of_rows(rows, name="levels"))
    shown = styled.to_html()
    for text in ("0.5*<", ">0.5<", ">no fit<", ">…<"):
        assert text in shown
    # A browser shows no text of a missing number.
    assert styled.data["A"].isna().tolist() == [False, False, False, False, True]
    assert max(styled.data["A"][2:4]) < min(styled.data["A"][:2])


def test_a_long_text_among_short_ones_gets_a_column_as_wide_as_itself():
    interval = "+0.0644 [0.0253, 0.1034]"
    rows = [
        {"proposal": f"p{at}", "gain": interval if at == 1 else "", "note": "w" * 200 * (at == 1)} for at in range(6)
    ]
    assert wide_columns(table_of_rows(rows[:5], name="t")) == {}
    found = wide_columns(table_of_rows(rows, name="t"))
    assert list(found) == ["gain"]
    assert found["gain"]["width"] >= 7 * len(interval)
