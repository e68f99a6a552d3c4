"""The command that judges kept answers a second time: audit."""

from ablations.cli.named_sweeps import find_sweep
from ablations.cli.options import HomeOption, JsonOption, SweepArgument
from ablations.cli.output import console, print_json, warn
from ablations.diagnosis.history import history_of_run
from ablations.diagnosis.second_opinion import Audit, audit_rollouts
from ablations.home.labels import run_name
from ablations.terminal.listing import Column, Listing
from ablations.text import counted

DISAGREEMENT_COLUMNS = (
    Column(heading="run"),
    Column(heading="step", kind="number"),
    Column(heading="task"),
    Column(heading="prompt"),
    Column(heading="verifier"),
    Column(heading="second"),
    Column(heading="right answer", kind="prose"),
    Column(heading="stated", kind="prose"),
)
MOST_DISAGREEMENTS = 20
"""Disagreements that are printed; `--json` has all."""


def audit(sweep: SweepArgument = None, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Judge the kept answers of a sweep a second time, and list those on which the verifier and this reading disagree.

    The second reading shares no code with the verifiers and judges numbers, letters and plain words alone. A
    disagreement is evidence for a person, not a verdict: look at the rollouts on the page of the run.
    """
    started = find_sweep(home, sweep)
    runs = [(one.name, run) for one in started.plan.variants for run in one.runs]
    histories = [history_of_run(started.run(run.id), run_name(name, run.seed)) for name, run in runs]
    found = [audit_rollouts(one.name, one.rollouts) for one in histories]
    unread = {one.name: one.fault for one in histories if one.fault}
    if as_json:
        print_json(
            {
                "sweep": started.name,
                "num_kept": sum(one.num_kept for one in found),
                "num_judged": sum(one.num_judged for one in found),
                "unread": unread,
                "disagreements": [each.to_json() for one in found for each in one.disagreements],
            }
        )
        return
    for name, fault in unread.items():
        warn(f"{name}: its log cannot be read ({fault})")
    show_audits(started.name, found)


def show_audits(sweep: str, found: list[Audit]) -> None:
    """Print the counts, then the disagreements: those first whose answers the verifier calls right."""
    kept, judged = sum(one.num_kept for one in found), sum(one.num_judged for one in found)
    differing = sorted((each for one in found for each in one.disagreements), key=lambda one: one.verdict != "right")
    out = console()
    out.say(
        f"{sweep}: {len(differing)} of {counted(judged, 'kept answer')} are judged differently by a second reading; "
        f"the second reading cannot judge {kept - judged:,} more."
    )
    if not differing:
        return
    table = Listing(columns=DISAGREEMENT_COLUMNS)
    for one in differing[:MOST_DISAGREEMENTS]:
        table.add(
            one.run, f"{one.step:,}", one.task, one.prompt_id, one.verdict, one.second, one.right_answer, one.stated
        )
    out.print(table)
    if (more := len(differing) - MOST_DISAGREEMENTS) > 0:
        out.say(f"{more:,} more: --json has all of them.")
