"""Shows findings of `platform check` and `platform doctor` on a terminal, as lines of text, and as JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ablations.cli.exit_codes import FAILED
from ablations.cli.output import print_json
from ablations.text import counted
from scalerl.checks.finding import Fault, Finding

STYLES = {"ok": "green", "warning": "yellow", "error": "red"}
MOST_FAULTS = 10
"""Maximum number of rows printed for one finding; `--json` has all of them."""
MOST_NAMES = 3


def show_finding(out: Console, finding: Finding, after: Finding | None, *, width: int, num_recipes: int = 0) -> None:
    """Print one finding, under the title of its part, in lines of at most `width` characters."""
    if after is None or after.part != finding.part:
        out.print(Text(f"{'' if after is None else chr(10)}{finding.part}", "bold"))
    style, table = STYLES[finding.level], Table.grid(padding=(0, 1))
    for column in (1, len("warning"), 16):
        table.add_column(width=column)
    table.add_column(overflow="fold")
    # Use Text instead of markup, which would read `:100:` of `train.jsonl:100:` as the name of an emoji.
    table.add_row("", Text(finding.level, style), Text(finding.check), Text(finding.found))
    details = [Text(text, "dim") for text in [variants_text(finding, num_recipes)] if text]
    for faults, more in by_kind(finding, MOST_FAULTS):
        details += [Text.assemble((f"{fault.where}:", "dim"), " ", fault_text(fault)) for fault in faults]
        details += [Text(f"{more}; --json lists all", "dim")] if more else []
    details += [Text(f"-> {finding.remedy}", style)] if finding.remedy else []
    for text in [*details, *(Text(f"| {line}", "dim") for line in finding.log)]:
        table.add_row("", "", "", text)
    out.print(table, width=min(out.width, width), highlight=False)


def show_counts(out: Console, findings: Sequence[Finding], as_json: bool) -> None:
    """Print the number of findings at each level, and set the exit code."""
    levels = [finding.level for finding in findings]
    number = {level: levels.count(level) for level in STYLES}
    if as_json:
        checks = [asdict(finding) for finding in findings]
        print_json({"errors": number["error"], "warnings": number["warning"], "checks": checks})
    else:
        text = f"{number['ok']} ok, {counted(number['warning'], 'warning')}, {counted(number['error'], 'error')}"
        style = STYLES[next((level for level in ("error", "warning") if number[level]), "ok")]
        out.print(f"\n[{style}]{text}[/{style}]", highlight=False)
    if number["error"]:
        raise typer.Exit(FAILED)


def lines_of(finding: Finding, num_recipes: int, most_faults: int = MOST_FAULTS) -> list[str]:
    """A finding as lines of plain text."""
    lines = [f"{finding.part}, {finding.check}: {finding.found}"]
    for faults, more in by_kind(finding, most_faults):
        lines += [f"  {fault.where}: {fault_text(fault)}" for fault in faults]
        lines += [f"  {more}"] if more else []
    if concerned := variants_text(finding, num_recipes):
        lines.append(f"  {concerned}")
    return [*lines, f"  -> {finding.remedy}"] if finding.remedy else lines


def by_kind(finding: Finding, most: int) -> Iterator[tuple[tuple[Fault, ...], str]]:
    """The first faults of each kind, with the number of further ones, so that one kind does not hide another."""
    for kind in dict.fromkeys(fault.kind for fault in finding.faults):
        of_kind = [fault for fault in finding.faults if fault.kind == kind]
        more = len(of_kind) - most
        yield tuple(of_kind[:most]), f"and {more:,} more {kind}".rstrip() if most and more > 0 else ""


def fault_text(fault: Fault) -> str:
    """A fault as text: `duplicate: the same problem as train.jsonl:3`."""
    return f"{fault.kind}: {fault.what}" if fault.kind else fault.what


def variants_text(finding: Finding, num_recipes: int) -> str:
    """The variants concerned: `variants: loo-loss, loo-logits and 3 more`; empty if these are all or none."""
    names = finding.variants
    if len(names) == num_recipes:
        return ""
    more = len(names) - MOST_NAMES
    return f"variants: {', '.join(names[:MOST_NAMES])}{f' and {more} more' if more > 0 else ''}"
