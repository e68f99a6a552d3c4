"""Checks as a document: a table for each part, with the rows at fault and the advice below what was found."""

from ablations.report.documents.checks import checks_document, counts_text, lines_of
from scalerl.checks.finding import Fault, Finding

FAULTS = [Fault(where=f"a.jsonl:{n}", what="the same problem as a.jsonl:1", kind="duplicate") for n in range(2, 32)]
FAULTS.append(Fault(where="a.jsonl:40", what="the answer is NaN", kind="unreadable"))
BAD = Finding(
    part="data",
    check="math",
    level="error",
    found="31 faults",
    faults=tuple(FAULTS),
    variants=("scalerl", "a", "b", "c"),
    remedy="delete them",
    log=("Traceback",),
)
BELOW = [
    "a.jsonl:11: duplicate: the same problem as a.jsonl:1",
    "and 20 more duplicate",
    "a.jsonl:40: unreadable: the answer is NaN",
    "variants: scalerl, a, b and 1 more",
    "-> delete them",
]


def test_many_faults_of_one_kind_do_not_hide_another():
    assert lines_of(BAD, 5)[0] == "data, math: 31 faults"
    assert [line.removeprefix("  ") for line in lines_of(BAD, 5)[10:]] == BELOW
    assert not any("variants" in line for line in lines_of(BAD, 4)), "these are all"
    assert [line.partition(":")[0] for line in lines_of(BAD, 4, most_faults=0)] == ["data, math", "  -> delete them"]


def test_each_part_is_a_table_of_its_checks():
    fine = [Finding(part="data", check="code", level="ok", found="7 prompts")]
    other = [Finding(part="memory", check="device", level="warning", found="tight")]
    data, memory = checks_document([*fine, BAD, *other], 5)
    assert [column.heading for column in data.columns] == ["result", "data", "found"]
    assert [[cell.text for cell in row][:2] for row in data.rows] == [["ok", "code"], ["error", "math"]]
    assert data.rows[1][2].text.split("\n")[-6:] == [*BELOW, "| Traceback"]
    assert [row[0].tone for row in (*data.rows, *memory.rows)] == ["good", "bad", "mixed"]
    counts = counts_text([*fine, BAD, *other])
    assert (counts.text, counts.kind) == ("1 ok, 1 warning, 1 error", "error")
    assert counts_text(fine).kind == "plain"


def test_one_change_that_mends_many_rows_is_said_once_with_three_of_them():
    advice = "set `model.tokenizer: characters` for arbitrary text"
    rows = [
        Fault(where=f"a.jsonl:{n}", what=f"'H' in 'How {n}' is no symbol; {advice}", kind="unreadable")
        for n in range(1, 201)
    ]
    other = Fault(where="a.jsonl:300", what="the answer is NaN", kind="unreadable")
    found = Finding(part="data", check="mine", level="error", found="no task", faults=(*rows, other))
    assert lines_of(found, 1)[1:] == [
        f"  200 unreadable rows: {advice}; for example",
        *(f"    a.jsonl:{n}: 'H' in 'How {n}' is no symbol" for n in (1, 2, 3)),
        "  a.jsonl:300: unreadable: the answer is NaN",
    ]
