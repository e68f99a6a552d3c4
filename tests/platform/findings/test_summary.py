"""Results at a prompt and in a notebook: a short table, HTML, data frames, and names that are not there."""

import csv
import io
from dataclasses import replace

import numpy as np
import pytest
from fixtures_home import make_home

import ablations
from ablations.findings.results import read_results, sweeps
from ablations.findings.summary import Summary, grouped
from ablations.report.csv_files import comparison_sheet
from ablations.report.curves import curves_figure
from ablations.report.static import curves_picture


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return read_results(make_home(tmp_path_factory.mktemp("home"), seeds=(0, 1)))


def test_results_print_a_line_per_variant_and_the_verdicts_at_equal_compute(results):
    title, headings, *rows, closing = repr(results).splitlines()
    assert title == "loo at scale laptop, against scalerl"
    assert headings.split()[:3] == ["variant", "seeds", "level"]
    assert [row.split()[0] for row in rows] == ["scalerl", "loo-loss", "loo-curriculum"]
    assert closing == "At equal compute: level down: loo-loss, loo-curriculum"
    assert max(map(len, rows)) <= 120


def test_everything_below_results_prints_on_one_line(results):
    for shown in (*results.variants, *results.runs, results.comparison, *results.comparison.variants):
        assert len(repr(shown)) < 120
        assert "\n" not in repr(shown)


def test_forty_variants_print_fifteen_lines_at_most(results):
    (many,) = [replace(results, variants=results.variants[:1] * 40)]
    assert len(repr(many).splitlines()) <= 15
    assert "and 30 more; to_frame() has every variant" in repr(many)
    assert many._repr_html_().count("<tr><td>") == 40


def test_a_sweep_whose_reference_has_no_fit_says_so(tmp_path):
    early = read_results(make_home(tmp_path, fraction=0.1))
    assert repr(early).splitlines()[-1] == (
        "At equal compute: no comparison, since scalerl has no fit; no fit: loo-loss, loo-curriculum"
    )
    assert np.isnan(early.to_frame()["delta_level"].to_numpy()).all()


def test_the_html_has_the_differences_of_every_question_and_escapes_names(results):
    html = results._repr_html_()
    for question, answer in zip(results.questions, results.compared("loo-loss").answers.values(), strict=True):
        assert f"<th>{question.heading.format(reference='scalerl')}</th>".replace("'", "&#x27;") in html
        assert f"<td>{answer.cell}</td>" in html
    named = Summary(title="<b>", headings=("a",), rows=(("<script>\x1b",),), closing="&")
    assert "<td>&lt;script&gt;\\x1b</td>" in named.html()
    assert "<p>&amp;</p>" in named.html()


def test_a_group_of_many_names_is_cut_and_counted():
    assert grouped({"level down": ["a"], "cannot tell": [*"bcdefg"]}) == (
        "level down: a; cannot tell: b, c, d, e and 2 more"
    )


def test_the_frame_has_the_columns_and_numbers_of_the_csv_file(results):
    frame = results.to_frame()
    rows = list(csv.DictReader(io.StringIO(comparison_sheet(results))))
    assert list(frame) == list(rows[0])
    assert list(frame["variant"]) == [row["variant"] for row in rows]
    assert [str(value) for value in frame["delta_level"]] == [row["delta_level"] for row in rows]
    assert frame["A"].dtype == float


def test_the_frame_of_a_curve_has_a_row_per_reading(results):
    curve = results.run("loo-loss-s1").curve
    frame = curve.to_frame()
    assert list(frame) == ["curve", "compute", "score", "prompts", "samples", "step"]
    assert set(frame["curve"]) == {"loo-loss-s1"}
    assert np.array_equal(frame["score"].to_numpy(), curve.score)


def test_a_run_is_found_by_its_curve_name_and_by_its_id(results):
    run = results.variant("loo-loss").runs[1]
    assert results.run("loo-loss-s1") is results.run(run.id) is run


def test_a_name_that_is_not_there_is_answered_with_the_nearest(results):
    variants = "variants are: scalerl, loo-loss, loo-curriculum"
    unknown = f"unknown variant 'loo-los' in loo; did you mean 'loo-loss'\\? {variants}"
    with pytest.raises(ablations.AblationsError, match=unknown):
        results.variant("loo-los")
    with pytest.raises(ablations.AblationsError, match=unknown):
        curves_figure(results, shown=["loo-los"])
    with pytest.raises(ablations.AblationsError, match=unknown):
        curves_picture(results, "png", shown=["scalerl", "loo-los"])
    with pytest.raises(ablations.AblationsError, match="unknown run 'loo-loss-0' in loo; did you mean 'loo-loss-s0'"):
        results.run("loo-loss-0")


def test_the_sweeps_of_a_home_are_listed_and_a_folder_that_is_not_there_is_refused(results, tmp_path):
    assert sweeps(results.sweep.home.path) == ["loo"]
    assert sweeps(tmp_path) == []
    with pytest.raises(ablations.AblationsError, match="nowhere: no such folder; name one in which"):
        sweeps(tmp_path / "nowhere")
