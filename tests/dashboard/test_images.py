"""The pictures of the documentation are there, of the sizes that they say, and are drawn by `make images`."""

import struct

from dashboard.images import IMAGES, PAGES, WIDTHS, picture_names
from places import REPOSITORY

SIGNATURE = b"\x89PNG\r\n\x1a\n"
LARGEST = 200_000
"""Bytes of a picture: all of them are in the repository."""


def size_of(content: bytes) -> tuple[int, int]:
    """Width and height that a PNG states."""
    assert content.startswith(SIGNATURE)
    return struct.unpack(">II", content[16:24])


def test_every_page_has_its_pictures():
    assert {path.name for path in IMAGES.glob("*.png")} == set(picture_names())
    for name in picture_names():
        content = (IMAGES / name).read_bytes()
        width = int(name.removesuffix(".png").rpartition("-")[2])
        assert size_of(content) == (width, WIDTHS[width])
        assert len(content) < LARGEST
    assert all(f"images/{page}-" in (REPOSITORY / "docs/pages.md").read_text() for page in PAGES)
