"""Values that are logged one by one, each with its step, as columns of rows."""

from array import array

import numpy as np

from ablations.logs.rows import RowColumns

STEP_COLUMN = "step"


class StepColumns:
    """Values with their steps: consecutive values of one step in a file make a row.

    A new row begins when a value repeats.
    """

    def __init__(self) -> None:
        self._steps, self._places = array("d"), []
        self._logged: list[int] = []
        """Of each row the columns that it has, as bits."""
        self._row_of: dict[str, int] = {}
        """Of each file its last row."""
        self._columns: dict[str, tuple[int, array, array]] = {}
        """Of each column its bit, its rows and their values."""

    @property
    def num_rows(self) -> int:
        return len(self._steps)

    def log(self, place: str, step: int, name: str, value: float) -> None:
        """Add a value; one with the name of the step column is left out, since the step already has its column."""
        if name == STEP_COLUMN:
            return
        if (column := self._columns.get(name)) is None:
            column = self._columns[name] = (1 << len(self._columns), array("q"), array("d"))
        bit, rows, values = column
        row = self._row_of.get(place)
        if row is None or self._steps[row] != step or self._logged[row] & bit:
            row = self._row_of[place] = len(self._steps)
            self._steps.append(step)
            self._places.append(place)
            self._logged.append(0)
        self._logged[row] |= bit
        rows.append(row)
        values.append(value)

    def from_step(self, row: int, step: float) -> np.ndarray:
        """True for the rows before `row` that are of this step or a later one."""
        steps = np.array(self._steps)
        return (np.arange(steps.size) < row) & (steps >= step)

    def columns(self, place: str) -> RowColumns:
        """All rows by column, including the step; the values are handed over."""
        found = {STEP_COLUMN: (np.arange(len(self._steps)), np.array(self._steps))}
        while self._columns:
            name = next(iter(self._columns))
            _, rows, values = self._columns.pop(name)
            order = np.argsort(np.array(rows), kind="stable")
            found[name] = (np.array(rows)[order], np.array(values)[order])
        columns = RowColumns(place)
        columns.extend(self._places, found)
        return columns
