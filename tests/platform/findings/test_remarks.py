"""Remarks: what spoils a run is said first and in every output; what is expected is said once and in grey."""

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from fixtures_home import collapse, make_home, planned_run, settled, warn, write_state

from ablations.findings.results import Results, read_results
from ablations.home.heartbeat import HEARTBEAT_LIMIT_S
from ablations.report.document import document_of
from ablations.report.latex import latex_files
from ablations.report.markdown import markdown_files
from ablations.report.page import report_page
from ablations.report.words.comparison import ResultRow, answers, sentence
from ablations.tracking.sortable import verdicts_of_run, verdicts_of_variant
from scalerl.run.health import Health
from scalerl.run.idle_steps import nothing_trained, skipped
from scalerl.run.run_log import read_rows

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FALLEN = planned_run("loo-loss", 1).id
ALL_EQUAL = "no group had answers with different rewards"


@pytest.fixture(scope="module")
def fallen(tmp_path_factory) -> Results:
    """A sweep of three seeds, one of which falls for good after 1500 of 2000 GPU-hours."""
    sweep = make_home(tmp_path_factory.mktemp("fallen"), seeds=(0, 1, 2))
    collapse(sweep, FALLEN, after=1500.0)
    return read_results(settled(sweep))


@pytest.fixture(scope="module")
def clause(fallen) -> str:
    """The first clause on loo-loss, from the numbers in the log of its second seed."""
    rows = {
        row["compute_gpu_hours"]: row for row in read_rows(fallen.sweep.run(FALLEN).metrics) if row["kind"] == "eval"
    }
    before, after = rows[1500.0]["pass_rate"], rows[2000.0]["pass_rate"]
    return (
        f"1 of 3 seeds collapsed (seed 1: {before:.3f} at 1,500 to {after:.3f} at 2,000 GPU-hours; evaluations "
        "after the fall are left out of its fit)"
    )


def test_a_collapse_is_the_first_clause_of_the_sentences_on_its_variant(fallen, clause):
    row = ResultRow(results=fallen, variant=fallen.variant("loo-loss"))
    assert sentence(row).startswith(f"loo-loss: {clause}; lower at equal compute")
    assert f"loo-loss, against scalerl: {clause}; lower at equal compute" in answers(fallen)[1]
    assert not any("collapsed" in line for line in answers(fallen)[2:])


def test_a_collapse_is_in_the_remarks_the_reasons_and_the_warnings_of_its_run_as_json(fallen, clause):
    document = json.loads(json.dumps(fallen.to_json()))
    (remark,) = [one for one in document["remarks"] if one["kind"] == "collapsed"]
    assert remark["text"].startswith(f"loo-loss: {clause}. ")
    assert {**remark, "text": ""} == {
        "kind": "collapsed",
        "weight": "error",
        "text": "",
        "variants": ["loo-loss"],
        "runs": ["loo-loss-s1"],
        "num_runs": 3,
    }
    assert document["reasons"] == [remark["text"]]
    warned = {run["curve"]: run["warnings"] for run in document["runs"] if run["warnings"]}
    assert list(warned) == ["loo-loss-s1"]
    assert "the pass rate collapsed (" in warned["loo-loss-s1"][0]


def test_a_collapse_is_in_every_report_and_in_mlflow(fallen, clause):
    document = document_of(fallen, now=NOW)
    assert f'<p class="error">loo-loss: {clause}' in report_page(fallen, now=NOW)
    for files in (markdown_files(document, {}), latex_files(document, {})):
        text = b"".join(files.values()).decode().replace("\\", "")
        assert text.count("1 of 3 seeds collapsed (") == 2  # in the note above, and in its sentence
    variant = fallen.variant("loo-loss")
    tags = verdicts_of_variant(fallen, "loo-loss")
    assert (tags["verdict_fit"], tags["verdict"].partition(";")[0]) == ("collapsed 1 of 3", "collapsed 1 of 3")
    assert clause in tags["remarks"]
    assert [verdicts_of_run(fallen, variant, run)["remarks"][:23] for run in variant.runs] == [
        "none",
        "the pass rate collapsed",
        "none",
    ]
    assert clause not in verdicts_of_variant(fallen, "loo-curriculum")["remarks"]


def test_a_failed_run_is_named_first_with_its_progress_and_its_message(tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1, 2))
    write_state(sweep.home, FALLEN, "failed", compute=2000.0, message="RuntimeError: CUDA out of memory.")
    results = read_results(sweep)
    clause = "1 of 3 seeds failed (seed 1 at 2,000 of 2,000 GPU-hours: RuntimeError: CUDA out of memory)"
    assert sentence(ResultRow(results=results, variant=results.variant("loo-loss"))).startswith(f"loo-loss: {clause}; ")
    assert ResultRow(results=results, variant=results.variant("loo-loss")).fit.startswith("failed 1 of 3; ")
    assert [(one.kind, one.weight) for one in results.remarks] == [("failed", "error")]


def test_a_run_whose_process_is_gone_has_failed(tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1))
    write_state(sweep.home, FALLEN, "running")
    folder = sweep.run(FALLEN)
    folder.write_status(replace(folder.read_status(), heartbeat=NOW.timestamp() - HEARTBEAT_LIMIT_S))
    (remark,) = read_results(sweep).remarks
    assert remark.clause.endswith("GPU-hours: its process died without a message)")


def idle(number: int) -> str:
    """The warning of a trainer that trained on nothing in so many of its last 20 steps."""
    rows = [{"skipped": step < number, "loss": 0.0} for step in range(20)]
    text = skipped(rows, rows)
    assert text is not None
    return text


def test_steps_without_a_gradient_near_the_ceiling_are_one_grey_line(tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1, 2))
    for number, run in enumerate(sweep.plan.runs):
        warn(sweep, run.id, idle(6 + number))
    (remark,) = read_results(sweep).remarks
    assert (remark.kind, remark.weight, remark.clause, len(remark.runs)) == ("no gradient", "note", "", 9)
    assert remark.text == (
        "9 of 9 runs: 6 to 14 of the last 20 steps had no gradient (every group all right or all wrong); expected near "
        "the ceiling."
    )


def test_steps_without_a_gradient_of_a_run_that_learned_nothing_stay_a_warning(tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1))
    collapse(sweep, FALLEN, after=0.0, to=0.0)
    warn(sweep, FALLEN, idle(20))
    found = [one for one in read_results(sweep).remarks if one.kind == "no gradient"]
    assert [(one.weight, one.text) for one in found] == [
        (
            "warning",
            "loo-loss-s1: 20 of the last 20 steps had no gradient (every group all right or all wrong).",
        )
    ]


def test_a_run_whose_weights_never_changed_is_an_error(tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1))
    health = Health()
    for step in range(30):
        health.add({"kind": "train", "step": step, "skipped": True, "loss": 0.0})
    (text,) = health.warnings(ended=True).values()
    assert text == nothing_trained(Counter({ALL_EQUAL: 30}))
    warn(sweep, FALLEN, text)
    results = read_results(sweep)
    (remark,) = results.remarks
    assert (remark.kind, remark.weight) == ("trained on nothing", "error")
    assert remark.clause.startswith("1 of 2 seeds trained on nothing (seed 1: none of the 30 steps trained")
