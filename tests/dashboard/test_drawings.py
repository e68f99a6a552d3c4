"""Drawings of the page."""

import pandas as pd
import pytest

from ablations.report.figures.colours import Style
from ablations_dashboard.drawings.run import metric_chart

BLUE = Style(colour="#0072B2", symbol="square")
ROWS = pd.DataFrame({"step": [1, 2, 3], "compute_gpu_hours": [10.0, 20.0, 30.0], "entropy": [0.9, 0.6, 0.0]})


def marks_of(runs, **asked):
    return metric_chart("entropy", runs, compute_name="modelled GPU-hours", **asked).panels[0].marks


def test_a_mean_over_steps_lies_over_what_was_measured():
    measured, mean = marks_of({"a": (ROWS, BLUE)}, against="compute_gpu_hours", smoothed=3)
    assert list(measured.y) == [0.9, 0.6, 0.0]
    assert list(mean.x) == [10.0, 20.0, 30.0]
    assert list(mean.y) == pytest.approx([0.75, 0.5, 0.3])  # fewer steps at both ends
    assert (mean.name, mean.colour) == ("a", BLUE.colour)


def test_a_run_that_did_not_log_the_metric_is_left_out():
    runs = {"a": (ROWS, BLUE), "b": (ROWS.filter(items=["step"]), BLUE)}
    assert [mark.name for mark in marks_of(runs, against="step", smoothed=1)] == ["a"]
