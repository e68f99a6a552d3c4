"""The audit of a sweep's kept answers as a document: how many a second reading judges differently, and which."""

from collections.abc import Sequence

from ablations.diagnosis.second_opinion import Audit
from ablations.report.documents.blocks import Blocks, Column, Table, Text, cells
from ablations.report.documents.number_cells import number_cell
from ablations.text import counted

DISAGREEMENT_COLUMNS = (
    Column(heading="run"),
    Column(heading="step", kind="number"),
    *(Column(heading=heading) for heading in ("task", "prompt", "verifier", "second")),
    *(Column(heading=heading, kind="prose") for heading in ("right answer", "stated")),
)
MOST_DISAGREEMENTS = 20
"""Maximum number of disagreements shown; `--json` has all."""


def audit_document(sweep: str, found: Sequence[Audit]) -> Blocks:
    """The counts, then the disagreements, starting with answers that the verifier calls right."""
    kept, judged = sum(one.num_kept for one in found), sum(one.num_judged for one in found)
    differing = sorted((each for one in found for each in one.disagreements), key=lambda one: one.verdict != "right")
    head = (
        f"{sweep}: a second reading judges {len(differing)} of {counted(judged, 'kept answer')} differently; it cannot "
        f"judge {kept - judged:,} more."
    )
    if not differing:
        return [Text(text=head)]
    rows = [
        cells(
            one.run,
            number_cell(one.step, ","),
            one.task,
            one.prompt_id,
            one.verdict,
            one.second,
            one.right_answer,
            one.stated,
        )
        for one in differing[:MOST_DISAGREEMENTS]
    ]
    more = len(differing) - MOST_DISAGREEMENTS
    notes = (f"{more:,} more: `--json` has all of them.",) if more > 0 else ()
    return [Text(text=head), Table(name="disagreements", columns=DISAGREEMENT_COLUMNS, rows=tuple(rows), notes=notes)]
