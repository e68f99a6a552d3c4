"""Numbers that the paper publishes (arXiv 2510.13786), each with its source: `published.csv` beside this file.

>>> published()["ScaleRL"].A
0.61
"""

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True, kw_only=True)
class PublishedFit:
    """A published fit of eq. 1; None for an unpublished number.

    PublishedFit(run="ScaleRL", A=0.61, B=1.92, C_mid=2542.0, source="table 1")
    """

    run: str
    A: float | None
    B: float | None
    C_mid: float | None
    """Midpoint in GPU-hours."""
    source: str


@cache
def published() -> dict[str, PublishedFit]:
    """Every published fit by the name of its run."""
    text = files("ablations.findings").joinpath("published.csv").read_text(encoding="utf-8")
    return {
        row["run"]: PublishedFit(
            run=row["run"],
            **{name: float(row[name]) if row[name] else None for name in ("A", "B", "C_mid")},
            source=row["source"],
        )
        for row in csv.DictReader(text.splitlines())
    }
