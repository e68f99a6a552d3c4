"""The figures for a paper: the same data as Plotly's, in files that stand by themselves."""

import re
import xml.etree.ElementTree as ET
from io import BytesIO
from itertools import combinations

import numpy as np
import pytest
from fixtures_answers import renamed
from fixtures_home import BUDGET, TRUTH
from matplotlib.colors import to_hex
from matplotlib.text import Text
from PIL import Image

from ablations.findings.results import read_results
from ablations.report.colours import styles
from ablations.report.forest import forest_panels
from ablations.report.series import curve_series
from ablations.report.static import (
    COLUMN_IN,
    PAGE_IN,
    curves_drawing,
    curves_picture,
    differences_drawing,
    differences_picture,
    drawable,
)


def lines_of(axes, colour):
    """The lines of a colour as lists of points."""
    return [np.column_stack(line.get_data()) for line in axes.lines if to_hex(line.get_color()) == colour.lower()]


def test_readings_and_fits_are_drawn_where_they_are_in_the_colour_of_the_variant(decided):
    axes = curves_drawing(curve_series(decided), width_in=COLUMN_IN).axes[0]
    for variant in decided.variants:
        *seeds, before, inside, beyond = lines_of(axes, styles(decided.plan)[variant.name].colour)
        assert [line.tolist() for line in seeds] == [
            np.column_stack([run.curve.compute, run.curve.score]).tolist() for run in variant.runs
        ]
        assert (before[-1][0], inside[-1][0], beyond[-1][0]) == (50.0, BUDGET, 1.25 * BUDGET)
        expected = np.mean([float(fit.predict(1.25 * BUDGET)[0]) for fit in variant.fits])
        assert beyond[-1][1] == pytest.approx(expected)


def test_the_strip_shows_every_ceiling_with_its_interval(finished):
    strip = curves_drawing(curve_series(finished), width_in=COLUMN_IN).axes[1]
    for name in TRUTH:
        line = finished.compared(name)
        bar, point = lines_of(strip, styles(finished.plan)[name].colour)
        assert sorted(bar[:, 1]) == pytest.approx([line.asymptote.lo, line.asymptote.hi])
        assert point[0][1] == pytest.approx(line.asymptote.A)


def test_the_panels_show_the_differences_with_their_intervals(decided):
    figure = differences_drawing(forest_panels(decided), width_in=COLUMN_IN)
    line, colour = decided.compared("loo-loss"), styles(decided.plan)["loo-loss"].colour
    for axes, answer in zip(figure.axes, line.answers.values(), strict=True):
        bar, point = lines_of(axes, colour)
        assert list(bar[:, 0]) == [answer.lo, answer.hi]
        assert point[0][0] == answer.estimate


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
    texts = [text.get_text() for text in curves_drawing(curve_series(called), width_in=COLUMN_IN).texts]
    assert texts[2].startswith(drawable(name)[:8])
    for picture in (curves_picture, differences_picture):
        ET.fromstring(picture(called, "svg"))


def test_a_character_that_the_font_lacks_is_a_box():
    assert drawable("a\x1b[31m \U0001f9ea é") == "a▯[31m ▯ é"


def test_many_readings_become_an_image_that_stays_small(finished, monkeypatch):
    monkeypatch.setattr("ablations.report.static.MOST_OUTLINES", 100)
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
@pytest.mark.parametrize("draw", ["curves", "differences"])
def test_no_text_covers_another_or_leaves_the_figure_and_all_have_eight_points(request, which, draw, width_in):
    found = request.getfixturevalue(which)
    figure = (
        curves_drawing(curve_series(found), width_in=width_in)
        if draw == "curves"
        else differences_drawing(forest_panels(found), width_in=width_in)
    )
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
