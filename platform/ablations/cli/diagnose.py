"""Output of `platform doctor RUN`: the reasons why runs went wrong."""

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ablations.answers.outliers import Unlike
from ablations.cli.named_sweeps import find_run
from ablations.cli.output import console, print_json
from ablations.diagnosis.diagnose import Diagnosis, diagnose
from ablations.diagnosis.history import History, history_of_run
from ablations.errors import AblationsError
from ablations.findings.regime import regime_of
from ablations.findings.results import read_results
from ablations.home.home import Home
from ablations.home.started_sweep import read_sweep
from ablations.report.documents.diagnosis import diagnoses_document
from ablations.report.documents.regime import regime_section
from ablations.report.writers.terminal import print_document


def diagnose_all(home: Home, target: str, *, seed: int | None, as_json: bool) -> None:
    """Print the problems of a run, or of every run of a sweep."""
    unlike = unlike_in(home, target)
    found = []
    with uncollected():
        for history in histories(home, target, seed):
            among_siblings = [unlike_finding(unlike[history.name], history)] if history.name in unlike else []
            found.append((history, diagnose(history) + among_siblings))
    if as_json:
        runs = [
            {"run": history.name, "findings": [one.to_json() for one in all_of], "unjudged": history.unjudged}
            for history, all_of in found
        ]
        print_json({"runs": runs})
        return
    print_document(diagnoses_document(found), console())


def show_regime(home: Home, sweep: str, *, as_json: bool) -> None:
    """Print how far the runs of a sweep's reference are from the paper's regime."""
    results = read_results(read_sweep(home, sweep))
    numbers = regime_of(results)
    if not numbers:
        raise AblationsError(
            f"no run of {results.plan.reference} in {sweep!r} has logged a training step, which the regime is read from"
        )
    if as_json:
        print_json({"reference": results.plan.reference, "regime": [one.to_json() for one in numbers]})
    else:
        print_document(regime_section(numbers, results.plan.reference), console())


@contextmanager
def uncollected() -> Iterator[None]:
    """No garbage collection: each would walk through all rows of a long log, and they form no cycles."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


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
        change="no setting, since the other seeds have the same settings; compare its rollouts with theirs from there "
        "on, and train more seeds to see how often it happens",
    )


def histories(home: Home, target: str, seed: int | None) -> Iterable[History]:
    """The histories of the sweep or run that the user named; a run may be named by its id, the first digits of it, or
    its variant."""
    if target not in home.sweep_names() and Path(target).suffix and Path(target).exists():
        raise AblationsError(
            f"{target} is a file; import it, for example with `platform import {target} --log trl --gpus 8`, and name "
            "the sweep that it becomes"
        )
    if target in home.sweep_names():
        plan = read_sweep(home, target).plan
        runs = [(one.name, run) for one in plan.variants for run in one.runs if seed in (None, run.seed)]
        if not runs:
            seeds = ", ".join(map(str, sorted({run.seed for run in plan.runs})))
            raise AblationsError(f"sweep {target!r} has no seed {seed}; seeds are: {seeds}")
        return [history_of_run(home.run(run.id), f"{name}-s{run.seed}") for name, run in runs]
    run_id = find_run(home, target, None, seed)
    return [history_of_run(home.run(run_id), run_id)]
