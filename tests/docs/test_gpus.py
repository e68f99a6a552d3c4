"""The list of what has not been run names rows that the report of a GPU has, or says why it has none."""

import re

from gpu_report.known_rows import KNOWN
from places import REPOSITORY

TABLE = (REPOSITORY / "docs" / "gpus.md").read_text().split("## Not run")[1]
ENTRIES = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in TABLE.splitlines() if line[:1] == "|"][
    2:
]
ROW = re.compile(r"`([a-z]+\.[\w.]+)`")


def test_every_row_that_the_list_names_is_in_the_report():
    named = [name for _, _, settled in ENTRIES for name in ROW.findall(settled)]
    assert len(named) > 20
    assert [name for name in named if name not in KNOWN] == []


def test_every_entry_has_a_row_or_says_why_none_can_settle_it():
    assert len(ENTRIES) > 12
    for what, _, settled in ENTRIES:
        assert ROW.search(settled) or re.fullmatch(r"- \(\w.+\)", settled), what
