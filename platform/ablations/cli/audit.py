"""The command that judges kept answers a second time: audit."""

from ablations.cli.named_sweeps import find_sweep
from ablations.cli.options import HomeOption, JsonOption, SweepArgument
from ablations.cli.output import console, print_json, warn
from ablations.diagnosis.history import history_of_run
from ablations.diagnosis.second_opinion import audit_rollouts
from ablations.home.labels import run_name
from ablations.report.documents.audit import audit_document
from ablations.report.writers.terminal import print_document


def audit(sweep: SweepArgument = None, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Judge the kept answers of a sweep a second time, and list those on which the verifier and this reading disagree.

    The second reading shares no code with the verifiers and judges only numbers, letters and plain words. A
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
    print_document(audit_document(started.name, found), console())
