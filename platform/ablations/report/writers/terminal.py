"""Documents in the terminal: tables at any width, paragraphs broken between words, no figures."""

from ablations.report.documents.blocks import Blocks, Figure, Folded, Heading, Table, Text, TextKind
from ablations.report.writers.terminal_table import TerminalTable
from ablations.terminal.screen import Screen

TEXT_STYLES: dict[TextKind, str] = {"plain": "", "lead": "bold", "note": "dim", "warning": "yellow", "error": "red"}


def print_document(blocks: Blocks, out: Screen) -> None:
    """Print the blocks, with an empty line between them except between paragraphs; folded blocks follow their title."""
    before = None
    for one in blocks:
        if isinstance(one, Figure):
            continue
        is_close = isinstance(before, Heading) or (isinstance(before, Text) and isinstance(one, Text))
        if before is not None and not is_close:
            out.print()
        match one:
            case Heading():
                out.say(one.text, style="bold")
            case Text():
                out.say(one.text, style=TEXT_STYLES[one.kind])
            case Table():
                out.print(TerminalTable.of(one))
            case Folded():
                print_document([Heading(text=one.title), *one.blocks], out)
        before = one
