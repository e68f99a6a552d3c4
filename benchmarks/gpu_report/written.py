"""The report as Markdown and as JSON."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gpu_report.alone import PartResult
from gpu_report.bound import Value
from gpu_report.known_rows import KNOWN
from gpu_report.results import FAIL, Row


def write_report(folder: Path, device: str, facts: Mapping[str, str], parts: Sequence[PartResult]) -> None:
    """Write `report.md` and `report.json`."""
    content = {
        "device": device,
        "machine": dict(facts),
        "outcomes": outcomes(parts),
        "failed": failed(parts),
        "parts": [asdict(part) for part in parts],
    }
    (folder / "report.json").write_text(json.dumps(content, indent=1) + "\n")
    (folder / "report.md").write_text(markdown(device, facts, parts))


def outcomes(parts: Sequence[PartResult]) -> dict[str, int]:
    """Number of rows by outcome."""
    return dict(Counter(row.outcome for part in parts for row in part.rows))


def failed(parts: Sequence[PartResult]) -> list[str]:
    """Ids of rows that failed, and names of parts that ended with an error."""
    rows = [row.id for part in parts for row in part.rows if row.outcome == FAIL]
    return [*rows, *(part.name for part in parts if part.error)]


def markdown(device: str, facts: Mapping[str, str], parts: Sequence[PartResult]) -> str:
    """The whole report for people to read."""
    counts = ", ".join(f"{number} {outcome}" for outcome, number in sorted(outcomes(parts).items()))
    lines = [f"# Report of device {device}", "", f"{counts}; {sum(part.wall_s for part in parts):.0f} s in all.", ""]
    lines += ["| machine | |", "|---|---|", *(f"| {name} | {cell(value)} |" for name, value in facts.items())]
    for part in parts:
        lines += ["", f"## {part.name}", "", f"{part.wall_s:.1f} s of at most {part.limit_s:g} s."]
        if part.error:
            lines += ["", f"Ended with an error: `{part.error}`"]
        lines += ["", "| row | what | value | must be | outcome | more |", "|---|---|---|---|---|---|"]
        lines += [line_of(row) for row in part.rows]
    return "\n".join(lines) + "\n"


def line_of(row: Row) -> str:
    """One row of the table."""
    known = KNOWN[row.id]
    must = "; ".join(text for text in (row.bound, known.reference) if text)
    more = [row.reason] if row.reason else []
    more += [f"{name.replace('_', ' ')} {text_of(value)}" for name, value in row.detail.items()]
    value = "" if row.value is None else text_of(row.value)
    cells = (f"`{row.id}`", known.what, value, must, row.outcome, ", ".join(more))
    return f"| {' | '.join(cell(one) for one in cells)} |"


def text_of(value: Value | Any) -> str:
    """Four digits of a number, anything else as it is."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def cell(text: str) -> str:
    """Text that ends no cell of a table."""
    return text.replace("|", "/").replace("\n", " ")
