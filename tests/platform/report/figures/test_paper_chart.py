"""Any chart on paper: the same marks as on a screen, in files that stand by themselves."""

import re
import xml.etree.ElementTree as ET
from io import BytesIO
from itertools import combinations

import numpy as np
import pytest
from fixtures_answers import renamed
from matplotlib.colors import to_hex
from matplotlib.text import Text
from PIL import Image

from ablations.findings.results import read_results
from ablations.report.figures.chart import COLUMN_IN, PAGE_IN, Axis, Bars, Chart, Panel, Series, rows_axis
from ablations.report.figures.curves import curves_chart
from ablations.report.figures.forecast import forecast_chart
from ablations.report.figures.forest import forest_chart
from ablations.report.figures.paper_chart import drawable, on_paper
from ablations.report.figures.plots import curves_picture, differences_picture


def test_every_line_is_drawn_where_it_is_described(decided):
    chart = curves_chart(decided)
    main, strip = on_paper(chart, width_in=COLUMN_IN).axes
    (panel,) = chart.panels
    for axes, marks in ((main, panel.marks), (strip, panel.strip)):
        series = [one for one in marks if isinstance(one, Series)]
        lines = axes.lines[: len(series)]  # before the rules
        assert [to_hex(line.get_color()) for line in lines] == [one.colour for one in series]
        for line, one in zip(lines, series, strict=True):
            np.testing.assert_array_equal(np.column_stack(line.get_data()), np.column_stack([one.x, one.y]))
    assert main.get_ylim() == panel.y.range


def test_markers_error_bars_and_bars_are_drawn_where_they_are_described():
    series = Series(
        x=[1.0, 2.0], y=[0.2, 0.3], colour="#216da4", symbol=["circle", "triangle-up"], is_filled=[True, False],
        y_ends=([0.1, 0.2], [0.25, 0.35]), legend="a",
    )  # fmt: skip
    bars = Bars(lengths=[0.2, 0.5], starts=[0.1, 0.3], colours=["#216da4"] * 2, labels=["x", "y"])
    figure = on_paper(
        Chart(
            alt="",
            panels=[
                Panel(x=Axis(), y=Axis(), marks=[series]),
                Panel(x=Axis(is_share=True), y=rows_axis(["one", "two"]), marks=[bars], num_rows=2),
            ],
            is_stacked=True,
            legend="below",
        ),
        width_in=COLUMN_IN,
    )
    figure.draw_without_rendering()
    points, rows = figure.axes
    marks = [(line.get_marker(), to_hex(line.get_markerfacecolor()), *line.get_data()) for line in points.lines]
    assert marks == [("o", "#216da4", [1.0], [0.2]), ("^", "#ffffff", [2.0], [0.3])]
    assert [np.asarray(path.vertices)[:, 1].tolist() for path in points.collections[0].get_paths()] == [
        [0.1, 0.25],
        [0.2, 0.35],
    ]
    assert [number for bar in rows.patches for number in (bar.get_x(), bar.get_width())] == pytest.approx(
        [0.1, 0.2, 0.3, 0.5]
    )
    assert {"one", "two", "x", "y", "20%"} <= {text.get_text() for text in rows.findobj(Text)}
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["a"]


def test_a_png_has_the_width_asked_for(finished):
    image = Image.open(BytesIO(curves_picture(finished, "png", dpi=150)))
    assert image.width == pytest.approx(150 * COLUMN_IN, abs=1)
    assert len(np.unique(np.asarray(image.convert("L")))) > 50


def test_an_svg_needs_no_font_and_no_network_and_is_the_same_each_time(finished):
    content = curves_picture(finished, "svg")
    root = ET.fromstring(content)
    assert float(root.get("width").removesuffix("pt")) == pytest.approx(72 * COLUMN_IN)
    assert not root.findall(".//{http://www.w3.org/2000/svg}text")
    targets = [value for one in root.iter() for name, value in one.attrib.items() if name.endswith("href")]
    assert targets
    assert all(target.startswith("#") for target in targets)
    assert content == curves_picture(finished, "svg")


def test_a_pdf_has_its_fonts_within_and_is_the_same_each_time(finished):
    content = differences_picture(finished, "pdf")
    assert content.startswith(b"%PDF")
    width = float(re.search(rb"/MediaBox \[ 0 0 ([\d.]+)", content)[1])
    assert width == pytest.approx(72 * COLUMN_IN)
    assert b"/FontFile2" in content
    assert b"/Type3" not in content
    assert content == differences_picture(finished, "pdf")


@pytest.mark.parametrize("name", ["$x^{2$ %_#", "_a\x1b[31mb\n<&", "\U0001f9ea" * 3 + "x" * 200])
def test_any_name_is_drawn_letter_by_letter(finished, name):
    called = renamed(finished, "loo-loss", name)
    texts = [text.get_text() for text in on_paper(curves_chart(called), width_in=COLUMN_IN).texts]
    assert texts[2].startswith(drawable(name)[:8])
    for picture in (curves_picture, differences_picture):
        ET.fromstring(picture(called, "svg"))


def test_a_character_that_the_font_lacks_is_a_box():
    assert drawable("a\x1b[31m \U0001f9ea é") == "a▯[31m ▯ é"


def test_many_readings_become_an_image_that_stays_small(finished, monkeypatch):
    monkeypatch.setattr("ablations.report.figures.paper_chart.MOST_OUTLINES", 100)
    content = curves_picture(finished, "svg")
    assert b"data:image/png" in content
    assert len(content) < 400_000
    monkeypatch.undo()
    assert b"data:image/png" not in curves_picture(finished, "svg")


def boxes_of(figure):
    """The boxes of all texts of a figure that are seen, in pixels, with their texts."""
    figure.draw_without_rendering()
    texts = [one for one in figure.findobj(Text) if one.get_visible() and one.get_text().strip()]
    for axes in figure.axes:  # ticks outside the axis are not drawn
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            unseen = [one for one in axis.get_major_ticks() if not low <= one.get_loc() <= high or not axes.axison]
            texts = [one for one in texts if one not in [tick.label1 for tick in unseen]]
    return [(one.get_text(), one.get_window_extent()) for one in texts]


def overlapping(boxes):
    """Pairs of texts of which one covers another by more than half a point."""
    return [
        (one, other)
        for (one, box), (other, own) in combinations(boxes, 2)
        if min(box.x1, own.x1) - max(box.x0, own.x0) > 0.7 and min(box.y1, own.y1) - max(box.y0, own.y0) > 0.7
    ]


@pytest.fixture(scope="module")
def many(many_variants):
    """A finished sweep of 24 variants."""
    return read_results(many_variants)


@pytest.mark.parametrize(("which", "width_in"), [("finished", COLUMN_IN), ("many", COLUMN_IN), ("many", PAGE_IN)])
@pytest.mark.parametrize("draw", [curves_chart, forest_chart, forecast_chart])
def test_no_text_covers_another_or_leaves_the_figure_and_all_have_eight_points(request, which, draw, width_in):
    found = request.getfixturevalue(which)
    figure = on_paper(draw(found), width_in=width_in)
    boxes = boxes_of(figure)
    assert len(boxes) > 8
    assert overlapping(boxes) == []
    area = figure.bbox
    outside = [
        text for text, box in boxes if box.x0 < -1 or box.y0 < -1 or box.x1 > area.x1 + 1 or box.y1 > area.y1 + 1
    ]
    assert outside == []
    assert {one.get_fontsize() for one in figure.findobj(Text) if one.get_text().strip()} == {8.0}
    assert [axes.get_title() for axes in figure.axes if axes.get_title()] == []
