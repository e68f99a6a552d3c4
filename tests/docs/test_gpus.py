"""The lists of what was seen and of what has not been run name rows of the report, or say why there is none."""

import json
import re

from gpu_report.known_rows import KNOWN
from places import REPOSITORY

SEEN, NOT_RUN = (REPOSITORY / "docs" / "gpus.md").read_text().split("## Seen on one H200")[1].split("## Not run")
RESULT = json.loads((REPOSITORY / "benchmarks" / "results" / "gpu_report_h200.json").read_text())


def rows(text):
    """Cells of a table's rows, without its head."""
    return [[cell.strip() for cell in line.strip("|\n").split("|")] for line in text.splitlines() if line[:1] == "|"][
        2:
    ]


ROW = re.compile(r"`([a-z]+\.[\w.]+)`")


def test_every_row_that_a_list_names_is_in_the_report():
    named = [name for _, _, settled in rows(SEEN) + rows(NOT_RUN) for name in ROW.findall(settled)]
    assert len(named) > 40
    assert [name for name in named if name not in KNOWN] == []


def test_what_was_seen_was_measured():
    named = [name for _, _, settled in rows(SEEN) for name in ROW.findall(settled)]
    values = {name: RESULT["after"].get(name, RESULT["first"].get(name)) for name in named}
    assert [name for name, row in values.items() if row is None or row["value"] is None] == []
    failed = {name for name, row in values.items() if row["outcome"] == "fail"}
    assert failed == {
        "throughput.qwen3_0.1b.2k",
        "memory.context",
    }  # the page says so of one; the other ran beside others
