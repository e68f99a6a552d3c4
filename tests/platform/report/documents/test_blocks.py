"""Tables of a document whose headings hold long names."""

from dataclasses import replace

from fixtures_document import printed

from ablations.report.documents.blocks import Cell, Column, table_of_rows

LONG = "Qwen2.5-0.5B-Instruct-GSM8K-p2b4-gamma2.0"
OTHER = "Qwen2.5-0.5B-Instruct-GSM8K-p4b4-gamma2.0"
ROW = {"variant": LONG, f"level − {LONG} at 52": Cell("own 0.683"), f"A − {LONG}": Cell("?"), f"B ÷ {OTHER}": Cell("1")}


def test_a_long_name_in_headings_has_a_letter_and_the_first_notes_say_which():
    table = table_of_rows([ROW], name="a", kinds={f"A − {LONG}": "words"}, notes=("a note",))
    assert [one.heading for one in table.columns] == ["variant", "level − [a] at 52", "A − [a]", "B ÷ [b]"]
    assert [one.kind for one in table.columns] == ["name", "number", "words", "number"]
    assert table.notes == (f"[a] is {LONG}.", f"[b] is {OTHER}.", "a note")
    assert replace(table, title="again") == replace(table, title="again", notes=table.notes)
    said = printed([table], width=100)
    assert said.count(LONG) == 2  # its row and the note
    assert said.splitlines()[0].split("  ")[-1].strip() == "B ÷ [b]"


def test_headings_of_words_and_short_names_stay_as_they_are():
    headings = (
        "variant",
        "95 % intervals that held",
        "mean |error| of no more gain",
        "level − loss.type=dapo,length=2048",
    )
    table = table_of_rows([dict.fromkeys(headings, Cell("1"))], name="a")
    assert tuple(one.heading for one in table.columns) == headings
    assert table.notes == ()
    assert replace(table, columns=(*table.columns, Column(heading=LONG))).notes == (f"[a] is {LONG}.",)
