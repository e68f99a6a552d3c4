"""Figures: what is measured, fitted, extrapolated and uncertain, and which colour it has."""

import dataclasses
import html
import shutil
from dataclasses import replace

import numpy as np
import pytest
from fixtures_answers import asymptote, with_line
from fixtures_home import BUDGET, R_0, TRUTH, changed, make_home, planned_run, write_run

from ablations.findings.results import read_results
from ablations.fit.curve import Curve
from ablations.home.plan import PlannedVariant
from ablations.report.colours import styles
from ablations.report.curves import curves_figure
from ablations.report.series import curve_series
from ablations.report.style import elided
from ablations.report.verdicts import verdicts_figure


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
    """Traces of one variant with a mode, those that only stand in the legend left out."""
    return [
        trace for trace in figure.data if (trace.legendgroup, trace.mode) == (variant, mode) and trace.x[0] is not None
    ]


def test_every_reading_is_a_point_and_those_outside_the_window_are_hollow(results):
    (points,) = traces_of(curves_figure(results), "loo-loss", "markers")
    curve = results.variant("loo-loss").runs[0].curve
    assert list(points.x) == list(curve.compute)
    assert list(points.y) == pytest.approx(list(curve.score), abs=5e-6)
    symbols = zip(points.x, points.marker.symbol, strict=True)
    hollow = [compute for compute, symbol in symbols if symbol.endswith("-open")]
    assert hollow == list(np.arange(1050.0, BUDGET + 1, 50))


def test_a_line_is_solid_inside_the_window_and_dashed_to_twice_the_budget(results):
    inside, outside, *_ = traces_of(curves_figure(results, banded=[]), "scalerl", "lines")
    assert (inside.line.dash, outside.line.dash) == ("solid", "dash")
    assert (inside.x[0], inside.x[-1]) == pytest.approx((50.0, BUDGET / 2))
    assert (outside.x[np.flatnonzero(np.isnan(outside.x))[0] + 1], outside.x[-1]) == pytest.approx(
        (BUDGET / 2, 2 * BUDGET)
    )
    expected = float(results.variant("scalerl").fits[0].predict(2 * BUDGET)[0])
    assert outside.y[-1] == pytest.approx(expected, abs=1e-5)


def test_the_band_holds_the_interval_of_the_fitted_curve(results):
    fit = results.variant("scalerl").fits[0]
    (band,) = [trace for trace in curves_figure(results).data if trace.fill == "toself"]
    half = len(band.x) // 2
    low, high = fit.predict_interval(np.array(band.x[:half]))
    assert band.legendgroup == "scalerl"
    assert np.array(band.y[:half]) == pytest.approx(high, abs=1e-5)
    assert np.array(band.y[half:][::-1]) == pytest.approx(low, abs=1e-5)


def test_each_asymptote_is_written_with_its_interval_and_rounded_to_it(results):
    figure = curves_figure(results)
    # Half of each interval is 0.0238, 0.0168 and 0.0449: by the rule two digits, two and one.
    for variant, digits in zip(results.variants, (3, 3, 2), strict=True):
        fit = variant.fits[0]
        A, lo, hi = (f"{value:.{digits}f}" for value in (fit.asymptote.A, fit.asymptote.lo, fit.asymptote.hi))
        assert f"{variant.name}: A {A} [{lo}, {hi}]" in [trace.name for trace in figure.data]
        strokes = [trace for trace in traces_of(figure, variant.name, "lines") if len(trace.x) == 2]
        assert [list(stroke.y) for stroke in strokes] == [
            pytest.approx([fit.ceiling.estimate] * 2),
            pytest.approx([fit.asymptote.lo, fit.asymptote.hi]),
        ]


def test_a_logarithmic_axis_leaves_out_compute_zero(results):
    figure = curves_figure(results, log_compute=True)
    assert figure.layout.xaxis.type == "log"
    drawn = [x for trace in figure.data for x in trace.x if x is not None and not np.isnan(x)]
    assert (min(drawn), max(drawn)) == pytest.approx((50.0, 2 * BUDGET))


def test_one_click_on_a_name_takes_everything_of_that_variant(results):
    figure = curves_figure(results)
    assert {trace.legendgroup for trace in figure.data} == set(TRUTH)
    entries = [trace.name.partition(":")[0] for trace in figure.data if trace.showlegend is not False]
    assert entries == list(TRUTH)


def test_only_the_chosen_variants_are_drawn_in_the_colours_they_always_have(results):
    everywhere = styles(results.plan)
    figure = curves_figure(results, shown=["loo-curriculum"])
    assert {trace.legendgroup for trace in figure.data} == {"loo-curriculum"}
    (points,) = traces_of(figure, "loo-curriculum", "markers")
    assert points.marker.color == everywhere["loo-curriculum"].colour


def test_nine_variants_and_the_reference_among_them_look_different(results):
    names = [f"v{place}" for place in range(8)]
    variants = [PlannedVariant(name=name, overrides={}, runs=()) for name in [*names[:4], "scalerl", *names[4:]]]
    look = styles(dataclasses.replace(results.plan, variants=tuple(variants)))
    assert len({style.colour for style in look.values()}) == 9
    assert len({style.symbol for style in look.values()}) == 9
    assert look["scalerl"].colour == "#1a1a1a"


def test_each_question_has_a_panel_with_intervals(decided):
    results = decided
    figure = verdicts_figure(results)
    line = results.compared("loo-loss")
    levels = [trace for trace in figure.data if trace.xaxis == "x"]
    assert [trace.x[0] for trace in levels] == [
        results.compared(name).answers["level"].estimate for name in list(TRUTH)[1:]
    ]
    assert levels[0].x[0] + levels[0].error_x.array[0] == pytest.approx(line.answers["level"].hi)
    assert figure.layout.yaxis.ticktext[0].startswith(f"<b>loo-loss</b><br>{line.answers['level'].estimate:+.4f} [")
    ceilings = [trace for trace in figure.data if trace.xaxis == "x2"]
    assert [trace.x[0] for trace in ceilings] == [
        results.compared(name).answers["ceiling"].estimate for name in list(TRUTH)[1:]
    ]
    assert ceilings[0].x[0] + ceilings[0].error_x.array[0] == pytest.approx(line.answers["ceiling"].hi)
    assert ceilings[0].x[0] - ceilings[0].error_x.arrayminus[0] == pytest.approx(line.answers["ceiling"].lo)
    ratios = [trace for trace in figure.data if trace.xaxis == "x3"]
    assert [trace.x[0] for trace in ratios] == [
        results.compared(name).answers["compute"].estimate for name in list(TRUTH)[1:]
    ]
    assert figure.layout.yaxis2.ticktext[0].startswith(f"{line.answers['ceiling'].estimate:+.3f} [")
    assert [shape.x0 for shape in figure.layout.shapes] == [0.0, 0.0, 1.0]


def with_ceiling(results, estimate, lo, hi):
    """The results with another answer on the ceiling of `loo-loss`."""
    return with_line(results, "loo-loss", answers={"ceiling": {"estimate": estimate, "lo": lo, "hi": hi}})


def with_asymptote(results, A, lo, hi):
    """The results with another asymptote of `loo-loss`."""
    return with_line(results, "loo-loss", **asymptote(results.compared("loo-loss"), A=A, lo=lo, hi=hi))


def test_a_difference_without_an_upper_end_is_an_arrow_at_its_lower_bound(results):
    (bar,) = [
        trace
        for trace in verdicts_figure(with_ceiling(results, None, 0.02, None)).data
        if (trace.xaxis, trace.y[0]) == ("x2", 0)
    ]
    assert (bar.x[0], bar.marker.symbol, bar.error_x.array[0]) == (0.02, "arrow-right", 0)


def test_a_difference_that_nothing_bounds_is_said_not_to_be_known(results):
    figure = verdicts_figure(with_ceiling(results, None, None, None))
    assert [trace.y[0] for trace in figure.data if trace.xaxis == "x2"] == [1]
    assert figure.layout.yaxis2.ticktext[0] == "not known"


def test_an_asymptote_above_the_axis_is_an_arrow_at_its_top(results):
    # The readings end at .61, so that A of 2 has no place on the axis and .9 has one.
    far = curve_series(with_asymptote(results, 2.0, 1.8, 2.2))
    marks = {one.name: one.asymptote for one in far.variants}
    assert (marks["loo-loss"].is_above, marks["loo-loss"].height) == (True, far.score_range[1])
    assert not marks["scalerl"].is_open


def test_the_axis_is_drawn_longer_for_an_asymptote_that_is_near(results):
    near = curve_series(with_asymptote(results, 0.7, 0.6, 0.8))
    (mark,) = [one.asymptote for one in near.variants if one.name == "loo-loss"]
    assert (mark.height, mark.is_above) == (0.7, False)
    assert near.score_range[1] > 0.7


def test_an_asymptote_without_an_upper_end_is_an_arrow_at_its_lower_bound(results):
    series = curve_series(with_asymptote(results, None, 0.5, None))
    (mark,) = [one.asymptote for one in series.variants if one.name == "loo-loss"]
    assert (mark.height, mark.is_open, mark.is_above) == (0.5, True, False)


def test_no_two_of_forty_variants_share_colour_and_marker(results):
    variants = [PlannedVariant(name=f"v{place}", overrides={}, runs=()) for place in range(40)]
    look = styles(dataclasses.replace(results.plan, variants=(*results.plan.variants, *variants)))
    assert len({(style.colour, style.symbol) for style in look.values()}) == 43


@pytest.mark.parametrize("name", ['<a href="https://example.org">x</a>', "<b>bold", "%{x}", "&lt;"])
def test_a_name_is_shown_letter_by_letter(results, name):
    (variant,) = [one for one in results.variants if one.name == "loo-loss"]
    runs = tuple(dataclasses.replace(run, variant=name) for run in variant.runs)
    renamed = dataclasses.replace(variant, name=name, runs=runs)
    planned = [
        dataclasses.replace(one, name=name if one.name == "loo-loss" else one.name) for one in results.plan.variants
    ]
    variants = tuple(renamed if one is variant else one for one in results.variants)
    sweep = changed(results.sweep, variants=tuple(planned))
    figure = curves_figure(dataclasses.replace(results, plan=sweep.plan, variants=variants))
    (entry,) = [trace for trace in figure.data if trace.legendgroup == name and trace.name is not None]
    assert html.unescape(entry.name).rpartition(": A")[0] == name
    assert "<" not in entry.name
    (points,) = traces_of(figure, name, "markers")
    said = points.hovertemplate.partition(", %{text}<br>")[0]
    assert "<" not in said
    assert "%{" not in said
    assert html.unescape(said) == name
    assert set(points.text) == {"seed 0"}


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
    assert "loo-loss: no rise" in [trace.name for trace in curves.data]
    assert [trace for trace in traces_of(curves, "loo-loss", "lines") if len(trace.x) == 2] == []
    figure = verdicts_figure(flat)
    assert [trace.y[0] for trace in figure.data if trace.xaxis == "x2"] == [1]
    assert figure.layout.yaxis2.ticktext[0] == "no rise"


def test_a_sweep_without_a_reading_still_has_figures(tmp_path):
    sweep = make_home(tmp_path)
    home = sweep.home
    for name in TRUTH:
        home.run(planned_run(name, 0).id).metrics.unlink()
    empty = read_results(sweep)
    entries = [(trace.name, trace.x) for trace in curves_figure(empty).data]
    assert entries == [(f"{name}: no fit", (None,)) for name in TRUTH]
    assert not verdicts_figure(empty).data


def test_a_run_of_many_readings_is_drawn_by_as_many_points_as_a_screen_can_show(results):
    run = results.variant("loo-loss").runs[0]
    curve = Curve(name="many", compute=np.linspace(0, BUDGET, 4000), score=np.repeat(run.curve.score[:40], 100))
    many = replace(results.variant("loo-loss"), runs=(replace(run, curve=curve),))
    variants = tuple(many if one.name == "loo-loss" else one for one in results.variants)
    (points,) = traces_of(curves_figure(replace(results, variants=variants)), "loo-loss", "markers")
    assert len(points.x) == 800  # of three runs: a third of 2,400
    assert np.mean(points.y) == pytest.approx(np.mean(curve.score))  # each of five readings


def test_stacked_panels_name_every_variant_at_each(results):
    figure = verdicts_figure(results, stacked=True)
    for axis in ("yaxis", "yaxis2", "yaxis3"):
        names = [text.partition("</b>")[0].removeprefix("<b>") for text in figure.layout[axis].ticktext]
        assert names == list(TRUTH)[1:]
    assert [shape.yref for shape in figure.layout.shapes] == ["y domain", "y2 domain", "y3 domain"]
