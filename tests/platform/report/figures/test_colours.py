"""The colours of variants are told apart by everybody, on light and on dark pages."""

from itertools import combinations

import numpy as np
import pytest

from ablations.report.figures.colours import COLOURS, ON_DARK, OTHERS_COLOUR, REFERENCE_COLOUR, drawn_in, written_in

LEAST_DISTANCE = 0.11
"""In OKLab, whose lightness goes from 0 to 1; two colours of the palette by Okabe and Ito are 0.04 apart at least."""
# Machado, Oliveira and Fernandes (2009), A physiologically-based model for simulation of color vision deficiency,
# table of severity 1.0, for linear sRGB.
VISIONS = {
    "normal": np.eye(3),
    "protan": np.array(
        [[0.152286, 1.052583, -0.204868],
         [0.114503, 0.786281, 0.099216],
         [-0.003882, -0.048116, 1.051998]]
    ),
    "deutan": np.array(
        [[0.367322, 0.860646, -0.227968],
         [0.280085, 0.672501, 0.047413],
         [-0.011820, 0.042940, 0.968881]]
    ),
    "tritan": np.array(
        [[1.255528, -0.076749, -0.178779],
         [-0.078411, 0.930809, 0.147602],
         [0.004733, 0.691367, 0.303900]]
    ),
}  # fmt: skip


def linear(colour):
    """Linear sRGB of #rrggbb (IEC 61966-2-1)."""
    channels = np.array([int(colour[start : start + 2], 16) for start in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def oklab(rgb):
    """OKLab of linear sRGB (Ottosson 2020, https://bottosson.github.io/posts/oklab/)."""
    cones = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    axes = np.array(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ]
    )
    return axes @ np.cbrt(cones @ rgb)


def seen(colour, vision):
    """OKLab of a colour as somebody with this vision sees it."""
    return oklab(np.clip(VISIONS[vision] @ linear(colour), 0, 1))


def test_oklab_of_known_colours():
    # Of the page that defines it: white is (1, 0, 0); red is (0.628, 0.225, 0.126).
    assert oklab(linear("#ffffff")) == pytest.approx([1, 0, 0], abs=1e-3)
    assert oklab(linear("#ff0000")) == pytest.approx([0.628, 0.225, 0.126], abs=1e-3)


@pytest.mark.parametrize("is_dark", [False, True])
@pytest.mark.parametrize("vision", VISIONS)
def test_eight_variants_the_reference_and_grey_are_told_apart(vision, is_dark):
    colours = [REFERENCE_COLOUR, OTHERS_COLOUR, *COLOURS]
    assert len(set(colours)) == 10
    shown = [ON_DARK[one] for one in colours] if is_dark else colours
    pairs = {
        (one, other): np.linalg.norm(seen(one, vision) - seen(other, vision)) for one, other in combinations(shown, 2)
    }
    assert {pair: distance for pair, distance in pairs.items() if distance < LEAST_DISTANCE} == {}


def contrast(one, other):
    weights = np.array([0.2126, 0.7152, 0.0722])
    lights = [weights @ linear(colour) + 0.05 for colour in (one, other)]
    return max(lights) / min(lights)


@pytest.mark.parametrize(("is_dark", "page"), [(False, "#ffffff"), (True, "#0e1117")])
def test_every_variant_is_seen_on_its_page_and_its_name_is_read(is_dark, page):
    for colour in (REFERENCE_COLOUR, *COLOURS):
        assert contrast(drawn_in(colour, is_dark=is_dark), page) >= 3  # WCAG 2.1, 1.4.11
    for colour in (REFERENCE_COLOUR, OTHERS_COLOUR, *COLOURS):
        assert contrast(written_in(colour, is_dark=is_dark), page) >= 4.5  # WCAG 2.1, 1.4.3


@pytest.mark.parametrize("is_dark", [False, True])
def test_a_name_has_nearly_the_colour_of_its_line(is_dark):
    for colour in COLOURS:
        apart = oklab(linear(written_in(colour, is_dark=is_dark))) - oklab(linear(drawn_in(colour, is_dark=is_dark)))
        assert np.linalg.norm(apart) < LEAST_DISTANCE
