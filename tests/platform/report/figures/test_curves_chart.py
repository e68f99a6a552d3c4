"""The chart of curves: what is measured, fitted, extrapolated and uncertain, and which colour it has."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from fixtures_answers import asymptote, with_line
from fixtures_home import BUDGET, R_0, TRUTH, changed, make_home, planned_run, write_run

from ablations.findings.results import read_results
from ablations.home.plan import PlannedVariant
from ablations.report.figures.axes import thinned, thinned_note, ticks
from ablations.report.figures.chart import MEASURED, Band, elided
from ablations.report.figures.colours import MOST_COLOURED, OTHERS_COLOUR, own_reference, styles
from ablations.report.figures.curves import along_rows, curves_chart


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A sweep fitted on the first half of its budget."""
    return read_results(changed(make_home(tmp_path_factory.mktemp("home")), fit_to_gpu_hours=BUDGET / 2))


def panel_of(results, **asked):
    (panel,) = curves_chart(results, **asked).panels
    return panel


def named(marks, name):
    return [mark for mark in marks if mark.name == name]


def parts_of(panel, name):
    """The bands, the readings, and the parts of the fitted curve of a variant."""
    marks = named(panel.marks, name)
    bands = [mark for mark in marks if isinstance(mark, Band)]
    readings = [mark for mark in marks if mark not in bands and mark.width == MEASURED]
    return bands, readings, [mark for mark in marks if mark not in (*bands, *readings)]


def labels_of(panel):
    return {label.name: label.text for label in panel.labels}


def with_asymptote(results, A, lo, hi):
    """The results with another asymptote of `loo-loss`."""
    return with_line(results, "loo-loss", **asymptote(results.compared("loo-loss"), A=A, lo=lo, hi=hi))


def without_rise(path):
    """A sweep in which loo-loss stays where it was before RL."""
    sweep, run = make_home(path), planned_run("loo-loss", 0).id
    shutil.rmtree(sweep.home.run(run).path)
    write_run(sweep.home, run, (R_0, 1.9, 320.0))
    return read_results(sweep)


def test_every_reading_is_on_a_thin_line_and_on_demand_a_point_hollow_outside_the_window(results):
    _, (line,), _ = parts_of(panel_of(results), "loo-loss")
    assert line.symbol == ""
    _, (points,), _ = parts_of(panel_of(results, with_points=True), "loo-loss")
    curve = results.variant("loo-loss").runs[0].curve
    assert points.symbol == styles(results.plan)["loo-loss"].symbol
    assert np.isnan(points.x[-1])
    assert points.x[:-1].tolist() == line.x[:-1].tolist() == list(curve.compute)
    assert points.y[:-1].tolist() == list(curve.score)
    assert points.x[~np.array(points.is_filled)].tolist() == list(np.arange(1050.0, BUDGET + 1, 50))


def test_a_line_is_solid_inside_the_window_and_dashed_beyond_to_the_end_of_the_axis(results):
    panel = panel_of(results)
    _, _, (_, inside, beyond) = parts_of(panel, "scalerl")
    assert (inside.dash, beyond.dash) == ("solid", "dash")
    assert (inside.x[0], inside.x[-1]) == pytest.approx((50.0, BUDGET / 2))
    assert (beyond.x[0], beyond.x[-1]) == pytest.approx((BUDGET / 2, 1.25 * BUDGET))
    assert beyond.y[-1] == pytest.approx(float(results.variant("scalerl").fits[0].predict(1.25 * BUDGET)[0]))
    assert [(rule.x, rule.text) for rule in panel.rules] == [(BUDGET, "budget"), (BUDGET / 2, "fitted to here")]


def test_the_band_holds_the_interval_of_the_fitted_curve(results):
    (band,), _, _ = parts_of(panel_of(results), "scalerl")
    low, high = results.variant("scalerl").fits[0].predict_interval(band.x)
    assert band.low == pytest.approx(low)
    assert band.high == pytest.approx(high)


def test_the_band_of_several_seeds_lies_about_their_mean(decided):
    (band,), _, _ = parts_of(panel_of(decided), "scalerl")
    mean = np.mean([fit.predict(band.x) for fit in decided.variant("scalerl").fits], axis=0)
    beyond = band.x > 200
    assert np.all((band.low < mean)[beyond])
    assert np.all((mean < band.high)[beyond])


def test_each_asymptote_is_written_with_its_interval_beside_the_name(results):
    panel = panel_of(results)
    for variant in results.variants:
        found = variant.fits[0].asymptote
        assert labels_of(panel)[variant.name] == f"A {found.A:.3f} [{found.lo:.3f}, {found.hi:.3f}]"
        bar, point = named(panel.strip, variant.name)
        assert (list(bar.y), list(point.y)) == ([found.lo, found.hi], [found.A])


def test_a_lower_bound_alone_is_an_arrow_at_the_top_with_its_sign(results):
    panel = panel_of(with_asymptote(results, None, 0.567, None))
    assert labels_of(panel)["loo-loss"] == "A ≥ 0.56"  # rounded down
    bar, arrow = named(panel.strip, "loo-loss")
    top = panel.y.range[1]
    assert (list(bar.y), list(arrow.y), list(arrow.symbol)) == ([0.567, top], [top], ["triangle-up"])
    assert next(label.y for label in panel.labels if label.name == "loo-loss") == 0.567


def test_an_asymptote_lengthens_the_axis_if_it_is_near_and_else_is_an_arrow_at_its_top(results):
    # The readings end at .61, so that A of 2 has no place on the axis and .7 has one.
    for A, lo, hi, symbol in ((2.0, 1.8, 2.2, "triangle-up"), (0.7, 0.6, 0.8, "circle")):
        panel = panel_of(with_asymptote(results, A, lo, hi))
        _, mark = named(panel.strip, "loo-loss")
        top = panel.y.range[1]
        assert (list(mark.y), list(mark.symbol)) == ([min(A, top)], [symbol])
        assert top > 0.61


def test_a_logarithmic_axis_leaves_out_compute_zero(results):
    panel = panel_of(results, log_compute=True)
    assert panel.x.is_log
    assert (np.nanmin([np.nanmin(mark.x) for mark in panel.marks]), panel.x.range[1]) == (50.0, 1.25 * BUDGET)


def test_others_are_one_grey_line_without_points_or_labels(decided):
    panel = panel_of(decided, shown=["scalerl"])
    (grey,) = named(panel.marks, "2 others")
    assert (set(grey.texts), grey.colour) == ({"loo-loss", "loo-curriculum"}, OTHERS_COLOUR)
    assert {mark.name for mark in panel.marks} == {"scalerl", "2 others"}
    assert list(labels_of(panel)) == ["scalerl"]


def test_a_figure_of_many_readings_has_no_more_points_than_a_screen_shows(decided, monkeypatch):
    monkeypatch.setattr("ablations.report.figures.axes.MOST_POINTS", 60)
    _, (points,), _ = parts_of(panel_of(decided, shown=["scalerl"], with_points=True), "scalerl")
    assert np.isfinite(points.x).sum() == 60
    assert thinned_note(decided, ["scalerl"]) == "Each point is the mean of up to 3 neighbouring evaluations."
    compute, score, sizes = thinned(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([0.1, 0.3, 0.5, 0.7, 0.9]), 2)
    assert (compute.tolist(), sizes.tolist()) == ([2.0, 4.5], [3, 2])
    assert score.tolist() == pytest.approx([0.3, 0.8])


def test_beyond_the_last_evaluation_steps_go_on_at_their_mean_rate():
    along = along_rows(np.array([0.0, 10.0, 20.0]), np.array([0.0, 100.0, 400.0]))
    assert along(np.array([5.0, 15.0, 20.0, 30.0])).tolist() == [50.0, 250.0, 400.0, 600.0]


def test_a_curve_that_does_not_rise_has_no_ceiling_and_no_band(tmp_path):
    panel = panel_of(without_rise(tmp_path))
    assert labels_of(panel)["loo-loss"] == "no rise"
    assert named(panel.strip, "loo-loss") == []
    assert not parts_of(panel, "loo-loss")[0]
    assert parts_of(panel, "scalerl")[0]


def test_readings_without_a_fit_are_drawn_and_labelled(tmp_path):
    panel = panel_of(read_results(make_home(tmp_path, fraction=0.1)))
    assert labels_of(panel) == dict.fromkeys(TRUTH, "no fit")
    assert [mark.name for mark in panel.marks] == list(TRUTH)
    assert (panel.strip, panel.key) == ([], "")


@pytest.mark.parametrize("log", [False, True])
def test_ticks_lie_on_the_axis_with_no_difference_among_them(log):
    for low, high in ((0.31, 1.9), (0.96, 1.04), (0.05, 60.0), (0.98, 1.6)):
        ends = (low, high) if log else (low - 1, high - 1)
        for most in (1, 2, 3):
            found = ticks(*ends, most, log=log)
            assert 1 <= len(found) <= most
            assert float(log) in found
            assert all(ends[0] <= one <= ends[1] for one in found)


def test_a_long_name_is_elided_in_the_middle():
    assert elided("loss.type=dapo,batch.prompts=32", 21) == "loss.type=…prompts=32"
    assert elided("loo-loss", 8) == "loo-loss"


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
    turned = replace(results.plan, reference="loo-loss")
    assert (styles(turned), own_reference(turned)) == (styles(results.plan), "scalerl")
