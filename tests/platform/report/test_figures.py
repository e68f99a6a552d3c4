"""Figures: what is measured, fitted, extrapolated and uncertain, and which colour it has."""

import dataclasses
import shutil

import numpy as np
import pytest
from fixtures_home import BUDGET, R_0, TRUTH, changed, make_home, planned_run, write_run

from ablations.home.plan import PlannedVariant
from ablations.report.colours import styles
from ablations.report.curves import curves_figure, spread, variant_figure
from ablations.report.verdicts import verdicts_figure
from ablations.verdict.results import read_results


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A sweep fitted on the first half of its budget."""
    return read_results(changed(make_home(tmp_path_factory.mktemp("home")), fit_to_gpu_hours=BUDGET / 2))


def traces_of(figure, variant, mode):
    """Traces of one variant with a mode, those that only stand in the legend left out."""
    return [
        trace for trace in figure.data if (trace.legendgroup, trace.mode) == (variant, mode) and trace.x[0] is not None
    ]


def test_every_reading_is_a_point_and_those_outside_the_window_are_hollow(results):
    (points,) = traces_of(curves_figure(results), "loo-loss", "markers")
    curve = results.variant("loo-loss").runs[0].curve
    assert list(points.x) == list(curve.compute)
    assert list(points.y) == list(curve.score)
    hollow = [compute for compute, fill in zip(points.x, points.marker.color, strict=True) if fill == "white"]
    assert hollow == list(np.arange(1050.0, BUDGET + 1, 50))


def test_a_line_is_solid_inside_the_window_and_dashed_to_twice_the_budget(results):
    lines = traces_of(curves_figure(results, banded=[]), "scalerl", "lines")
    assert [(line.x[0], line.x[-1], line.line.dash) for line in lines] == [
        (0.0, 50.0, "dash"),
        (50.0, BUDGET / 2, "solid"),
        (BUDGET / 2, 2 * BUDGET, "dash"),
    ]
    assert lines[-1].y[-1] == pytest.approx(float(results.variant("scalerl").fits[0].predict(2 * BUDGET)[0]))


def test_the_band_holds_the_interval_of_the_fitted_curve(results):
    fit = results.variant("scalerl").fits[0]
    (band,) = [trace for trace in curves_figure(results).data if trace.fill == "toself"]
    half = len(band.x) // 2
    low, high = fit.predict_interval(np.array(band.x[:half]))
    assert band.legendgroup == "scalerl"
    assert np.array(band.y[:half]) == pytest.approx(high)
    assert np.array(band.y[half:][::-1]) == pytest.approx(low)


def test_each_asymptote_is_written_with_its_interval(results):
    figure = curves_figure(results)
    for variant in results.variants:
        (label,) = traces_of(figure, variant.name, "lines+text")
        fit = variant.fits[0]
        assert label.text[-1].strip() == str(fit.asymptote)
        assert label.y[0] == pytest.approx(fit.ceiling.A)


def test_a_logarithmic_axis_leaves_out_compute_zero(results):
    figure = curves_figure(results, log_compute=True)
    assert figure.layout.xaxis.type == "log"
    assert 10 ** figure.layout.xaxis.range[1] == pytest.approx(2 * BUDGET)
    drawn = [x for trace in figure.data for x in trace.x if x is not None]
    assert min(drawn) == 50.0


def test_one_click_on_a_name_takes_everything_of_that_variant(results):
    figure = curves_figure(results)
    assert {trace.legendgroup for trace in figure.data} == set(TRUTH)
    assert [trace.name for trace in figure.data if trace.showlegend is not False] == list(TRUTH)


def test_only_the_chosen_variants_are_drawn_in_the_colours_they_always_have(results):
    everywhere = styles(results.plan)
    figure = curves_figure(results, shown=["loo-curriculum"])
    assert {trace.legendgroup for trace in figure.data} == {"loo-curriculum"}
    (points,) = traces_of(figure, "loo-curriculum", "markers")
    assert points.marker.line.color == everywhere["loo-curriculum"].colour


def test_nine_variants_and_the_reference_among_them_look_different(results):
    names = [f"v{place}" for place in range(8)]
    variants = [PlannedVariant(name=name, overrides={}, runs=()) for name in [*names[:4], "scalerl", *names[4:]]]
    look = styles(dataclasses.replace(results.plan, variants=tuple(variants)))
    assert len({style.colour for style in look.values()}) == 9
    assert len({style.symbol for style in look.values()}) == 9
    assert look["scalerl"].colour == "#1a1a1a"


def test_the_figure_of_a_variant_shows_it_beside_the_reference_with_both_bands(results):
    figure = variant_figure(results, "loo-loss")
    assert {trace.legendgroup for trace in figure.data} == {"scalerl", "loo-loss"}
    assert sum(trace.fill == "toself" for trace in figure.data) == 2


def test_each_question_has_a_panel_with_intervals(results):
    figure = verdicts_figure(results)
    line = results.compared("loo-loss")
    levels = [trace for trace in figure.data if trace.xaxis == "x"]
    assert [trace.x[0] for trace in levels] == [results.compared(name).delta_level for name in list(TRUTH)[1:]]
    assert levels[0].x[0] + levels[0].error_x.array[0] == pytest.approx(line.delta_level_hi)
    assert figure.layout.yaxis.ticktext[1].startswith(f"<b>loo-loss</b><br>{line.delta_level:+.3f} [")
    ceilings = [trace for trace in figure.data if trace.xaxis == "x2"]
    assert [trace.x[0] for trace in ceilings] == [results.compared(name).A for name in TRUTH]
    assert ceilings[1].x[0] + ceilings[1].error_x.array[0] == pytest.approx(line.A_hi)
    assert ceilings[1].x[0] - ceilings[1].error_x.arrayminus[0] == pytest.approx(line.A_lo)
    ratios = [trace for trace in figure.data if trace.xaxis == "x3"]
    assert [trace.x[0] for trace in ratios] == [results.compared(name).compute_ratio for name in list(TRUTH)[1:]]
    assert figure.layout.yaxis2.ticktext[1] == line.asymptote.cell()
    assert {shape.x0 for shape in figure.layout.shapes} == {0.0, results.compared("scalerl").A, 1.0}


def test_a_ceiling_without_an_upper_end_is_an_arrow_at_its_lower_bound(results):
    line = dataclasses.replace(results.compared("loo-loss"), A_hi=None, verdict="lower bound only")
    others = [other for other in results.comparison.variants if other.curve != "loo-loss"]
    comparison = dataclasses.replace(results.comparison, variants=(*others, line))
    bar = verdicts_figure(dataclasses.replace(results, comparison=comparison)).data[-2]
    assert (bar.x[0], bar.marker.symbol, bar.error_x.array[0]) == (line.A_lo, "arrow-right", 0)


def test_a_curve_that_does_not_rise_has_no_ceiling_to_draw(tmp_path):
    sweep = make_home(tmp_path)
    home = sweep.home
    run_id = planned_run("loo-loss", 0).id
    shutil.rmtree(home.run(run_id).path)
    write_run(home, run_id, (R_0, 1.9, 320.0))
    flat = read_results(sweep)
    (label,) = traces_of(curves_figure(flat), "loo-loss", "lines+text")
    assert label.text[-1].strip() == "no rise"
    assert label.y[0] == pytest.approx(R_0, abs=0.01)
    assert [trace.y[0] for trace in verdicts_figure(flat).data if trace.xaxis == "x2"] == [0, 2]


def test_a_sweep_without_a_reading_still_has_figures(tmp_path):
    sweep = make_home(tmp_path)
    home = sweep.home
    for name in TRUTH:
        home.run(planned_run(name, 0).id).metrics.unlink()
    empty = read_results(sweep)
    assert not curves_figure(empty).data
    assert not verdicts_figure(empty).data


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.1, 0.5, 0.9], [0.1, 0.5, 0.9]),  # nothing to do
        ([0.5, 0.5], [0.45, 0.55]),  # a gap, evenly to both sides
        ([0.52, 0.48], [0.55, 0.45]),  # the order stays
        ([0.98, 0.99, 1.0], [0.8, 0.9, 1.0]),  # the box ends at 1
    ],
)
def test_labels_are_moved_apart_as_little_as_need_be(values, expected):
    assert spread(values, 0.1, 0.0, 1.0) == pytest.approx(expected)
