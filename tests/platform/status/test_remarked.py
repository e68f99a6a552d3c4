"""The remarks of `platform status`: those of the whole fits, from fits without their draws."""

import os

from fixtures_home import BUDGET, collapse, make_home, planned_run

from ablations.findings.remarks import remarks_of, warnings_of_run
from ablations.findings.results import read_results
from ablations.status.progress import run_rows
from ablations.status.remarked import remarked, run_of_row, without_draws


def test_remarks_are_those_of_the_whole_fits_although_the_draws_are_dropped(tmp_path):
    sweep = make_home(tmp_path)
    collapse(sweep, planned_run("loo-loss", 0).id, after=BUDGET / 2)
    for run in sweep.plan.runs:
        log = sweep.run(run.id).metrics
        then = os.stat(log).st_mtime - 10
        os.utime(log, (then, then))  # a log that has just been written is not kept
    read_results(sweep)
    rows = run_rows(sweep)
    whole = [run_of_row(sweep, row) for row in rows]
    assert all(run.fit is not None and run.fit.draws.A.size for run in whole)
    warned, remarks = remarked(sweep, rows)
    assert remarks == remarks_of(sweep.plan, whole)
    assert "collapsed" in [one.kind for one in remarks]
    assert [row.state.warnings for row in warned] == [warnings_of_run(run, "GPU-hours") for run in whole]
    assert not any(run.fit.draws.A.size for run in map(without_draws, whole))
