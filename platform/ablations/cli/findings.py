"""Shows the findings of `platform check` and `platform doctor` as they are found, part by part."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict

import typer

from ablations.cli.exit_codes import FAILED
from ablations.cli.output import print_json
from ablations.report.documents.checks import checks_document, counts_text
from ablations.report.writers.terminal import print_document
from ablations.terminal.screen import Screen
from scalerl.checks.finding import Finding


def shown_parts(out: Screen, findings: Iterable[Finding], as_json: bool, num_recipes: int = 0) -> list[Finding]:
    """All findings; unless `as_json`, each part is printed as soon as it is complete, or cut short by an exception."""
    found: list[Finding] = []
    part: list[Finding] = []

    def print_part() -> None:
        if part and not as_json:
            print_document(checks_document(part, num_recipes), out)
            out.print()
        part.clear()

    try:
        for one in findings:
            if part and one.part != part[0].part:
                print_part()
            part.append(one)
            found.append(one)
    finally:
        print_part()
    return found


def show_counts(out: Screen, findings: Sequence[Finding], as_json: bool) -> None:
    """Print the number of findings at each level, and set the exit code."""
    levels = [finding.level for finding in findings]
    if as_json:
        checks = [asdict(finding) for finding in findings]
        print_json({"errors": levels.count("error"), "warnings": levels.count("warning"), "checks": checks})
    else:
        print_document([counts_text(findings)], out)
    if "error" in levels:
        raise typer.Exit(FAILED)
