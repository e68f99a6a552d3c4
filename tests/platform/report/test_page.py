"""The report: one file that holds every number with its interval, its baseline and its seeds."""

import html
import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from fixtures_home import TRUTH, changed, make_home, planned_run, write_run

from ablations.findings.results import read_results
from ablations.home.plan import PlannedRun
from ablations.report.document import document_of
from ablations.report.forest import verdicts_figure
from ablations.report.formats import write_in_format
from ablations.report.latex import latex_files
from ablations.report.markdown import markdown_files
from ablations.report.page import report_page
from ablations.study.resolve import load_resolved

NOW = datetime(2025, 11, 20, 12, 30, tzinfo=UTC)


def text_of(page: str) -> str:
    """What a reader sees, without scripts and figures, whichever way the page escapes it."""
    visible = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", visible)))


@pytest.fixture(scope="module")
def page(finished) -> str:
    """The report on one seed of each variant."""
    return report_page(finished, now=NOW)


@pytest.fixture(scope="module")
def text(decided) -> str:
    """What a reader sees of the report on three seeds."""
    return text_of(report_page(decided, now=NOW))


def test_the_report_is_one_file_that_needs_no_network(finished):
    path = write_in_format(finished, "html", now=NOW)
    page = path.read_text()
    assert path == finished.sweep.folder / "report.html"
    assert not re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="', page)
    assert page.count("Plotly.newPlot(") == 2  # curves and differences, each in two layouts
    assert page.count("layOut(document.getElementById(") == 2


def test_the_report_says_how_it_was_made(finished, page):
    text = text_of(page)
    assert "command platform sweep sweeps/loo.yaml" in text
    assert str(finished.sweep.home.path) in text
    assert "2025-11-20 12:30 UTC" in text
    assert "code 4f1c2d" in text
    assert "3, at scale laptop, 2000 modelled GPU-hours each" in text
    for said in ("with the seed (0)", "up to 2,000 modelled GPU-hours", "R_0 anchored", "at commit 4f1c2d"):
        assert said in text[text.index(" Methods ") :]
    for name in TRUTH:
        assert f"{finished.variant(name).fits[0].asymptote} (1 seed)" in text


def test_measured_compute_is_never_called_modelled(finished, page):
    sweep = changed(finished.sweep, compute_name="measured device-hours")
    measured = report_page(replace(finished, plan=sweep.plan), now=NOW)
    assert "2000 measured device-hours each" in text_of(measured)
    assert measured.count('"compute (measured device-hours)"') >= 1
    assert "modelled GPU-hours" in page
    assert "modelled GPU-hours" not in measured


def test_every_difference_names_its_baseline_and_its_rule(decided, text):
    line = decided.compared("loo-loss")
    level, ceiling, compute = line.answers.values()
    difference = f"{ceiling.estimate:+.3f} [{ceiling.lo:+.3f}, {ceiling.hi:+.3f}] in A against scalerl (3 seeds)"
    against = f"{level.estimate:+.3f} [{level.lo:+.3f}, {level.hi:+.3f}] against scalerl"
    ratio = f"{compute.estimate:.2f} [{compute.lo:.2f}, {compute.hi:.2f}] times its compute"
    verdicts = "loo-loss: lower at equal compute; ceiling down; more compute to the common target"
    assert f"{verdicts}. {line.asymptote} (3 seeds); level {line.level:.3f}, {against}; {difference}; {ratio}" in text
    assert re.search(r"recipe: of levels 0\.00\d\d from 9 repeated runs; of A .* runs; of ln compute .* runs\.", text)
    assert "0.59, 1.77, 2600" in text
    assert "two A within 0.02 count as equal, regardless of their intervals" in text


def test_corrected_intervals_stand_beside_the_plain_ones(decided, text):
    answers = decided.compared("loo-loss").answers
    for name, form in (("level", "+.3f"), ("ceiling", "+.3f"), ("compute", ".2f")):
        one = answers[name]
        assert f"[{one.joint_lo:{form}}, {one.joint_hi:{form}}]" in text
        assert one.joint_lo < one.lo < one.hi < one.joint_hi
    assert 'Intervals under "corrected" are corrected for 2 comparisons (Bonferroni)' in text


def test_every_format_and_figure_has_the_same_numbers(decided, text):
    document, figure = document_of(decided, now=NOW), verdicts_figure(decided)
    table = latex_files(document, {})["table.tex"].decode()
    labels = [one.text.replace("−", "-") for one in figure.layout.annotations]
    for name in list(TRUTH)[1:]:
        compute = decided.compared(name).answers["compute"]
        ratio = f"{compute.estimate:.2f} [{compute.lo:.2f}, {compute.hi:.2f}]"
        assert text.count(ratio) == 2  # in a sentence and in the table
        assert sum(ratio in cell for row in document.rows for cell in row) == 1
        assert rf"${compute.estimate:.2f}$~$[{compute.lo:.2f},\, {compute.hi:.2f}]$" in table
        assert sum(ratio in said for said in document.findings) == 1
        assert ratio in labels


def test_verdicts_that_occur_are_explained_and_no_others(text):
    assert "level: level down the 95 % interval of the difference in level lies below 0" in text
    assert "ceiling: ceiling down the 95 % interval of the difference in A lies below 0" in text
    assert "compute: more compute the 95 % interval of the compute ratio lies above 1" in text
    assert "fit: collapsed" not in text


def test_the_report_says_where_the_hours_went(page):
    assert "loo-loss 95.0% 4.0% 1.0% 69.0% 31.0% 4,000 2.0% 27.6%" in text_of(page)


def test_unfinished_runs_and_runs_without_a_fit_are_named(tmp_path):
    sweep = make_home(tmp_path, fraction=0.5, state="running")
    folder = sweep.run(planned_run("loo-loss", 0).id)
    folder.write_status(replace(folder.read_status(), code_versions=("aaaaaa+dirty",)))
    folder.metrics.write_text("[]\n{}\n")
    text = text_of(report_page(read_results(sweep), now=NOW))
    assert "trained with 2 versions of the code: 4f1c2d, aaaaaa+dirty." in text
    assert "3 of 3 runs have not reached the budget." in text
    assert "loo-loss: no comparison. loo-loss-s0:" in text
    assert "metrics.jsonl:1: not a metrics row" in text


def test_every_format_says_what_the_pass_rate_is_of(finished, tmp_path):
    assert document_of(finished, now=NOW).task == ""  # of a recipe that no version of ours wrote
    sweep = make_home(tmp_path)
    recipe = load_resolved("scalerl", "smoke")
    run = PlannedRun(seed=0, id=recipe.identity(0))
    write_run(sweep.home, run.id, TRUTH["scalerl"])
    (sweep.run(run.id).path / "recipe.json").unlink()
    sweep.run(run.id).create(recipe, 0)
    sweep = changed(sweep, variants=(replace(sweep.plan.variants[0], runs=(run,)), *sweep.plan.variants[1:]))
    results = read_results(sweep)
    said = "Task: given 3:k9a2, write the three smallest symbols, 29a."
    assert said in report_page(results, now=NOW)
    document = document_of(results, now=NOW)
    assert said in markdown_files(document, {})["report.md"].decode()
    assert latex_files(document, {})["report.tex"].decode().count(said) == 1
