"""Forest plots and the plane: differences with their intervals, where they are, and what is not known."""

import re
import shutil
from dataclasses import replace

import pytest
from fixtures_answers import with_line
from fixtures_home import R_0, TRUTH, make_home, planned_run, write_run

from ablations.findings.paper_comparison import paper_comparison
from ablations.findings.results import read_results
from ablations.report.figures.chart import GREY, INK
from ablations.report.figures.colours import OTHERS_COLOUR, styles
from ablations.report.figures.forest import forest_chart, left_out_note
from ablations.report.figures.planes import linearised_note, linearised_range, linearised_score, plane_chart

ROWS = ["loo-curriculum", "loo-loss"]
"""At equal compute loo-curriculum loses less than loo-loss (fixtures_home.TRUTH), and stands on top."""


def with_ceiling(results, estimate, lo, hi, *names):
    """The results with another answer on the ceiling of these variants."""
    for name in names or ("loo-loss",):
        results = with_line(results, name, answers={"ceiling": {"estimate": estimate, "lo": lo, "hi": hi}})
    return results


def marks_of(panel, name):
    return [mark for mark in panel.marks if mark.name == name]


def numbers_of(panel):
    return {ROWS[int(label.y)]: label.text.replace("−", "-") for label in panel.labels}


def test_each_question_has_a_panel_with_intervals_and_numbers_in_the_same_rows(decided):
    panels = forest_chart(decided).panels
    assert [panel.x.is_log for panel in panels] == [False, False, True]
    assert [[rule.x for rule in panel.rules] for panel in panels] == [[0.0], [0.0], [1.0]]
    for question, panel in zip(("level", "ceiling", "compute"), panels, strict=True):
        assert [name for _, name in panel.y.ticks] == ROWS
        form = ".2f" if question == "compute" else "+.3f"
        for row, name in enumerate(ROWS):
            one = decided.compared(name).answers[question]
            bar, point = marks_of(panel, name)
            assert (list(bar.x), list(point.x), list(bar.y)) == ([one.lo, one.hi], [one.estimate], [row, row])
            assert numbers_of(panel)[name] == f"{one.estimate:{form}} [{one.lo:{form}}, {one.hi:{form}}]"


def test_a_variant_far_out_does_not_squeeze_the_others_and_is_an_arrow_at_the_edge(many_variants):
    results = read_results(many_variants)
    name = next(one.name for one in results.variants if one.name != results.plan.reference)
    far = with_line(results, name, answers={"level": {"estimate": -0.6, "lo": -0.7, "hi": -0.5}})
    panel, before = forest_chart(far).panels[0], forest_chart(results).panels[0]
    assert panel.x.range[0] > 2 * before.x.range[0]
    arrow = marks_of(panel, name)[-1]
    assert (list(arrow.symbol), list(arrow.x)) == (["triangle-left"], [panel.x.range[0]])
    assert "−0.600 [−0.700, −0.500]" in {label.text.rstrip("*") for label in panel.labels}


def test_what_is_undecided_is_grey_and_hollow(decided):
    panel = forest_chart(decided).panels[1]
    assert decided.compared("loo-curriculum").answers["ceiling"].verdict == "no difference seen"
    for name, colour, is_filled, ink in (
        ("loo-curriculum", OTHERS_COLOUR, False, GREY),
        ("loo-loss", styles(decided.plan)["loo-loss"].colour, True, INK),
    ):
        _, point = marks_of(panel, name)
        assert (point.colour, list(point.is_filled), panel.labels[ROWS.index(name)].colour) == (
            colour,
            [is_filled],
            ink,
        )


def test_a_question_without_any_number_has_no_panel_and_a_line_says_so(decided):
    nothing = with_ceiling(decided, None, None, None, *ROWS)
    assert [panel.x.is_log for panel in forest_chart(nothing).panels] == [False, True]
    assert left_out_note(nothing) == "Not drawn: the ceiling; no evaluation bounds a difference in it yet."
    assert left_out_note(decided) == ""


def test_a_difference_without_an_upper_end_goes_to_the_edge_where_an_arrow_stands(decided):
    panel = forest_chart(with_ceiling(decided, None, 0.02, None)).panels[1]
    bar, mark = marks_of(panel, "loo-loss")
    edge = panel.x.range[1]
    assert (list(bar.x), list(mark.x), list(mark.symbol)) == ([0.02, edge], [edge], ["triangle-right"])


def test_a_difference_that_nothing_bounds_is_said_not_to_be_known(decided):
    panel = forest_chart(with_ceiling(decided, None, None, None)).panels[1]
    assert {mark.name for mark in panel.marks} == {"loo-curriculum"}
    assert numbers_of(panel)["loo-loss"] == "not known"


def test_a_variant_that_does_not_rise_has_no_difference_of_ceilings(tmp_path):
    sweep, run = make_home(tmp_path), planned_run("loo-loss", 0).id
    shutil.rmtree(sweep.home.run(run).path)
    write_run(sweep.home, run, (R_0, 1.9, 320.0))
    panel = forest_chart(read_results(sweep)).panels[1]
    assert {mark.name for mark in panel.marks} == {"loo-curriculum"}
    assert "no rise" in [label.text for label in panel.labels]


def test_the_plane_has_each_variant_at_its_ratio_and_difference_with_both_intervals(decided):
    (panel,) = plane_chart(decided, focus=["loo-loss"]).panels
    by_name = {mark.name: mark for mark in panel.marks}
    compute, ceiling = (decided.compared("loo-loss").answers[name] for name in ("compute", "ceiling"))
    cross, other, base = by_name["loo-loss"], by_name["loo-curriculum"], by_name["scalerl (baseline)"]
    assert (cross.x, cross.y) == ([compute.estimate], [ceiling.estimate])
    assert (cross.x_ends, cross.y_ends) == (([compute.lo], [compute.hi]), ([ceiling.lo], [ceiling.hi]))
    assert (other.colour, other.legend) == (OTHERS_COLOUR, "")
    assert (base.x, base.y) == ([1.0], [0.0])
    open_ended = plane_chart(with_ceiling(decided, ceiling.estimate, None, ceiling.hi), focus=["loo-loss"]).panels[0]
    (cross,) = marks_of(open_ended, "loo-loss")
    assert cross.y_ends[0] == [pytest.approx(open_ended.y.range[0])]  # stops at the frame
    assert set(TRUTH) == {"scalerl", *ROWS}


def test_a_reading_just_below_the_ceiling_does_not_stretch_the_linearised_axis_and_is_counted(decided):
    comparison = paper_comparison(decided)
    before, note = linearised_range(comparison), linearised_note(comparison)
    first, *others = comparison.variants
    fit, *more = first.refits or first.fits
    score = fit.curve.score.copy()
    score[-1] = fit.A - 1e-15  # (A - R_0) / 1e-15 makes an F of 15 more decades
    near = replace(fit, curve=replace(fit.curve, score=score))
    spoiled = replace(comparison, variants=(replace(first, fits=(near, *more), refits=()), *others))
    after = linearised_range(spoiled)
    assert linearised_score(near, score)[-1] > 1e9 * after[1]
    assert after == pytest.approx(before, rel=0.5)
    beyond = re.search(r"(\d+) more lie beyond the axis", linearised_note(spoiled))
    already = re.search(r"(\d+) more lie beyond the axis", note)
    assert int(beyond[1]) == (int(already[1]) if already else 0) + 1
