"""Figures: what is measured, fitted, extrapolated and uncertain, and which colour it has."""

import html
import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from fixtures_answers import asymptote, renamed, with_line
from fixtures_home import BUDGET, R_0, TRUTH, changed, make_home, planned_run, write_run

from ablations.findings.results import read_results
from ablations.home.plan import PlannedVariant
from ablations.report.colours import MOST_COLOURED, OTHERS_COLOUR, styles
from ablations.report.curves import ASYMPTOTE_KEY, curves_figure
from ablations.report.forest import forest_panels, left_out_note, verdicts_figure
from ablations.report.series import curve_series, ticks
from ablations.report.static import curves_picture, differences_picture
from ablations.report.style import elided, moved_apart


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A sweep fitted on the first half of its budget."""
    return read_results(changed(make_home(tmp_path_factory.mktemp("home")), fit_to_gpu_hours=BUDGET / 2))


@pytest.fixture(scope="module")
def decided(tmp_path_factory):
    """The same with three seeds, whose differences have intervals."""
    return read_results(
        changed(make_home(tmp_path_factory.mktemp("home"), seeds=(0, 1, 2)), fit_to_gpu_hours=BUDGET / 2)
    )


def traces_of(figure, variant, mode):
    """Traces of one variant with a mode, on the curves' own axis."""
    return [trace for trace in figure.data if (trace.name, trace.mode, trace.xaxis) == (variant, mode, None)]


def lines_of(figure, variant):
    """The fitted curve of a variant: before, inside and beyond the window."""
    return [trace for trace in traces_of(figure, variant, "lines") if trace.line.dash]


def marks_of(figure, variant):
    """The interval and the point of A at the right edge."""
    return [trace for trace in figure.data if (trace.name, trace.xaxis) == (variant, "x2")]


def labels_of(figure):
    """The labels at the right edge, by the name in bold."""
    texts = [one.text for one in figure.layout.annotations if one.xref == "paper" and one.text != ASYMPTOTE_KEY]
    names = [text.removeprefix("<b>").removesuffix("</b>") for text in texts[::2]]
    return dict(zip(names, texts[1::2], strict=True))


def test_every_reading_is_a_point_on_demand_and_those_outside_the_window_are_hollow(results):
    assert traces_of(curves_figure(results), "loo-loss", "lines+markers") == []
    (points,) = traces_of(curves_figure(results, with_points=True), "loo-loss", "lines+markers")
    curve = results.variant("loo-loss").runs[0].curve
    assert points.x[-1] is None
    assert list(points.x[:-1]) == list(curve.compute)
    assert list(points.y[:-1]) == np.round(curve.score, 5).tolist()
    symbols = zip(points.x, points.marker.symbol, strict=True)
    hollow = [compute for compute, symbol in symbols if symbol.endswith("-open")]
    assert hollow == list(np.arange(1050.0, BUDGET + 1, 50))


def test_a_line_is_solid_inside_the_window_and_dashed_beyond_to_the_end_of_the_axis(results):
    _, inside, beyond = lines_of(curves_figure(results), "scalerl")
    assert (inside.line.dash, beyond.line.dash) == ("solid", "dash")
    assert (inside.x[0], inside.x[-1]) == pytest.approx((50.0, BUDGET / 2))
    assert (beyond.x[0], beyond.x[-1]) == pytest.approx((BUDGET / 2, 1.25 * BUDGET))
    expected = float(results.variant("scalerl").fits[0].predict(1.25 * BUDGET)[0])
    assert beyond.y[-1] == pytest.approx(expected, abs=1e-5)


def test_the_band_holds_the_interval_of_the_fitted_curve(results):
    fit = results.variant("scalerl").fits[0]
    (band,) = [trace for trace in traces_of(curves_figure(results), "scalerl", "lines") if trace.fill == "toself"]
    half = len(band.x) // 2
    low, high = fit.predict_interval(np.array(band.x[:half]))
    assert np.array(band.y[:half]) == pytest.approx(high, abs=1e-5)
    assert np.array(band.y[half:][::-1]) == pytest.approx(low, abs=1e-5)


def test_each_asymptote_is_written_with_its_interval_beside_the_name(results):
    figure = curves_figure(results)
    assert figure.layout.showlegend is False
    for variant in results.variants:
        found = variant.fits[0].asymptote
        assert labels_of(figure)[variant.name] == f"A {found.A:.3f} [{found.lo:.3f}, {found.hi:.3f}]"
        bar, point = marks_of(figure, variant.name)
        assert list(bar.y) == [found.lo, found.hi]
        assert list(point.y) == [found.A]


def test_a_lower_bound_alone_is_an_arrow_with_its_sign(results):
    figure = curves_figure(with_asymptote(results, None, 0.567, None))
    assert labels_of(figure)["loo-loss"] == "A ≥ 0.56"  # rounded down
    bar, point = marks_of(figure, "loo-loss")
    assert (point.y[0], point.marker.symbol) == (0.567, "triangle-up")
    assert bar.y[1] == figure.layout.yaxis.range[1]


def test_labels_are_moved_apart_in_the_order_of_what_they_name():
    wanted = [0.52, 0.50, 0.9, 0.51]
    places = moved_apart(wanted, gap=0.1, low=0.0, high=1.0)
    assert places == pytest.approx([0.61, 0.41, 0.9, 0.51])  # three around .51, in their order
    assert moved_apart([0.99, 0.98], gap=0.1, low=0.0, high=1.0) == pytest.approx([1.0, 0.9])
    assert moved_apart([0.5] * 3, gap=0.8, low=0.0, high=1.0) == pytest.approx([0.0, 0.5, 1.0])
    assert moved_apart([], gap=0.1, low=0.0, high=1.0) == []


def test_a_logarithmic_axis_leaves_out_compute_zero(results):
    figure = curves_figure(results, log_compute=True)
    assert figure.layout.xaxis.type == "log"
    drawn = [x for trace in figure.data if trace.xaxis is None for x in trace.x if x is not None]
    assert (min(drawn), max(drawn)) == pytest.approx((50.0, 1.25 * BUDGET))


def points_of(figure, axis):
    """The estimates of a panel, by variant."""
    return {one.name: one.x[0] for one in figure.data if (one.xaxis, one.mode) == (axis, "markers")}


def intervals_of(figure, axis):
    """The intervals of a panel, by variant."""
    return {one.name: list(one.x) for one in figure.data if (one.xaxis, one.mode) == (axis, "lines")}


def numbers_of(figure, axis):
    """The column of numbers beside a panel, from top to bottom."""
    return [one.text.replace("−", "-") for one in figure.layout.annotations if one.yref == axis]


def test_each_question_has_a_panel_with_intervals_and_numbers_in_a_column_of_their_own(decided):
    figure = verdicts_figure(decided)
    # At equal compute loo-curriculum loses less than loo-loss (fixtures_home.TRUTH), and stands on top.
    assert list(figure.layout.yaxis.ticktext) == ["loo-curriculum", "loo-loss"]
    for question, axis in (("level", ""), ("ceiling", "2"), ("compute", "3")):
        answers = {name: decided.compared(name).answers[question] for name in ("loo-curriculum", "loo-loss")}
        assert points_of(figure, f"x{axis}") == {name: one.estimate for name, one in answers.items()}
        assert intervals_of(figure, f"x{axis}") == {name: [one.lo, one.hi] for name, one in answers.items()}
        form = ".2f" if question == "compute" else "+.3f"
        said = [f"{one.estimate:{form}} [{one.lo:{form}}, {one.hi:{form}}]" for one in answers.values()]
        assert numbers_of(figure, f"y{axis}") == said
        (column,) = {one.x for one in figure.layout.annotations if one.yref == f"y{axis}"}
        assert column == figure.layout[f"xaxis{axis}"].domain[1]  # where the panel ends
    starts = [figure.layout[f"xaxis{axis}"].domain[0] for axis in ("2", "3")]
    ends = [figure.layout[f"xaxis{axis}"].domain[1] for axis in ("", "2")]
    assert all(start > end for start, end in zip(starts, ends, strict=True))
    assert [shape.x0 for shape in figure.layout.shapes] == [0.0, 0.0, 1.0]
    assert {figure.layout[f"xaxis{axis}"].tickangle for axis in ("", "2", "3")} == {0}


def test_what_is_undecided_is_grey_and_hollow(decided):
    (_, point) = [one for one in verdicts_figure(decided).data if (one.xaxis, one.name) == ("x2", "loo-curriculum")]
    assert decided.compared("loo-curriculum").answers["ceiling"].verdict == "no difference seen"
    assert (point.marker.color, point.marker.symbol[0]) == (OTHERS_COLOUR, "circle-open")
    (_, other) = [one for one in verdicts_figure(decided).data if (one.xaxis, one.name) == ("x2", "loo-loss")]
    assert (other.marker.color, other.marker.symbol[0]) == (styles(decided.plan)["loo-loss"].colour, "circle")


def test_a_question_without_any_number_has_no_panel_and_a_line_says_so(results):
    nothing = results
    for name in list(TRUTH)[1:]:
        nothing = with_line(nothing, name, answers={"ceiling": {"estimate": None, "lo": None, "hi": None}})
    assert [panel.question.name for panel in forest_panels(nothing)] == ["level", "compute"]
    assert left_out_note(nothing) == "Not drawn: the ceiling; no evaluation bounds a difference in it yet."
    assert left_out_note(results) == ""


@pytest.mark.parametrize("log", [False, True])
def test_ticks_lie_on_the_axis_with_no_difference_among_them(log):
    for low, high in ((0.31, 1.9), (0.96, 1.04), (0.05, 60.0), (0.98, 1.6)):
        ends = (low, high) if log else (low - 1, high - 1)
        for most in (1, 2, 3):
            found = ticks(*ends, most, log=log)
            assert 1 <= len(found) <= most
            assert float(log) in found
            assert all(ends[0] <= one <= ends[1] for one in found)


def with_ceiling(results, estimate, lo, hi):
    """The results with another answer on the ceiling of `loo-loss`."""
    return with_line(results, "loo-loss", answers={"ceiling": {"estimate": estimate, "lo": lo, "hi": hi}})


def with_asymptote(results, A, lo, hi):
    """The results with another asymptote of `loo-loss`."""
    return with_line(results, "loo-loss", **asymptote(results.compared("loo-loss"), A=A, lo=lo, hi=hi))


def test_a_difference_without_an_upper_end_goes_to_the_edge_where_an_arrow_stands(results):
    figure = verdicts_figure(with_ceiling(results, None, 0.02, None))
    bar, mark = [one for one in figure.data if (one.xaxis, one.name) == ("x2", "loo-loss")]
    edge = figure.layout.xaxis2.range[1]
    assert list(bar.x) == [0.02, edge]
    assert (list(mark.x), list(mark.marker.symbol)) == ([edge], ["triangle-right"])


def test_a_difference_that_nothing_bounds_is_said_not_to_be_known(results):
    figure = verdicts_figure(with_ceiling(results, None, None, None))
    assert {one.name for one in figure.data if one.xaxis == "x2"} == {"loo-curriculum"}
    assert numbers_of(figure, "y2")[list(figure.layout.yaxis.ticktext).index("loo-loss")] == "not known"


def test_a_long_name_is_elided_in_the_middle():
    assert elided("loss.type=dapo,batch.prompts=32", 21) == "loss.type=…prompts=32"
    assert elided("loo-loss", 8) == "loo-loss"


def test_a_curve_that_does_not_rise_has_no_ceiling_to_draw(tmp_path):
    sweep = make_home(tmp_path)
    home = sweep.home
    run_id = planned_run("loo-loss", 0).id
    shutil.rmtree(home.run(run_id).path)
    write_run(home, run_id, (R_0, 1.9, 320.0))
    flat = read_results(sweep)
    curves = curves_figure(flat)
    assert labels_of(curves)["loo-loss"] == "no rise"
    assert marks_of(curves, "loo-loss") == []
    figure = verdicts_figure(flat)
    assert {trace.name for trace in figure.data if trace.xaxis == "x2"} == {"loo-curriculum"}
    assert "no rise" in numbers_of(figure, "y2")


def test_a_sweep_without_a_reading_still_has_figures(tmp_path):
    sweep = make_home(tmp_path)
    home = sweep.home
    for name in TRUTH:
        home.run(planned_run(name, 0).id).metrics.unlink()
    empty = read_results(sweep)
    assert not curves_figure(empty).data
    assert not verdicts_figure(empty).data
    assert curves_picture(empty, "svg").startswith(b"<?xml")
    assert differences_picture(empty, "svg").startswith(b"<?xml")


def test_readings_without_a_fit_are_drawn_and_labelled(tmp_path):
    found = read_results(make_home(tmp_path, fraction=0.1))
    assert not any(variant.fits for variant in found.variants)
    figure = curves_figure(found)
    assert labels_of(figure) == dict.fromkeys(TRUTH, "no fit")
    assert [trace.name for trace in figure.data] == list(TRUTH)


def test_stacked_panels_name_every_variant_at_each_and_have_the_same_traces(decided):
    figure = verdicts_figure(decided, stacked=True)
    for axis in ("yaxis", "yaxis2", "yaxis3"):
        assert list(figure.layout[axis].ticktext) == ["loo-curriculum", "loo-loss"]
    assert [shape.yref for shape in figure.layout.shapes] == ["y domain", "y2 domain", "y3 domain"]
    wide = verdicts_figure(decided)
    assert json.loads(str(wide.to_json()))["data"] == json.loads(str(figure.to_json()))["data"]
    tops = [figure.layout[axis].domain for axis in ("yaxis", "yaxis2", "yaxis3")]
    assert tops[0][0] > tops[1][1] > tops[1][0] > tops[2][1]


def test_an_asymptote_lengthens_the_axis_if_it_is_near_and_else_is_an_arrow_at_its_top(results):
    # The readings end at .61, so that A of 2 has no place on the axis and .7 has one.
    for A, lo, hi in ((2.0, 1.8, 2.2), (0.7, 0.6, 0.8)):
        series = curve_series(with_asymptote(results, A, lo, hi))
        marks = {one.name: one.asymptote for one in series.variants}
        top = series.score_range[1]
        assert (marks["loo-loss"].height, marks["loo-loss"].is_above) == ((top, True) if A > 1 else (A, False))
        assert top > 0.61
        assert not marks["scalerl"].is_open


def test_no_two_variants_of_a_figure_share_a_colour_but_grey_and_each_keeps_that_of_its_place_if_it_can(results):
    more = [PlannedVariant(name=f"v{place}", overrides={"a": 1}, runs=()) for place in range(40)]
    plan = replace(results.plan, variants=(*results.plan.variants, *more))
    for focus in (None, ["v0", "v8", "v16"], [f"v{place}" for place in range(5, 20)]):
        colours = [one.colour for name, one in styles(plan, focus).items() if focus is None or name in focus]
        shown = [colour for colour in colours if colour != OTHERS_COLOUR]
        assert len(shown) == len(set(shown)) == min(len(colours), MOST_COLOURED - (focus is not None))
    own = styles(plan)["v1"].colour
    assert styles(plan, ["v1", "v20"])["v1"].colour == own
    assert styles(plan, ["v1", "v9"])["v1"].colour == own  # v9 would have it too, eight places further


@pytest.mark.parametrize("name", ['<a href="https://example.org">x</a>', "%{x}", "&lt;"])
def test_a_name_is_shown_letter_by_letter(results, name):
    figure = curves_figure(renamed(results, "loo-loss", name), with_points=True)
    said = next(text for text in labels_of(figure) if html.unescape(text) == elided(name, 24))
    assert "<" not in said
    (points,) = [one for one in figure.data if html.unescape(one.name) == name and one.mode == "lines+markers"]
    said = points.hovertemplate.partition(", %{text}<br>")[0]
    assert "<" not in said
    assert "%{" not in said
    assert html.unescape(said) == name
    assert set(points.text) == {"seed 0", ""}
