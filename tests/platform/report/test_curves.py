"""Figures of the pages: thinned readings, other axes, the plane, dark colours."""

import dataclasses
import json

import numpy as np
import pytest
from fixtures_home import TRUTH

from ablations.report.colours import in_dark, own_reference, styles
from ablations.report.curves import along_rows, curves_figure
from ablations.report.planes import plane_figure
from ablations.report.series import thinned, thinned_note


def test_neighbouring_readings_are_drawn_as_their_mean():
    compute, score, sizes = thinned(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([0.1, 0.3, 0.5, 0.7, 0.9]), 2)
    assert compute.tolist() == [2.0, 4.5]
    assert score.tolist() == pytest.approx([0.3, 0.8])
    assert sizes.tolist() == [3, 2]


def test_beyond_the_last_evaluation_steps_go_on_at_their_mean_rate():
    along = along_rows(np.array([0.0, 10.0, 20.0]), np.array([0.0, 100.0, 400.0]))
    assert along(np.array([5.0, 15.0, 20.0, 30.0])).tolist() == [50.0, 250.0, 400.0, 600.0]


def of_variant(figure, name):
    return [trace for trace in figure.data if trace.name == name]


def test_the_band_of_several_seeds_lies_about_their_mean_and_is_wider_than_the_runs_alone_say(decided):
    (band,) = [trace for trace in of_variant(curves_figure(decided), "scalerl") if trace.fill]
    half = len(band.x) // 2
    high, low = np.array(band.y[:half]), np.array(band.y[half:][::-1])
    fits, grid = decided.variant("scalerl").fits, np.array(band.x[:half])
    mean = np.mean([fit.predict(grid) for fit in fits], axis=0)
    beyond = grid > 200
    assert np.all((low < mean)[beyond])
    assert np.all((mean < high)[beyond])


def test_others_are_one_grey_trace_without_points_or_labels(decided):
    figure = curves_figure(decided, shown=["scalerl"])
    (grey,) = [trace for trace in figure.data if trace.name == "2 others"]
    assert set(grey.text) == {"loo-loss", "loo-curriculum"}
    assert {trace.name for trace in figure.data} == {"scalerl", "2 others"}
    assert not [one for one in figure.layout.annotations if "loo-" in one.text]


def test_a_figure_of_many_readings_has_no_more_points_than_a_screen_shows(decided, monkeypatch):
    monkeypatch.setattr("ablations.report.series.MOST_POINTS", 60)
    drawn = of_variant(curves_figure(decided, shown=["scalerl"], with_points=True), "scalerl")
    points = next(trace for trace in drawn if trace.mode == "lines+markers")
    assert len([x for x in points.x if x is not None]) == 60
    assert thinned_note(decided, ["scalerl"]) == "Each point is the mean of up to 3 neighbouring evaluations."


def test_the_plane_has_each_variant_at_its_ratio_and_difference_with_both_intervals(decided):
    figure = plane_figure(decided, focus=["loo-loss"])
    by_name = {trace.name: trace for trace in figure.data}
    line = decided.compared("loo-loss")
    cross = by_name["loo-loss"]
    assert (cross.x[0], cross.y[0]) == (line.answers["compute"].estimate, line.answers["ceiling"].estimate)
    assert cross.y[0] + cross.error_y.array[0] == pytest.approx(line.answers["ceiling"].hi)
    assert cross.x[0] - cross.error_x.arrayminus[0] == pytest.approx(line.answers["compute"].lo)
    assert by_name["loo-curriculum"].marker.color != styles(decided.plan)["loo-curriculum"].colour
    assert (by_name["scalerl (baseline)"].x[0], by_name["scalerl (baseline)"].y[0]) == (1.0, 0.0)


def test_colours_stay_when_another_variant_is_the_baseline(decided):
    turned = dataclasses.replace(decided.plan, reference="loo-loss")
    assert styles(turned) == styles(decided.plan)
    assert own_reference(turned) == "scalerl"


def without_colours(part):
    if isinstance(part, dict):
        return {key: without_colours(value) for key, value in part.items() if not key.endswith("color")}
    return [without_colours(value) for value in part] if isinstance(part, list) else part


def test_a_dark_figure_differs_in_colours_alone(decided):
    light = curves_figure(decided, shown=list(TRUTH)).update_layout(title={"text": "white"})  # a variant's name, say
    dark = in_dark(light)
    drawn = [without_colours(json.loads(str(figure.to_json()))["data"]) for figure in (light, dark)]
    assert drawn[0] == drawn[1]
    reference = of_variant(dark, "scalerl")
    assert "#f2f2f2" in {trace.line.color for trace in reference}
    assert next(trace for trace in reference if trace.fill).fillcolor == "rgba(242,242,242,0.11)"
    assert {one.font.color for one in dark.layout.annotations if one.text.startswith("<b>scalerl")} == {"#f2f2f2"}
    assert light.layout.font.color == "#1f2328"
    assert dark.layout.title.text == "white"
