"""A further question is one entry: every output then has its answer."""

import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from fixtures_home import make_home
from rich.console import Console

from ablations.answers.answer import Question
from ablations.answers.interval import JointInterval
from ablations.answers.questions import LEVEL, QUESTIONS
from ablations.findings.results import Results, read_results
from ablations.report.columns import ALL_NUMBERS, columns
from ablations.report.csv_files import sheet_text
from ablations.report.document import document_of
from ablations.report.forest import forest_panels, verdicts_figure
from ablations.report.latex import latex_table
from ablations.report.markdown import markdown_grid
from ablations.report.page import report_page
from ablations.report.tables import comparison_table
from ablations.report.words.comparison import ResultRow, answers, glossary, sentence
from ablations.tracking.sortable import numbers_of_variant, verdicts_of_variant


def first_gain(fits, baseline, spread, comparisons) -> JointInterval:
    """The mean of the first two readings after step 0, less that of the baseline."""
    means = [float(np.mean([fit.curve.score[1:3].mean() for fit in side])) for side in (fits, baseline)]
    estimate = means[0] - means[1]
    lo, hi = estimate - 0.01, estimate + 0.01
    return JointInterval(estimate=estimate, lo=lo, hi=hi, joint_lo=lo - 0.01, joint_hi=hi + 0.01)


START = replace(
    LEVEL,
    name="start",
    key="delta_start",
    verdict_key="start_difference",
    higher="start up",
    lower="start down",
    measured=first_gain,
    heading="start less {reference}'s",
    said={"start up": "faster at the start", "start down": "slower at the start"},
    sentence="at the start {number} against {reference}",
)


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> Iterator[Results]:
    with pytest.MonkeyPatch.context() as patched:
        for reader in ("ablations.answers.compare", "ablations.findings.results"):
            patched.setattr(f"{reader}.QUESTIONS", (*QUESTIONS, START))
        yield read_results(make_home(tmp_path_factory.mktemp("home")))


def text_of(results: Results) -> str:
    console = Console(width=400, record=True, file=io.StringIO())
    console.print(comparison_table(results))
    return console.export_text()


def test_a_fourth_question_stands_in_every_output(results):
    compared = results.compared("loo-loss")
    assert compared is not None
    answer = compared.answers["start"]
    number = ResultRow(results=results, variant=results.variant("loo-loss")).number(START)
    now, name = datetime(2026, 1, 2, tzinfo=UTC), "loo-loss"
    assert number.startswith(f"{answer.estimate:+.3f} [")

    line = results.to_json()["variants"][1]
    assert (line["delta_start"], line["delta_start_joint_hi"]) == (answer.estimate, answer.joint_hi)
    assert line["start_difference"] == answer.verdict
    (row,) = [row for row in csv.DictReader(io.StringIO(sheet_text(results.rows()))) if row["variant"] == name]
    assert float(row["delta_start"]) == answer.estimate
    terminal = text_of(results)
    assert number in terminal
    assert "start less scalerl's" in terminal
    document = document_of(results, now=now)
    assert number in document.rows[1]
    assert "start less" in markdown_grid(document.headings, document.rows)
    assert "& start" in latex_table(results)
    assert "start less scalerl&#39;s" in report_page(results, now=now)
    assert "start, corrected" in [column.heading for column in columns(results, ALL_NUMBERS)]  # the dashboard's table
    assert numbers_of_variant(results, name)["delta_start"] == answer.estimate
    assert verdicts_of_variant(results, name)["verdict_start"] == answer.verdict
    assert forest_panels(results)[3].title == "start less scalerl's"
    assert len({trace.xaxis for trace in verdicts_figure(results).data}) == 4
    assert f"at the start {number} against scalerl" in sentence(
        ResultRow(results=results, variant=results.variant(name))
    )
    assert any("the start" in said or "no difference seen" in said for said in answers(results)[1:])
    assert f"start: {answer.verdict}" in dict(glossary(results))


def test_the_other_answers_stay_as_they_are(results, monkeypatch):
    monkeypatch.setattr("ablations.answers.compare.QUESTIONS", QUESTIONS)
    alone = read_results(results.sweep)
    assert isinstance(START, Question)
    for one, other in zip(alone.comparison.variants, results.comparison.variants, strict=True):
        assert {name: replace(answer) for name, answer in one.answers.items()} == {
            name: answer for name, answer in other.answers.items() if name != "start"
        }
