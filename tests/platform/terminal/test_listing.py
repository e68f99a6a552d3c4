"""Tables at every width: nothing cut, nothing beyond the edge."""

import pytest
from rich.console import Console

from ablations.terminal.listing import Column, Listing

NAME = "loss.type=dapo,batch.prompts=32,length=2048"
LEVEL = "no difference seen\n-0.003 [-0.023, +0.017]"
A = "0.706 [0.665, 0.729]"
SAID = "entropy is down to 0.019 nats per token at a pass rate of 0.35: answers no longer differ"


def table() -> Listing:
    columns = (
        Column(heading="variant"),
        Column(heading="level", kind="words"),
        Column(heading="A [95 %]", kind="number"),
        Column(heading="cost", kind="number"),
        Column(heading="message", kind="prose"),
    )
    made = Listing(columns=columns, title="loo at scale laptop", notes=("a note",))
    made.add("scalerl", "reference", "0.673 [0.653, 0.702]", "5627", "")
    made.add(NAME, LEVEL, A, "5635", SAID)
    return made


def lines_at(width: int, made: Listing | None = None) -> list[str]:
    console = Console(width=width, no_color=True)
    with console.capture() as captured:
        console.print(made or table())
    return captured.get().splitlines()


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


def test_wide_characters_take_two_places():
    made = Listing(columns=(Column(heading="curve"), Column(heading="points", kind="number")))
    made.add("曲線", "37")
    made.add("c", "4")
    assert lines_at(80, made) == ["curve  points", "曲線       37", "c           4"]


def test_what_a_cell_holds_is_neither_markup_nor_obeyed():
    made = Listing(columns=(Column(heading="variant"), Column(heading="message", kind="prose")))
    made.add("[red]x[/]", "a\x1b[2Jb\rc")
    assert lines_at(80, made)[1].split("  ") == ["[red]x[/]", "a\\x1b[2Jb\\rc"]


def test_a_table_without_rows_has_no_headings():
    assert lines_at(80, Listing(columns=(Column(heading="curve"),), notes=("none",))) == ["none"]


def test_a_table_that_may_be_turned_has_a_column_for_each_row_before_it_has_blocks():
    names = ("decode", "wait", "dead", "MFU")
    columns = (Column(heading="variant"), *(Column(heading=name, kind="number") for name in names))
    made = Listing(columns=columns, title="hours", notes=("a note",), turns=True)
    made.add("scalerl", "100.0%", "0.0%", "", "0.9%")
    made.add("loo-loss", "83.4%", "16.6%", "", "")
    assert lines_at(80, made)[1].split() == ["variant", *names]
    assert lines_at(26, made) == [
        "hours",
        "        scalerl  loo-loss",
        "decode   100.0%     83.4%",
        "wait       0.0%     16.6%",
        "MFU        0.9%",
        "a note",
    ]
    assert lines_at(24, made)[1:3] == ["scalerl", "  decode 100.0%"]
