"""The remarks of `platform status`: those of the whole fits, from fits without their draws, and kept for many runs."""

import os
import shutil
from dataclasses import replace

import pytest
from fixtures_home import BUDGET, collapse, make_home, planned_run

from ablations.findings.remarks import remarks_of, warnings_of_run
from ablations.findings.results import read_results
from ablations.home.started_sweep import StartedSweep
from ablations.home.state import State
from ablations.status import remarked as module
from ablations.status.progress import run_rows
from ablations.status.remarked import REMARKS, remarked, run_of_row, said_on, without_draws


def age(sweep: StartedSweep, name: str) -> None:
    """Date this file or folder of each run ten seconds back: what has just been written is not kept."""
    for path in (sweep.home.path / "runs").glob(f"*/{name}"):
        then = os.stat(path).st_mtime - 10
        os.utime(path, (then, then))


def refit(sweep: StartedSweep) -> None:
    """Keep a fit of each run."""
    age(sweep, "metrics.jsonl")
    read_results(sweep)
    age(sweep, "readings")


def test_remarks_are_those_of_the_whole_fits_although_the_draws_are_dropped(tmp_path):
    sweep = make_home(tmp_path)
    collapse(sweep, planned_run("loo-loss", 0).id, after=BUDGET / 2)
    refit(sweep)
    rows = run_rows(sweep)
    whole = [run_of_row(sweep, row) for row in rows]
    assert all(run.fit is not None and run.fit.draws.A.size for run in whole)
    warned, remarks = remarked(sweep, rows)
    assert remarks == remarks_of(sweep.plan, whole)
    assert "collapsed" in [one.kind for one in remarks]
    assert [row.state.warnings for row in warned] == [warnings_of_run(run, "GPU-hours") for run in whole]
    assert not any(run.fit.draws.A.size for run in map(without_draws, whole))


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A fitted sweep with a collapse, and a function that gives its remarks and how many fits were read for them."""
    monkeypatch.setattr(module, "LEAST_ROWS", 1)
    sweep = make_home(tmp_path)
    collapse(sweep, planned_run("loo-loss", 0).id, after=BUDGET / 2)
    refit(sweep)
    read = []
    monkeypatch.setattr(module, "run_of_row", lambda *given: read.append(given) or run_of_row(*given))

    def found(sweep=sweep, rows=None):
        read.clear()
        rows = run_rows(sweep) if rows is None else rows
        warned, remarks = remarked(sweep, rows)
        num_read = len(read)
        whole = said_on(sweep, rows)
        assert (tuple(row.state.warnings for row in warned), remarks) == (whole.warnings, whole.remarks)
        return {one.kind for one in remarks}, num_read

    return sweep, found


def test_remarks_of_many_runs_are_kept_while_nothing_behind_them_changes(kept):
    sweep, found = kept
    assert "collapsed" in found()[0]
    assert found() == (found()[0], 0)
    (path,) = (sweep.folder / REMARKS).iterdir()
    path.write_bytes(path.read_bytes()[:-1])
    assert found()[1] == 3
    assert found()[1] == 0


def test_new_states_logs_fits_and_plans_have_new_remarks(kept):
    sweep, found = kept
    before, _ = found()
    rows = run_rows(sweep)
    failed = replace(rows[0], state=replace(rows[0].state, state=State.FAILED, message="loss nan"))
    assert found(rows=[failed, *rows[1:]]) == (before | {"failed"}, 3)
    longer = replace(sweep, plan=replace(sweep.plan, budget_gpu_hours=2 * BUDGET))
    assert found(longer) == (before | {"unfinished"}, 3)
    loss = sweep.run(planned_run("loo-loss", 0).id)
    loss.metrics.write_text("".join(loss.metrics.read_text().splitlines(keepends=True)[:-1]))
    age(sweep, "metrics.jsonl")
    assert found() == (before - {"collapsed"}, 3)  # its fit is of another log
    refit(sweep)
    assert found() == (before, 3)


def test_a_run_whose_folder_is_gone_has_remarks_too(kept):
    sweep, found = kept
    shutil.rmtree(sweep.run(planned_run("scalerl", 0).id).path)
    assert "unfinished" in found()[0]


def test_remarks_on_a_run_that_trains_are_not_kept(kept):
    sweep, found = kept
    rows = run_rows(sweep)
    training = [replace(rows[0], state=replace(rows[0].state, state=State.RUNNING)), *rows[1:]]
    found(rows=training)
    assert found(rows=training)[1] == 3
    assert not (sweep.folder / REMARKS).exists()
