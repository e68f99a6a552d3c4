"""The processes of runs on the wall clock, as a table."""

from collections.abc import Sequence

from ablations.report.documents.blocks import Cell, Kind, Table, Tone, table_of_rows
from ablations.status.rows import RunRow

NO_UNITS = "no processes to show: no run is training on the wall clock"
TONES_OF_UNITS: dict[str, Tone] = {"at work": "good", "starting": "faint", "silent": "mixed", "gone": "bad"}


def units_table(rows: Sequence[RunRow]) -> Table | None:
    """One line per process with its run, node, state, activity and deaths; None without processes."""
    several_seeds = len({row.seed for row in rows}) > 1
    lines: list[dict[str, Cell | str]] = [
        {
            "variant": row.name if several_seeds else row.variant,
            "process": unit.unit,
            "node": unit.node,
            "state": Cell(unit.state, tone=TONES_OF_UNITS.get(unit.state, "")),
            "does": unit.doing.replace("_", " "),
            "deaths": Cell(str(unit.deaths or ""), unit.deaths),
        }
        for row in rows
        for unit in row.state.units
    ]
    kinds: dict[str, Kind] = dict.fromkeys(("process", "node", "state", "does"), "name")
    return table_of_rows(lines, name="processes", kinds=kinds) if lines else None
