"""The processes of the runs that train on the wall clock: the node and the activity of each."""

from collections.abc import Sequence

from rich.text import Text

from ablations.status.rows import RunRow
from ablations.terminal.listing import Cell, Column, Listing

NONE_TO_SHOW = "no processes to show: no run is training on the wall clock"
STYLES_OF_UNITS = {"at work": "green", "starting": "dim", "catching up": "cyan", "gone": "red"}


def unit_lines(rows: Sequence[RunRow]) -> list[dict[str, str]]:
    """One line per process: `{"variant": "scalerl", "process": "generator 3", "node": "n2", "state": "at work"}`."""
    return [
        {
            "variant": row.name if len({other.seed for other in rows}) > 1 else row.variant,
            "process": unit.unit,
            "node": unit.node,
            "state": unit.state,
            "does": unit.doing.replace("_", " "),
            "deaths": str(unit.deaths or ""),
        }
        for row in rows
        for unit in row.state.units
    ]


def units_table(rows: Sequence[RunRow]) -> Listing | Text:
    """The processes as a table for a terminal."""
    lines = unit_lines(rows)
    if not lines:
        return Text(NONE_TO_SHOW)
    columns = [name for name in lines[0] if any(line[name] for line in lines)]
    table = Listing(columns=[Column(heading=name, kind="number" if name == "deaths" else "name") for name in columns])
    for line in lines:
        told: dict[str, Cell] = {name: line[name] for name in columns}
        table.add(*(told | {"state": (line["state"], STYLES_OF_UNITS.get(line["state"], ""))}).values())
    return table
