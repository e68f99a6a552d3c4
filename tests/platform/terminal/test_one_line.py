"""A table with one line per row at every width."""

import pytest
from rich.console import Console

from ablations.terminal.fitting_table import OneLine, shortest
from ablations.terminal.listing import Column

ROWS = [
    ("lr-0.1", "3 of 3", "-0.064 [-0.074, -0.054]*"),
    ("a-rather-long-name-of-a-variant", "2 of 3", "+0.007 [-0.001, …]?"),
]


def lines_at(width: int) -> list[str]:
    columns = [Column(heading="variant"), Column(heading="seeds", rank=1), Column(heading="level - ref", kind="number")]
    table = OneLine(columns=columns)
    for row in ROWS:
        table.add(*row)
    console = Console(width=width, no_color=True)
    with console.capture() as captured:
        console.print(table)
    return captured.get().splitlines()


def test_a_number_is_shortened_and_stays_the_same():
    assert shortest("-0.064 [-0.074, -0.054]*") == "-.064 [-.074,-.054]*"
    assert shortest(">= 0.54") == ">= .54"
    assert shortest("10.5 [0.04, …], 0.30") == "10.5 [.04,…], .30"
    assert shortest("1,876") == "1,876"


def test_with_room_every_column_stands_in_full():
    assert lines_at(80) == [
        "variant                          seeds                level - ref",
        "lr-0.1                           3 of 3  -0.064 [-0.074, -0.054]*",
        "a-rather-long-name-of-a-variant  2 of 3       +0.007 [-0.001, …]?",
    ]


def test_with_less_the_ranked_column_goes_then_the_number_is_shortened():
    assert lines_at(62)[1:] == [
        "lr-0.1                           -0.064 [-0.074, -0.054]*",
        "a-rather-long-name-of-a-variant       +0.007 [-0.001, …]?",
    ]
    assert lines_at(58)[1:] == [
        "lr-0.1                          -.064 [-.074,-.054]*",
        "a-rather-long-name-of-a-variant     +.007 [-.001,…]?",
    ]


def test_a_name_without_room_has_a_line_of_its_own_and_its_numbers_the_next():
    assert lines_at(42)[1:] == [
        "lr-0.1  -.064 [-.074,-.054]*",
        "a-rather-long-name-of-a-variant",
        "            +.007 [-.001,…]?",
    ]


@pytest.mark.parametrize("width", [24, 42, 50, 60, 80, 120])
def test_no_width_loses_a_name_or_a_number_or_writes_beyond_its_edge(width):
    lines = lines_at(width)
    said = " ".join(" ".join(lines).split())
    for name, _, number in ROWS:
        assert name in said.replace(" ", "")
        assert shortest(number) in said.replace("0.", ".").replace(", ", ",")
    assert max(map(len, lines)) <= width
