"""Tables in the terminal at every width: nothing cut, nothing beyond the edge."""

import pytest
from fixtures_document import printed

from ablations.report.documents.blocks import Cell, Column, Table, cells, table_of_rows
from ablations.report.writers.terminal_table import shortest

NAME = "loss.type=dapo,batch.prompts=32,length=2048"
LEVEL = "no difference seen\n-0.003 [-0.023, +0.017]"
A = "0.706 [0.665, 0.729]"
SAID = "entropy is down to 0.019 nats per token at a pass rate of 0.35: answers no longer differ"
WIDE = Table(
    name="loo",
    title="loo at scale laptop",
    notes=("a note",),
    columns=(
        Column(heading="variant"),
        Column(heading="level", kind="words"),
        Column(heading="A [95 %]", kind="number"),
        Column(heading="cost", kind="number"),
        Column(heading="message", kind="prose"),
    ),
    rows=(cells("scalerl", "reference", "0.673 [0.653, 0.702]", "5627", ""), cells(NAME, LEVEL, A, "5635", SAID)),
)
RANKED = Table(
    name="ranked",
    columns=(Column(heading="variant"), Column(heading="seeds", rank=1), Column(heading="level - ref", kind="number")),
    rows=(
        cells("lr-0.1", "3 of 3", "-0.064 [-0.074, -0.054]*"),
        cells("a-rather-long-name-of-a-variant", "2 of 3", "+0.007 [-0.001, …]?"),
    ),
)
HOURS = table_of_rows(
    [
        {"variant": "scalerl", "decode": "100.0%", "wait": "0.0%", "dead": "", "MFU": "0.9%"},
        {"variant": "loo-loss", "decode": "83.4%", "wait": "16.6%", "dead": "", "MFU": ""},
    ],
    name="hours",
    title="hours",
    kinds={"MFU": "words"},
    notes=("a note",),
)


def lines_at(width: int, table: Table = WIDE) -> list[str]:
    return printed([table], width=width).splitlines()


@pytest.mark.parametrize("width", [*range(44, 130, 7), 240])
def test_no_width_cuts_a_name_a_number_or_a_word_and_no_line_is_too_long(width):
    lines = lines_at(width)
    assert max(map(len, lines)) <= width
    said = "\n".join(lines)
    for whole in (NAME, "-0.003", "[-0.023, +0.017]", "0.706", "[0.665, 0.729]", "[0.653, 0.702]", "5635", "5627"):
        assert whole in said
    assert "…" not in said
    assert set(SAID.split()) <= set(said.split())


def test_wide_enough_every_row_is_one_line_or_two_where_a_cell_has_two():
    lines = lines_at(240)
    assert len(lines) == 1 + 1 + 1 + 2 + 1  # title, headings, the reference, two lines of the other, the note
    heading, verdict, interval = lines[1], lines[3], lines[4]
    assert verdict.startswith(f"{NAME}  no difference seen")
    assert interval.index("-0.003") == heading.index("level") == verdict.index("no difference")
    assert verdict.index(A) + len(A) == heading.index("A [95 %]") + len("A [95 %]")


def test_prose_that_has_no_room_stands_below_its_row():
    lines = lines_at(120)
    first = next(number for number, line in enumerate(lines) if line.startswith(NAME))
    assert lines[1].split() == ["variant", "level", "A", "[95", "%]", "cost"]
    assert lines[first + 2].startswith("    entropy is down to 0.019")
    assert not any("message" in line for line in lines)


def test_narrow_each_row_is_a_block_under_its_name():
    assert lines_at(60) == [
        "loo at scale laptop",
        "scalerl",
        "  level reference",
        "  A [95 %] 0.673 [0.653, 0.702]",
        "  cost 5627",
        NAME,
        "  level    no difference seen  -0.003 [-0.023, +0.017]",
        f"  A [95 %] {A}",
        "  cost 5635",
        "  message  entropy is down to 0.019 nats per token at a pass",
        "           rate of 0.35: answers no longer differ",
        "a note",
    ]


@pytest.mark.parametrize(
    ("rows", "lines"),
    [
        ([("曲線", "37"), ("c", "4")], ["曲線       37", "c           4"]),  # wide characters take two places
        ([("[red]x[/]", "a\x1b[2Jb\rc")], ["[red]x[/]  a\\x1b[2Jb\\rc"]),  # neither markup nor obeyed
    ],
)
def test_a_cell_has_its_width_and_its_text(rows, lines):
    table = table_of_rows([dict(zip(("curve", "points"), row, strict=True)) for row in rows], name="a")
    assert lines_at(80, table)[1:] == lines


def test_a_table_without_rows_has_no_headings():
    assert lines_at(80, Table(name="a", columns=(Column(heading="curve"),), rows=(), notes=("none",))) == ["none"]


def test_a_table_without_prose_has_a_column_for_each_row_before_it_has_blocks():
    assert lines_at(80, HOURS)[1].split() == ["variant", "decode", "wait", "MFU"]
    assert lines_at(26, HOURS) == [
        "hours",
        "        scalerl  loo-loss",
        "decode   100.0%     83.4%",
        "wait       0.0%     16.6%",
        "MFU        0.9%",
        "a note",
    ]
    assert lines_at(24, HOURS)[1:3] == ["scalerl", "  decode 100.0%"]


@pytest.mark.parametrize(
    ("cell", "short"),
    [
        ("-0.064 [-0.074, -0.054]*", "-.064 [-.074,-.054]*"),
        (">= 0.54", ">= .54"),
        ("10.5 [0.04, …], 0.30", "10.5 [.04,…], .30"),
        ("1,876", "1,876"),
    ],
)
def test_a_number_is_shortened_and_stays_the_same(cell, short):
    assert shortest(cell) == short


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (
            80,
            [
                "lr-0.1                           3 of 3  -0.064 [-0.074, -0.054]*",
                "a-rather-long-name-of-a-variant  2 of 3       +0.007 [-0.001, …]?",
            ],
        ),
        (
            62,
            [
                "lr-0.1                           -0.064 [-0.074, -0.054]*",
                "a-rather-long-name-of-a-variant       +0.007 [-0.001, …]?",
                "Too narrow for seeds.",
            ],
        ),
        (
            58,
            [
                "lr-0.1                          -.064 [-.074,-.054]*",
                "a-rather-long-name-of-a-variant     +.007 [-.001,…]?",
                "Too narrow for seeds.",
            ],
        ),
        (
            42,
            [
                "lr-0.1  -.064 [-.074,-.054]*",
                "a-rather-long-name-of-a-variant",
                "            +.007 [-.001,…]?",
                "Too narrow for seeds.",
            ],
        ),
    ],
)
def test_with_less_room_the_ranked_column_goes_then_numbers_are_shortened_then_a_name_has_its_own_line(width, lines):
    assert lines_at(width, RANKED)[1:] == lines


@pytest.mark.parametrize("width", [24, 42, 50, 60, 80, 120])
def test_no_width_loses_a_ranked_name_or_its_number(width):
    lines = lines_at(width, RANKED)
    said = " ".join(" ".join(lines).split())
    for name, _, number in RANKED.rows:
        assert name.text in said.replace(" ", "")
        assert shortest(number.text) in said.replace("0.", ".").replace(", ", ",")
    assert max(map(len, lines)) <= width


def test_a_heading_with_less_room_than_a_word_is_left_out():
    for width in range(27, 40):
        heading = lines_at(width, RANKED)[0]
        assert heading.split() in (["variant", "level", "-", "ref"], ["level", "-", "ref"]), width


def test_numbers_alone_have_one_line_per_row():
    rows = [
        {"variant": name, **{f"level {at}": Cell("+0.012 [+0.003, +0.021]", 0.012) for at in range(3)}} for name in "ab"
    ]
    lines = lines_at(80, table_of_rows(rows, name="levels"))
    assert [line.count("+.012 [+.003,+.021]") for line in lines] == [0, 3, 3]
