"""Output of `platform doctor RUN`: the reasons why runs went wrong."""

from collections.abc import Iterable
from pathlib import Path

from ablations.answers.outliers import Unlike
from ablations.cli.follow import find_run
from ablations.cli.output import console, print_json
from ablations.diagnosis.diagnose import Diagnosis, diagnose, finding_text
from ablations.diagnosis.history import History, history_of_run
from ablations.diagnosis.logged_history import history_of_log
from ablations.errors import AblationsError
from ablations.findings.results import read_results
from ablations.home.home import Home
from ablations.home.started_sweep import read_sweep
from ablations.text import counted

MOST_FINDINGS = 3
"""Findings about one run that are printed; `--json` has all."""


def diagnose_all(home: Home, target: str, *, seed: int | None, trainer: str | None, as_json: bool) -> None:
    """Print the problems of a run, of every run of a sweep, or of the run in a log."""
    unlike = unlike_in(home, target) if trainer is None else {}
    found = []
    for history in histories(home, target, seed, trainer):
        among_siblings = [unlike_finding(unlike[history.name], history)] if history.name in unlike else []
        found.append((history, diagnose(history) + among_siblings))
    if as_json:
        runs = [
            {"run": history.name, "findings": [one.to_json() for one in all_of], "unjudged": history.unjudged}
            for history, all_of in found
        ]
        print_json({"runs": runs})
        return
    for history, all_of in found:
        lines = [f"  {number}. {finding_text(one)}" for number, one in enumerate(all_of[:MOST_FINDINGS], start=1)]
        if more := all_of[MOST_FINDINGS:]:
            lines.append(f"  Also: {', '.join(one.rule for one in more)}. `--json` has all of it.")
        said = history.unjudged or ("" if lines else "nothing found")
        head = f"{history.name}, {counted(len(history.steps), 'step')}: {said}".rstrip()
        for line in (head, *lines):
            console().print(line, markup=False, highlight=False)


def unlike_in(home: Home, target: str) -> dict[str, Unlike]:
    """The runs of a sweep that lie far from the other seeds of their variant; none if the target is not a sweep."""
    comparison = read_results(read_sweep(home, target)).comparison if target in home.sweep_names() else None
    return {one.run: one for one in comparison.unlike if one.run} if comparison else {}


def unlike_finding(one: Unlike, history: History) -> Diagnosis:
    """An outlying run as a finding: the comparison's own test finds the run, and its log the step."""
    after = () if one.since is None else (row for row in history.steps if row["compute_gpu_hours"] >= one.since)
    since = next((int(row["step"]) for row in after), None)
    side = "below" if one.apart < 0 else "above"
    return Diagnosis(
        rule="unlike its siblings",
        text=f"its level lies {abs(one.apart):.3f} {side} that of the other seeds of {one.variant}, which lie "
        f"{one.ratio:.1f} times as far apart as seeds of other variants",
        since_step=since,
        how_sure="likely",
        cost_share=None if since is None else history.share_since(since),
        change="no setting, since its siblings have the same; compare its rollouts with theirs from there on, and "
        "train more seeds to see how often it happens",
    )


def histories(home: Home, target: str, seed: int | None, trainer: str | None) -> Iterable[History]:
    """The histories of the log, sweep or run that the user named; a run by its id, its first digits or its variant."""
    if trainer is not None:
        return [history_of_log(Path(target), trainer)]
    if Path(target).suffix and Path(target).exists():
        raise AblationsError(f"{target} is a file; pass the trainer that wrote it, for example --log trl")
    if target in home.sweep_names():
        plan = read_sweep(home, target).plan
        runs = [(one.name, run) for one in plan.variants for run in one.runs if seed in (None, run.seed)]
        if not runs:
            seeds = ", ".join(map(str, sorted({run.seed for run in plan.runs})))
            raise AblationsError(f"sweep {target!r} has no seed {seed}; seeds are: {seeds}")
        return [history_of_run(home.run(run.id), f"{name}-s{run.seed}") for name, run in runs]
    run_id = find_run(home, target, None, seed)
    return [history_of_run(home.run(run_id), run_id)]
