"""Why runs went wrong, as a document: for one run, or for every run of a sweep."""

from collections.abc import Iterable, Sequence

from ablations.diagnosis.diagnose import Diagnosis
from ablations.diagnosis.history import History
from ablations.report.documents.blocks import Blocks, Folded, Heading, Text
from ablations.text import capitalised, counted

MOST_FINDINGS = 3
"""Maximum number of findings shown for one run of a sweep; `--json` has all."""


def diagnoses_document(runs: Iterable[tuple[History, Sequence[Diagnosis]]]) -> Blocks:
    """The runs without a finding, then every other run with its top findings, numbered, the likeliest cause first."""
    sick_last = sorted(runs, key=lambda one: len(one[1]) > 0)
    return [block for history, found in sick_last for block in _of_run(history, found)]


def _of_run(history: History, found: Sequence[Diagnosis]) -> Blocks:
    why = history.unjudged or ("" if found else "nothing found")
    head = f"{history.name}, {counted(len(history.steps), 'step')}{why and f': {why}'}"
    if not found:
        return [Text(text=head)]
    said = [f"{number}. {finding_text(one)}" for number, one in enumerate(found[:MOST_FINDINGS], start=1)]
    if more := found[MOST_FINDINGS:]:
        said.append(f"Also: {', '.join(one.rule for one in more)}. `--json` has all of it.")
    return [Heading(text=head, level=3), *(Text(text=text) for text in said)]


def causes(found: Sequence[Diagnosis], most: int) -> Blocks:
    """The likeliest causes as warnings, at most `most`, with the further findings folded."""
    said = [Text(text=capitalised(finding_text(one)), kind="warning") for one in found]
    further = f"{counted(len(said[most:]), 'further finding')} of `platform doctor`"
    return [*said[:most], *([Folded(title=further, blocks=said[most:])] if said[most:] else ())]


def finding_text(one: Diagnosis) -> str:
    """A finding as sentences."""
    since = "" if one.since_step is None else f" since step {one.since_step:,}"
    cost = "" if one.cost_share is None else f", the last {one.cost_share:.0%} of the compute"
    return f"{one.rule} ({one.how_sure}{since}{cost}). {capitalised(one.text)}. To change: {one.change}."
