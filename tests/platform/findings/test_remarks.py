"""Remarks: what spoils a run is said first and in every output; what is expected is said once and in grey."""

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from fixtures_home import changed, collapse, make_home, planned_run, set_scores, settled, warn, write_state

from ablations.findings.remarks import warnings_of_run
from ablations.findings.results import Results, read_results
from ablations.home.heartbeat import HEARTBEAT_LIMIT_S
from ablations.report.documents.comparison import brief_notes, report_document
from ablations.report.documents.comparison_words import answers, sentence
from ablations.report.documents.headline import headline
from ablations.report.documents.variant_row import VariantRow
from ablations.report.formats import report_page
from ablations.report.writers.markdown import markdown_document
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
    row = VariantRow(results=fallen, variant=fallen.variant("loo-loss"))
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
    assert f'<p class="error">loo-loss: {clause}' in report_page(fallen, now=NOW)
    text = markdown_document(report_document(fallen, now=NOW))
    assert text.count("1 of 3 seeds collapsed (") == 2  # in the remark above, and in its sentence
    variant = fallen.variant("loo-loss")
    tags = verdicts_of_variant(fallen, "loo-loss")
    assert (tags["fit_verdict"], tags["verdicts"].partition(";")[0]) == ("collapsed 1 of 3", "collapsed 1 of 3")
    assert clause in tags["remarks"]
    assert [verdicts_of_run(fallen, variant, run)["remarks"][:23] for run in variant.runs] == [
        "none",
        "the pass rate collapsed",
        "none",
    ]
    assert clause not in verdicts_of_variant(fallen, "loo-curriculum")["remarks"]


@pytest.fixture(scope="module")
def worse(tmp_path_factory) -> Results:
    """A short sweep whose runs all fall, from their start or after a rise; those of loo-curriculum have no fit."""
    sweep = make_home(tmp_path_factory.mktemp("worse"), seeds=(0, 1), fraction=0.2)
    for variant in sweep.plan.variants:
        for run in variant.runs:
            falls = [0.90, 0.88, 0.86, 0.83, 0.80, 0.77, 0.74, 0.71, 0.70]
            if run.id == FALLEN:
                falls = [0.9, 0.93, 0.96, 0.9, 0.7, 0.5, 0.4, 0.38, 0.37]
            set_scores(sweep, run.id, [one + 0.01 * run.seed for one in falls])
            if variant.name == "loo-curriculum":
                log = sweep.run(run.id).metrics
                log.write_text("".join(log.read_text().splitlines(keepends=True)[:16]))
    return read_results(settled(changed(sweep, budget_gpu_hours=400.0)))


def test_a_short_run_that_falls_is_said_to_in_every_output(worse):
    clause = "2 of 2 seeds fell (seed 0: 0.900 at 0 to 0.700 at 400 GPU-hours; seed 1: 0.970 at 100 to 0.380 at 400"
    said = next(one for one in worse.remarks if one.variants == ("loo-loss",))
    assert (said.kind, said.weight, said.runs) == ("fell", "error", ("loo-loss-s0", "loo-loss-s1"))
    assert said.text == f"loo-loss: {clause} GPU-hours)."
    assert f'<p class="error">loo-loss: {clause}' in report_page(worse, now=NOW)
    assert said.text in brief_notes(worse)
    assert said.text in json.loads(json.dumps(worse.to_json()))["reasons"]
    rows = {row["variant"]: row["fit_verdict"] for row in worse.rows()}
    assert rows == {"scalerl": "fell", "loo-loss": "fell", "loo-curriculum": "no fit"}
    tags = verdicts_of_variant(worse, "loo-loss")
    assert (tags["fit_verdict"], said.text in tags["remarks"]) == ("fell 2 of 2", True)
    assert warnings_of_run(worse.run("loo-loss-s0"), "GPU-hours") == (
        "the pass rate fell (0.900 at 0 to 0.700 at 400 GPU-hours)",
    )


def test_a_run_that_is_too_short_for_a_fit_is_said_to_have_fallen_too(worse):
    said = next(one for one in worse.remarks if one.variants == ("loo-curriculum",))
    assert said.clause.startswith("2 of 2 seeds fell (seed 0: 0.900 at 0 to 0.770 at 250 GPU-hours; ")
    assert "which fell from 0.900 to 0.770; a fit needs at least 6" in worse.to_json()["variants"][2]["reason"]


def test_if_every_variant_ends_below_its_start_the_headline_says_that_training_harms(worse):
    assert brief_notes(worse)[0].startswith("All 3 variants end below their start: RL makes this model worse (")
    assert headline(worse)[0] == "All 3 variants end below their start: RL makes this model worse."
    (said,) = [one for one in worse.remarks if one.kind == "below its start"]
    assert said.text == (
        "All 3 variants end below their start: RL makes this model worse (first evaluation to last third: scalerl "
        "0.905 to 0.722, loo-loss 0.905 to 0.555, loo-curriculum 0.905 to 0.790)."
    )


def test_if_one_variant_ends_below_its_start_it_is_named_and_the_headline_is_about_the_others(tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1), fraction=0.25)
    for seed in (0, 1):
        set_scores(sweep, planned_run("loo-loss", seed).id, [0.31 - 0.02 * place for place in range(11)])
    results = read_results(sweep)
    (said,) = [one for one in results.remarks if one.kind == "below its start"]
    assert said.text.startswith(
        "loo-loss ends below its start (first evaluation to last third: loo-loss 0.310 to 0.130"
    )
    assert "worse" not in " ".join(headline(results))


def test_a_failed_run_is_named_first_with_its_progress_and_its_message(tmp_path):
    sweep = make_home(tmp_path, seeds=(0, 1, 2))
    write_state(sweep.home, FALLEN, "failed", compute=2000.0, message="RuntimeError: CUDA out of memory.")
    results = read_results(sweep)
    clause = "1 of 3 seeds failed (seed 1 at 2,000 of 2,000 GPU-hours: RuntimeError: CUDA out of memory)"
    assert sentence(VariantRow(results=results, variant=results.variant("loo-loss"))).startswith(
        f"loo-loss: {clause}; "
    )
    assert VariantRow(results=results, variant=results.variant("loo-loss")).fit.startswith("failed 1 of 3; ")
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
