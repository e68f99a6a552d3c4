"""Drawings of the page."""

import pandas as pd
import pytest

from ablations.report.figures.colours import Style
from ablations_dashboard.drawings.run import ends_chart, metric_chart

BLUE = Style(colour="#0072B2", symbol="square")
ROWS = pd.DataFrame({"step": [1, 2, 3], "compute_gpu_hours": [10.0, 20.0, 30.0], "entropy": [0.9, 0.6, 0.0]})


def marks_of(runs, **asked):
    return metric_chart("entropy", runs, compute_name="modelled GPU-hours", **asked).panels[0].marks


def test_a_mean_over_steps_lies_over_what_was_measured():
    measured, mean = marks_of({"a": ([ROWS], BLUE)}, against="compute_gpu_hours", smoothed=3)
    assert list(measured.y) == [0.9, 0.6, 0.0]
    assert list(mean.x) == [10.0, 20.0, 30.0]
    assert list(mean.y) == pytest.approx([0.75, 0.5, 0.3])  # fewer steps at both ends
    assert (mean.name, mean.colour) == ("a", BLUE.colour)


def test_a_run_that_did_not_log_the_metric_is_left_out():
    runs = {"a": ([ROWS], BLUE), "b": ([ROWS.filter(items=["step"])], BLUE)}
    assert [mark.name for mark in marks_of(runs, against="step", smoothed=1)] == ["a"]


def test_a_variant_is_the_mean_of_its_seeds_in_a_band_and_its_name_stands_at_its_end():
    later = pd.DataFrame({"step": [2, 3, 4], "compute_gpu_hours": [20.0, 30.0, 40.0], "entropy": [0.4, 0.4, 0.2]})
    chart = metric_chart(
        "entropy", {"a": ([ROWS, later], BLUE)}, against="step", smoothed=1, compute_name="modelled GPU-hours"
    )
    (panel,) = chart.panels
    band, line = panel.marks
    assert list(line.x) == [1, 2, 3, 4]
    assert list(line.y) == pytest.approx([0.9, 0.5, 0.2, 0.2])  # one seed alone before step 2 and after step 3
    assert list(band.low) == pytest.approx([0.9, 0.4, 0.0, 0.2])
    assert list(band.high) == pytest.approx([0.9, 0.6, 0.4, 0.2])
    assert [(one.name, one.y) for one in panel.labels] == [("a", pytest.approx(0.2))]
    assert chart.legend == ""


def test_one_step_far_out_does_not_squeeze_the_axis_of_a_metric_and_its_name_stays_on_it():
    rows = pd.DataFrame({"step": range(200), "compute_gpu_hours": range(200), "loss": [0.5, 0.6] * 99 + [0.5, 1e6]})
    runs = {"a": ([rows], BLUE)}
    (panel,) = metric_chart("loss", runs, against="step", smoothed=1, compute_name="modelled GPU-hours").panels
    assert panel.y.range is not None
    low, high = panel.y.range
    assert 0.4 < low < 0.5 < 0.6 < high < 0.7
    assert low <= panel.labels[0].y <= high


def test_a_constant_metric_lies_in_the_middle_of_its_axis():
    rows = pd.DataFrame({"step": [1, 2], "compute_gpu_hours": [1, 2], "learning_rate": [1e-4, 1e-4]})
    runs = {"a": ([rows], BLUE)}
    chart = metric_chart("learning_rate", runs, against="step", smoothed=1, compute_name="modelled GPU-hours")
    assert chart.panels[0].y.range == pytest.approx((0.5e-4, 1.5e-4))


def test_ends_of_episodes_are_lines_of_the_reasons_that_occurred():
    ends = pd.DataFrame({"ends_won": [0.2, 0.4, 0.9], "ends_too_many_turns": [0.8, 0.6, 0.1], "ends_error": [0.0] * 3})
    chart = ends_chart(ROWS.join(ends), "modelled GPU-hours", smoothed=1, height=300)
    assert chart is not None
    found = {mark.legend: [*mark.x, *mark.y] for mark in chart.panels[0].marks}
    assert found == {"won": [10, 20, 30, 0.2, 0.4, 0.9], "too many turns": [10, 20, 30, 0.8, 0.6, 0.1]}
    assert ends_chart(ROWS, "modelled GPU-hours", smoothed=1, height=300) is None
