"""Output of `platform compare`: the printed comparison, and the CSV sheet. Loaded when a command has results."""

from pathlib import Path

from ablations.cli.output import console, say_pages, tell
from ablations.findings.results import Results
from ablations.report.csv_files import sheet_text
from ablations.report.marks import marks_said
from ablations.report.tables import comparison_table, explanation, grid_listings, hours_table
from ablations.terminal.screen import Screen
from scalerl.run.run_folder import write_atomically

MOST_CELLS = 16
"""Maximum number of cells of a grid whose tables are shown by default."""


def show_comparison(results: Results, *, explain: bool = False, hours: bool = False) -> None:
    """Print the tables, on request their explanation and the hours spent, and the command for the dashboard."""
    out = console()
    show_tables(results, out, explain=explain)
    for text in filter(None, explanation(results) if explain else ()):
        out.say(text)
    if hours:
        out.print("", hours_table(results) or "No run has logged where its device hours went.", sep="\n")
    if results.sweep:
        say_pages(results.sweep.home, out)


def show_tables(results: Results, out: Screen, *, explain: bool = False) -> None:
    """Print the variants, and the cells and main effects of a grid; with `explain` also those of a large grid."""
    table = comparison_table(results)
    if explain:
        table.notes = [marks_said(results)]  # the explanation has the others in full
    out.print(table)
    *of_cells, effects = grid_listings(results) or [None]
    is_small = explain or len(results.variants) <= MOST_CELLS  # the lines of more cells are above
    for one in [*(cells for cells in of_cells if cells and is_small and cells.fits(out.width)), effects]:
        if one is not None:
            out.print("", one, sep="\n")


def write_sheet(results: Results, place: str) -> None:
    """Write the comparison as CSV to a file whose name is printed, or to standard output."""
    text = sheet_text(results.rows())
    if place == "-":
        tell(text, end="")
        return
    write_atomically(Path(place), text.encode())
    tell(place)
