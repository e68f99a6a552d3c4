"""The report: one file that holds every number with its interval, its baseline and its seeds."""

import dataclasses
import html
import re
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from fixtures_home import TRUTH, changed, make_home, planned_run, write_run

from ablations.findings.results import read_results
from ablations.home.plan import PlannedRun
from ablations.report.document import document_of
from ablations.report.latex import latex_files
from ablations.report.markdown import markdown_files
from ablations.report.page import report_page, write_report
from ablations.report.verdicts import verdicts_figure
from ablations.study.resolve import load_resolved

NOW = datetime(2025, 11, 20, 12, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The results of a finished sweep."""
    return read_results(make_home(tmp_path_factory.mktemp("home")))


@pytest.fixture(scope="module")
def decided(tmp_path_factory):
    """The same with three seeds, whose differences have intervals."""
    return read_results(make_home(tmp_path_factory.mktemp("home"), seeds=(0, 1, 2)))


def text_of(page: str) -> str:
    """What a reader sees, without scripts and figures, whichever way the page escapes it."""
    visible = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", visible)))


def test_the_report_is_one_file_that_needs_no_network(results):
    path = write_report(results, now=NOW)
    page = path.read_text()
    assert path == results.sweep.folder / "report.html"
    assert not re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="', page)
    assert page.count("Plotly.newPlot(") == 3  # curves, intervals, and the paper's, each in two layouts
    assert page.count("layOut(document.getElementById(") == 3


def test_the_report_says_how_it_was_made(results):
    text = text_of(report_page(results, now=NOW))
    assert "command platform sweep sweeps/loo.yaml" in text
    assert str(results.sweep.home.path) in text
    assert "2025-11-20 12:30 UTC" in text
    assert "code 4f1c2d" in text
    assert "3, at scale laptop, 2000 modelled GPU-hours each" in text


def test_measured_compute_is_never_called_modelled(results):
    sweep = changed(results.sweep, compute_name="measured device-hours")
    page = report_page(dataclasses.replace(results, plan=sweep.plan), now=NOW)
    assert "2000 measured device-hours each" in text_of(page)
    assert page.count('"compute (measured device-hours)"') >= 1
    assert "modelled GPU-hours" in report_page(results, now=NOW)
    assert "modelled GPU-hours" not in page


@pytest.mark.parametrize("name", TRUTH)
def test_every_ceiling_has_its_interval_and_number_of_seeds(results, name):
    fit = results.variant(name).fits[0]
    said = f"{fit.asymptote} (1 seed)"
    assert said in text_of(report_page(results, now=NOW))


def test_every_difference_names_its_baseline_and_its_rule(decided):
    results = decided
    text, line = text_of(report_page(results, now=NOW)), results.compared("loo-loss")
    level, ceiling, compute = line.answers.values()
    difference = f"{ceiling.estimate:+.3f} [{ceiling.lo:+.3f}, {ceiling.hi:+.3f}] in A against scalerl (3 seeds)"
    against = f"{level.estimate:+.3f} [{level.lo:+.3f}, {level.hi:+.3f}] against scalerl"
    ratio = f"{compute.estimate:.2f} [{compute.lo:.2f}, {compute.hi:.2f}] times its compute"
    verdicts = "loo-loss: lower at equal compute; ceiling down; more compute to the common target"
    assert f"{verdicts}. {line.asymptote} (3 seeds); level {line.level:.3f}, {against}; {difference}; {ratio}" in text
    assert re.search(r"recipe: of levels 0\.00\d\d from 9 repeated runs; of A .* runs; of ln compute .* runs\.", text)
    assert "0.59, 1.77, 2600" in text


def test_corrected_intervals_stand_beside_the_plain_ones(decided):
    results = decided
    text, line = text_of(report_page(results, now=NOW)), results.compared("loo-loss")
    assert f"[{line.answers['level'].joint_lo:+.3f}, {line.answers['level'].joint_hi:+.3f}]" in text
    assert f"[{line.answers['ceiling'].joint_lo:+.3f}, {line.answers['ceiling'].joint_hi:+.3f}]" in text
    assert f"[{line.answers['compute'].joint_lo:.2f}, {line.answers['compute'].joint_hi:.2f}]" in text
    assert (
        line.answers["ceiling"].joint_lo
        < line.answers["ceiling"].lo
        < line.answers["ceiling"].hi
        < line.answers["ceiling"].joint_hi
    )
    assert 'Intervals under "corrected" are corrected for 2 comparisons (Bonferroni)' in text


def test_the_rule_of_the_paper_stands_beside_the_verdict_and_says_what_it_is(results):
    page = report_page(results, now=NOW)
    table = page[page.index("<h2>Comparison with scalerl</h2>") : page.index("<h2>In words</h2>")]
    # A of 0.54 and of 0.61 against the reference's 0.61.
    assert [re.search(f"</i>{name}\n.*?<td>(up|down|equal)</td>", table, re.DOTALL)[1] for name in list(TRUTH)[1:]] == [
        "down",
        "equal",
    ]
    assert "two A within 0.02 count as equal, regardless of their intervals" in text_of(table)


def test_every_format_and_figure_has_the_same_numbers(decided):
    results = decided
    shown = text_of(report_page(results, now=NOW))
    document, figure = document_of(results, now=NOW), verdicts_figure(results)
    labels = [one.text.replace("−", "-") for one in figure.layout.annotations]
    for name in list(TRUTH)[1:]:
        compute = results.compared(name).answers["compute"]
        ratio = f"{compute.estimate:.2f} [{compute.lo:.2f}, {compute.hi:.2f}]"
        assert shown.count(ratio) == 2  # in a sentence and in the table
        assert sum(ratio in cell for row in document.rows for cell in row.cells) == 1
        assert sum(ratio in cell for row in document.numbers.rows for cell in row) == 1
        assert sum(ratio in text for text in document.findings) == 1
        assert ratio in labels


def test_the_page_has_the_methods_paragraph(results):
    text = text_of(report_page(results, now=NOW))
    for said in ("with the seed (0)", "up to 2,000 modelled GPU-hours", "R_0 anchored", "at commit 4f1c2d"):
        assert said in text[text.index(" Methods ") :]


def test_verdicts_that_occur_are_explained_and_no_others(decided):
    results = decided
    text = text_of(report_page(results, now=NOW))
    assert "level: level down the 95 % interval of the difference in level lies below 0" in text
    assert "ceiling: ceiling down the 95 % interval of the difference in A lies below 0" in text
    assert "compute: more compute the 95 % interval of the compute ratio lies above 1" in text
    assert "fit: collapsed" not in text


def test_mixed_versions_and_unfinished_runs_are_warned_of(tmp_path):
    sweep = make_home(tmp_path, fraction=0.5, state="running")
    home = sweep.home
    folder = home.run(planned_run("loo-loss", 0).id)
    folder.write_status(replace(folder.read_status(), code_versions=("aaaaaa+dirty",)))
    text = text_of(report_page(read_results(sweep), now=NOW))
    assert "trained with 2 versions of the code: 4f1c2d, aaaaaa+dirty." in text
    assert "3 of 3 runs have not reached the budget." in text


def test_a_run_without_a_fit_is_named_with_the_reason(tmp_path):
    sweep = make_home(tmp_path)
    home = sweep.home
    home.run(planned_run("loo-loss", 0).id).metrics.write_text("[]\n{}\n")
    text = text_of(report_page(read_results(sweep), now=NOW))
    assert "loo-loss: no comparison. loo-loss-s0:" in text
    assert "metrics.jsonl:1: not a metrics row" in text


def test_what_the_user_wrote_cannot_become_markup(results):
    sweep = changed(results.sweep, doc="A <b>bold</b> & risky $question")
    page = report_page(dataclasses.replace(results, plan=sweep.plan), now=NOW)
    assert "A <b>bold</b> & risky $question" in text_of(page)
    assert "<b>bold" not in page


def test_the_report_says_where_the_hours_went(results):
    text = text_of(report_page(results, now=NOW))
    assert "Where the hours went variant generators decode" in text
    assert "loo-loss 95.0% 4.0% 1.0% 69.0% 31.0% 4,000 2.0% 27.6%" in text


def test_every_format_says_what_the_pass_rate_is_of(tmp_path):
    sweep = make_home(tmp_path)
    assert document_of(read_results(sweep), now=NOW).task == ""  # of a recipe that no version of ours wrote
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
    assert said in latex_files(document, {})["report.tex"].decode()
