"""A further question is one entry: every output then has its answer."""

import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from fixtures_document import printed
from fixtures_home import make_home

from ablations.answers.answer import Question
from ablations.answers.interval import JointInterval
from ablations.answers.questions import LEVEL, QUESTIONS
from ablations.findings.results import Results, read_results
from ablations.report.documents.comparison import report_document
from ablations.report.documents.comparison_tables import comparison_table, numbers_table, paper_numbers
from ablations.report.documents.comparison_words import answers, glossary, sentence
from ablations.report.documents.variant_row import VariantRow
from ablations.report.figures.forest import forest_chart
from ablations.report.writers.csv_files import sheet_text
from ablations.report.writers.latex import latex_table
from ablations.report.writers.markdown import markdown_document
from ablations.report.writers.page import page_of
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


def test_a_fourth_question_stands_in_every_output(results):
    compared = results.compared("loo-loss")
    assert compared is not None
    answer = compared.answers["start"]
    number = VariantRow(results=results, variant=results.variant("loo-loss")).number(START)
    now, name = datetime(2026, 1, 2, tzinfo=UTC), "loo-loss"
    assert number.startswith(f"{answer.estimate:+.3f} [")

    line = results.to_json()["variants"][1]
    assert (line["start_difference"], line["start_difference_joint_hi"]) == (answer.estimate, answer.joint_hi)
    assert line["start_verdict"] == answer.verdict
    (row,) = [row for row in csv.DictReader(io.StringIO(sheet_text(results.rows()))) if row["variant"] == name]
    assert float(row["start_difference"]) == answer.estimate
    document = report_document(results, now=now)
    table = comparison_table(results)
    assert number in [cell.text.rstrip("*=? ") for cell in table.rows[1]]
    for text in (printed([table], width=400), markdown_document(document), page_of(document, title="loo")):
        assert number in text
        assert "start less scalerl" in text
    assert "& start" in latex_table(paper_numbers(results))
    assert "start, corrected" in [column.heading for column in numbers_table(results).columns]
    assert numbers_of_variant(results, name)["start_difference"] == answer.estimate
    assert verdicts_of_variant(results, name)["start_verdict"] == answer.verdict
    assert [panel.title for panel in forest_chart(results).panels][3:] == ["start less scalerl's"]
    assert f"at the start {number} against scalerl" in sentence(
        VariantRow(results=results, variant=results.variant(name))
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
