"""Results at a prompt and in a notebook: a short table, HTML, data frames, and names that are not there."""

import csv
import io

import numpy as np
import pytest
from fixtures_home import make_home

import ablations
from ablations.findings.results import read_results, sweeps
from ablations.findings.summary import Summary
from ablations.report.figures.plots import curves_figure, curves_picture
from ablations.report.writers.csv_files import sheet_text


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    return read_results(make_home(tmp_path_factory.mktemp("home"), seeds=(0, 1)))


def test_a_sweep_whose_reference_has_no_fit_says_so(tmp_path):
    early = read_results(make_home(tmp_path, fraction=0.1))
    assert repr(early).splitlines()[-1] == (
        "At equal compute: no comparison, since scalerl has no fit; no fit: loo-loss, loo-curriculum"
    )
    assert np.isnan(early.to_frame()["level_difference"].to_numpy()).all()


def test_the_html_has_the_differences_of_every_question_and_escapes_names(results):
    html = results._repr_html_()
    for question, answer in zip(results.questions, results.compared("loo-loss").answers.values(), strict=True):
        assert f"<th>{question.heading.format(reference='scalerl')}</th>".replace("'", "&#x27;") in html
        assert f"<td>{answer.cell}</td>" in html
    named = Summary(title="<b>", headings=("a",), rows=(("<script>\x1b",),), closing="&")
    assert "<td>&lt;script&gt;\\x1b</td>" in named.html()
    assert "<p>&amp;</p>" in named.html()


def test_the_frame_has_the_columns_and_numbers_of_the_csv_file(results):
    frame = results.to_frame()
    rows = list(csv.DictReader(io.StringIO(sheet_text(results.rows()))))
    assert list(frame) == list(rows[0])
    assert list(frame["variant"]) == [row["variant"] for row in rows]
    assert [str(value) for value in frame["level_difference"]] == [row["level_difference"] for row in rows]
    assert frame["A"].dtype == float


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
