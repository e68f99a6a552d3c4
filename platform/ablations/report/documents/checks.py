"""What `platform check` and `platform doctor` find before anything trains, as a document: a table for each part."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from ablations.report.documents.blocks import Blocks, Cell, Column, Table, Text, TextKind, Tone, cells
from ablations.text import counted
from scalerl.checks.finding import Fault, Finding, Severity

TONES: dict[Severity, Tone] = {"ok": "good", "warning": "mixed", "error": "bad"}
MOST_FAULTS = 10
"""Maximum number of rows shown for one finding; `--json` has all of them."""
MOST_ALIKE = 3
"""Maximum number of rows shown as examples of faults that one change mends."""
MOST_NAMES = 3


def checks_document(findings: Sequence[Finding], num_recipes: int = 0) -> Blocks:
    """A table for each part, in order."""
    return [_table(part, [*of_part], num_recipes) for part, of_part in groupby(findings, key=lambda one: one.part)]


def _table(part: str, findings: Sequence[Finding], num_recipes: int) -> Table:
    rows = (
        cells(
            Cell(one.level, tone=TONES[one.level]),
            one.check,
            "\n".join([one.found, *_details(one, num_recipes, MOST_FAULTS), *(f"| {line}" for line in one.log)]),
        )
        for one in findings
    )
    columns = (Column(heading="result"), Column(heading=part), Column(heading="found", kind="prose"))
    return Table(name=part, columns=columns, rows=tuple(rows))


def counts_text(findings: Sequence[Finding]) -> Text:
    """The number of findings of each level: `27 ok, 1 warning, 0 errors`."""
    levels = [one.level for one in findings]
    warnings, errors = counted(levels.count("warning"), "warning"), counted(levels.count("error"), "error")
    kind: TextKind = "error" if "error" in levels else "warning" if "warning" in levels else "plain"
    return Text(text=f"{levels.count('ok')} ok, {warnings}, {errors}", kind=kind)


def lines_of(finding: Finding, num_recipes: int, most_faults: int = MOST_FAULTS) -> list[str]:
    """A finding as lines of plain text."""
    head = f"{finding.part}, {finding.check}: {finding.found}"
    return [head, *(f"  {line}" for line in _details(finding, num_recipes, most_faults))]


def _details(finding: Finding, num_recipes: int, most_faults: int) -> Iterator[str]:
    """The first faults of each kind, so that one kind does not hide another; the variants; the remedy.

    Of many faults that one change mends, the change is said once.
    """
    for kind in dict.fromkeys(fault.kind for fault in finding.faults if most_faults):
        of_kind = [fault for fault in finding.faults if fault.kind == kind]
        for advice, alike in _by_advice(of_kind):
            if advice and len(alike) > MOST_ALIKE:
                yield f"{counted(len(alike), f'{kind} row'.lstrip())}: {advice}; for example"
                yield from (
                    f"  {one.where}: {one.what.removesuffix(advice).rstrip('; ')}" for one in alike[:MOST_ALIKE]
                )
                continue
            yield from (": ".join(filter(None, (one.where, one.kind, one.what))) for one in alike[:most_faults])
            if (more := len(alike) - most_faults) > 0:
                yield f"and {more:,} more {kind}".rstrip()
    names = finding.variants
    if len(names) not in (0, num_recipes):
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        yield f"variants: {', '.join(names[:MOST_NAMES])}{more}"
    if finding.remedy:
        yield f"-> {finding.remedy}"


def _by_advice(faults: Sequence[Fault]) -> list[tuple[str, list[Fault]]]:
    """The faults by what would mend them, which is the end of their text behind a semicolon; empty for most."""
    found: dict[str, list[Fault]] = {}
    for one in faults:
        found.setdefault(one.what.rpartition("; ")[2] if "; " in one.what else "", []).append(one)
    return list(found.items())
