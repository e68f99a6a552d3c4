"""Any chart on a screen: every mark as it is described, in two widths and in light and dark, with text as text."""

import html
import json

import pytest
from fixtures_answers import renamed
from fixtures_home import make_home
from matplotlib.textpath import TextPath

from ablations.findings.results import read_results
from ablations.report.figures.chart import (
    Axis,
    Band,
    Bars,
    Chart,
    DottedLine,
    EdgeLabel,
    Panel,
    Series,
    elided,
    rows_axis,
)
from ablations.report.figures.curves import curves_chart
from ablations.report.figures.layout import moved_apart
from ablations.report.figures.plotly_chart import NARROW, WIDE, chart_script, layout_on, on_screen
from ablations.report.figures.plots import curves_figure, curves_picture, differences_picture, verdicts_figure


def drawn(figure):
    return json.loads(str(figure.to_json()))


def test_a_band_is_an_area_and_bars_begin_where_they_are_told(decided):
    (panel,) = curves_chart(decided, shown=["scalerl"]).panels
    (band,) = [mark for mark in panel.marks if isinstance(mark, Band)]
    (area,) = [trace for trace in curves_figure(decided, shown=["scalerl"]).data if trace.fill]
    assert area.y[: band.x.size] == pytest.approx(band.high, abs=1e-5)
    assert area.y[band.x.size :] == pytest.approx(band.low[::-1], abs=1e-5)
    bars = Bars(lengths=[0.2, 0.5], starts=[0.1, 0.3], colours=["#216da4"] * 2, is_hatched=True, labels=["a", "b"])
    (trace,) = on_screen(
        Chart(alt="", panels=[Panel(x=Axis(), y=rows_axis(["one", "two"]), marks=[bars], num_rows=2)])
    ).data
    assert (trace.x, trace.base, trace.y, trace.marker.pattern.shape) == ((0.2, 0.5), (0.1, 0.3), (0, 1), "/")
    assert trace.customdata == ("a", "b")


def test_markers_rules_and_error_bars_are_where_they_are_described_on_logarithmic_axes_too():
    series = Series(
        x=[1.0, 10.0], y=[0.2, 0.3], colour="#216da4", symbol="square", is_filled=[True, False], name="{a}",
        y_ends=([0.1, 0.2], [0.25, 0.35]), hover="{name}, {text}\n{x:.4g} {unit}", texts=["p<q", ""],
    )  # fmt: skip
    panel = Panel(
        x=Axis(is_log=True, range=(1.0, 100.0), unit="hours"),
        y=Axis(),
        marks=[series],
        rules=[DottedLine(x=10.0, text="end")],
    )
    figure = on_screen(Chart(alt="", panels=[panel]))
    (trace,) = figure.data
    assert trace.marker.symbol == ("square", "square-open")
    assert list(trace.error_y.array) == pytest.approx([0.05, 0.05])
    assert list(trace.error_y.arrayminus) == pytest.approx([0.1, 0.1])
    assert trace.hovertemplate == "&#123;a}, %{text}<br>%{x:.4g} hours<extra></extra>"
    assert trace.text == ("p&lt;q", "")
    assert figure.layout.xaxis.range == (0.0, 2.0)
    assert (figure.layout.shapes[0].x0, figure.layout.annotations[0].x) == (10.0, 1.0)  # a shape by value


def test_labels_are_moved_apart_in_the_order_of_what_they_name():
    wanted = [0.52, 0.50, 0.9, 0.51]
    places = moved_apart(wanted, gap=0.1, low=0.0, high=1.0)
    assert places == pytest.approx([0.61, 0.41, 0.9, 0.51])  # three around .51, in their order
    assert moved_apart([0.99, 0.98], gap=0.1, low=0.0, high=1.0) == pytest.approx([1.0, 0.9])
    assert moved_apart([0.5] * 3, gap=0.8, low=0.0, high=1.0) == pytest.approx([0.0, 0.5, 1.0])
    assert moved_apart([], gap=0.1, low=0.0, high=1.0) == []
    labels = [EdgeLabel(y=0.5, name=name, colour="#216da4") for name in ("a", "b")]
    figure = on_screen(Chart(alt="", panels=[Panel(x=Axis(), y=Axis(range=(0.0, 1.0)), labels=labels)]))
    assert [(one.y0, one.y1) for one in figure.layout.shapes] == [(0.5, one.y) for one in figure.layout.annotations]


def test_panels_stand_in_a_row_on_a_wide_screen_and_one_below_the_other_with_the_same_traces_on_a_narrow_one(decided):
    wide, narrow = verdicts_figure(decided), verdicts_figure(decided, stacked=True)
    assert drawn(wide)["data"] == drawn(narrow)["data"]
    axes = ("yaxis", "yaxis2", "yaxis3")
    names = ["loo-curriculum", "loo-loss"]
    assert [list(wide.layout[axis].ticktext) for axis in axes] == [names, [], []]
    assert [list(narrow.layout[axis].ticktext) for axis in axes] == [names] * 3
    across = [end for axis in ("xaxis", "xaxis2", "xaxis3") for end in wide.layout[axis].domain]
    down = [end for axis in axes for end in narrow.layout[axis].domain[::-1]]
    assert across == sorted(across)
    assert down == sorted(down, reverse=True)
    assert (wide.layout.font.size, narrow.layout.font.size) == (WIDE.font, NARROW.font)
    # The numbers of each panel begin where it ends, with room for them before the next.
    assert {one.x for one in wide.layout.annotations if one.yref == "y"} == {wide.layout.xaxis.domain[1]}


@pytest.mark.parametrize("sheet", [WIDE, NARROW])
def test_the_last_number_below_an_axis_has_room_beside_the_plot(sheet):
    chart = Chart(alt="", panels=[Panel(x=Axis(range=(0.0, 10_000.0)), y=Axis(), marks=[])])
    number = TextPath((0, 0), "10000", size=sheet.font).get_extents()  # in matplotlib's DejaVu Sans, a wide font
    assert layout_on(sheet, chart)["margin"]["r"] >= number.width / 2


def without_colours(part):
    if isinstance(part, dict):
        return {key: without_colours(value) for key, value in part.items() if not key.endswith("color")}
    return [without_colours(value) for value in part] if isinstance(part, list) else part


def test_a_dark_figure_differs_in_colours_alone(decided):
    chart = curves_chart(renamed(decided, "loo-loss", "white"), shown=["scalerl", "white"])
    light, dark = (on_screen(chart, is_dark=is_dark) for is_dark in (False, True))
    assert without_colours(drawn(light)) == without_colours(drawn(dark))
    reference = [trace for trace in dark.data if trace.name == "scalerl"]
    assert "#f2f2f2" in {trace.line.color for trace in reference}
    assert next(trace for trace in reference if trace.fill).fillcolor == "rgba(242,242,242,0.12)"
    assert {one.font.color for one in dark.layout.annotations if one.text.startswith("<b>scalerl")} == {"#f2f2f2"}
    assert (light.layout.paper_bgcolor, dark.layout.paper_bgcolor) == ("white", "rgba(0,0,0,0)")


@pytest.mark.parametrize("name", ['<a href="https://example.org">x</a>', "%{x}", "&lt;"])
def test_a_name_is_shown_letter_by_letter(finished, name):
    figure = curves_figure(renamed(finished, "loo-loss", name), with_points=True)
    labels = [one.text.removeprefix("<b>").removesuffix("</b>") for one in figure.layout.annotations]
    said = next(text for text in labels if html.unescape(text) == elided(name, WIDE.longest))
    assert "<" not in said
    (points,) = [one for one in figure.data if html.unescape(one.name) == name and one.mode == "lines+markers"]
    said = points.hovertemplate.partition(", %{text}<br>")[0]
    assert "<" not in said
    assert "%{" not in said
    assert html.unescape(said) == name
    assert set(points.text) == {"seed 0", ""}


def test_a_chart_in_a_page_has_both_layouts_and_single_precision(decided):
    chart = curves_chart(decided)
    written = chart_script(chart, "place")
    assert written.count("layOut(") == 1
    assert written.count('"width":') > 2
    assert '"dtype":"f4"' in written
    assert '"dtype":"f8"' not in written


def test_a_sweep_without_a_reading_still_has_figures(tmp_path):
    sweep = make_home(tmp_path)
    for run in sweep.plan.runs:
        sweep.home.run(run.id).metrics.unlink()
    empty = read_results(sweep)
    assert not curves_figure(empty).data
    assert not verdicts_figure(empty).data
    assert curves_picture(empty, "svg").startswith(b"<?xml")
    assert differences_picture(empty, "svg").startswith(b"<?xml")
