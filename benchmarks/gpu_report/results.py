"""Rows of a part, written line by line as they are found."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from gpu_report.bound import Bound, Value
from gpu_report.known_rows import KNOWN, NOT_ON_A_CPU, rows_of

PASS, FAIL, SKIPPED = "pass", "fail", "skipped"


@dataclass(frozen=True, kw_only=True)
class Row:
    """`Row(id="step.fp32.loss", value=3e-7, bound="at most 0.0001", outcome="pass")`."""

    id: str
    outcome: str
    """`pass`, `fail` or `skipped`."""
    value: Value | None = None
    bound: str = ""
    reason: str = ""
    """Why the row was skipped, or why there is no value."""
    detail: dict[str, Any] = field(default_factory=dict)
    """Other numbers of the same measurement."""


class Results:
    """Where a part reports its rows; those that need a GPU are skipped at once on a CPU."""

    def __init__(self, path: Path, part: str, device: str) -> None:
        self.path, self.part, self.is_cpu = path, part, device == "cpu"
        for name in rows_of(part):
            if self.is_cpu and KNOWN[name].cuda_only:
                self.skip(name, NOT_ON_A_CPU)

    def report(self, name: str, value: Value, /, *, bound: Bound | None = None, **detail: Any) -> None:
        """Report a measured value; `bound` replaces the known one where it depends on the machine."""
        held = bound or KNOWN[name].bound_on(is_cpu=self.is_cpu)
        outcome = PASS if held.holds(value) else FAIL
        self._write(Row(id=name, outcome=outcome, value=value, bound=held.text, detail=detail))

    def skip(self, name: str, reason: str, /, value: Value | None = None) -> None:
        """Report that nothing can be said here, and why; a value may be known without anything to hold it against."""
        self._write(Row(id=name, outcome=SKIPPED, value=value, reason=reason))

    def _write(self, row: Row) -> None:
        assert KNOWN[row.id].part == self.part, f"{row.id} is not a row of {self.part}"
        with self.path.open("a") as file:
            file.write(json.dumps(asdict(row)) + "\n")


def read_results(path: Path) -> list[Row]:
    """Rows written so far, in their order; a line that was cut off is left out."""
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    return [Row(**json.loads(line)) for line in lines]


def completed(part: str, rows: list[Row], error: str) -> list[Row]:
    """One row for each known one of the part, in the order of the list; a missing row fails, with the error."""
    found = {row.id: row for row in rows}
    reason = error or "the part ended without this row"
    return [found.get(name) or Row(id=name, outcome=FAIL, reason=reason) for name in rows_of(part)]
