"""Colours of a grid's cells: blue if better, orange if worse, by size, pale if undecided."""

from dataclasses import replace
from datetime import UTC, datetime

from ablations.answers.answer import Answer
from ablations.answers.questions import COMPUTE, LEVEL
from ablations.findings.results import read_results
from ablations.report.formats import write_in_format
from ablations.report.grid_tables import grid_tables, heat_colours


def answer(question, estimate, verdict="cannot tell"):
    written = Answer.written(question, estimate=estimate, lo=None, hi=None)
    return replace(written, verdict=verdict)


def test_the_colour_says_direction_size_and_whether_it_is_decided():
    (colours,) = heat_colours(
        [
            [
                None,
                answer(LEVEL, 0.02, "level up"),
                answer(LEVEL, -0.04, "level down"),
                answer(LEVEL, -0.04),
                answer(LEVEL, 0.0),
                answer(LEVEL, None),
            ]
        ]
    )
    blue, orange = "rgba(33,109,164,", "rgba(215,101,29,"
    assert colours == ("", f"{blue}0.25)", f"{orange}0.5)", f"{orange}0.12)", "", "")


def test_less_compute_is_better_and_is_measured_by_its_logarithm_apart_from_other_questions():
    (colours,) = heat_colours(
        [[answer(COMPUTE, 0.25, "less compute"), answer(COMPUTE, 2.0, "more compute"), answer(LEVEL, 0.01, "level up")]]
    )
    assert colours == ("rgba(33,109,164,0.5)", "rgba(215,101,29,0.25)", "rgba(33,109,164,0.5)")


def test_the_report_and_its_tables_have_one_colour_for_each_cell(grid):
    results = read_results(grid)
    tables = grid_tables(results)
    for table in tables:
        assert [len(row) for row in table.colours] == [len(row) for row in table.rows]
        assert all(row[0] == "" for row in table.colours)
    page = write_in_format(results, "html", now=datetime(2026, 1, 1, tzinfo=UTC)).read_text()
    coloured = sum(colour != "" for table in tables for row in table.colours for colour in row)
    assert page.count('<td style="background: rgba(') == coloured > 0
