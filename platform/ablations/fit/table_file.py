"""Tables in text files: a header and rows, as programs and spreadsheets write them."""

import csv
import gzip
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

from ablations.errors import Place
from ablations.nearest_name import did_you_mean

GZIP, UTF_16 = b"\x1f\x8b", (b"\xff\xfe", b"\xfe\xff")
DELIMITERS = (",", ";", "\t")
ABOVE_HEADER = ("#", "sep=")
"""What begins lines above the header: comments, and the line that tells Excel the delimiter."""
DECIMAL_COMMA = re.compile(r"([+-]?\d+),(\d+(?:[eE][+-]?\d+)?)")
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
DECIMAL_POINT = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table as text: `Table(header=["curve", "score"], rows=[(2, {"curve": "dapo", "score": "0.31"})])`."""

    header: list[str]
    rows: list[tuple[int, dict[str, str]]]
    """Each row with the number of its line."""
    is_cut: bool = False
    """True if the last row had too few fields and is left out, since its writer may be at work."""


def text_of(path: Path) -> str:
    """The text of a file in UTF-8 or UTF-16, which gzip may have compressed; FileError if it is none."""
    place = Place(source=str(path))
    try:
        content = path.read_bytes()
        if content.startswith(GZIP):
            content = gzip.decompress(content)
        return content.decode("utf-16" if content.startswith(UTF_16) else "utf-8-sig")
    except FileNotFoundError:
        there = [one.name for one in path.parent.glob("*.csv")]
        raise place.error("no such file", did_you_mean(path.name, there, "CSV files there")) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise place.error(f"gzip cannot unpack it ({error})", "compress or copy the file again") from None
    except OSError as error:
        raise place.error(f"cannot be read ({error.strerror})", "name a readable file") from None
    except UnicodeDecodeError as error:
        raise place.error(f"not UTF-8 text ({error})", "save the file as UTF-8") from None


def read_table(path: Path, *, is_growing: bool = False) -> Table:
    """The table in a file; FileError for a row that does not fit the header.

    Fields are parted by commas, semicolons or tabs, whichever parts the header; lines of `#` above it, and the header
    again, as after a resume, are skipped. A decimal comma is read as a point if no number of the file has a point. With
    `is_growing`, a last row with too few fields is left out.
    """
    place = Place(source=str(path))
    lines = text_of(path).splitlines(keepends=True)
    above = next((at for at, line in enumerate(lines) if line.strip() and not line.startswith(ABOVE_HEADER)), 0)
    try:
        parted = {sign: next(csv.reader(lines[above : above + 1], delimiter=sign), []) for sign in DELIMITERS}
        delimiter = max(DELIMITERS, key=lambda sign: len(parted[sign]))
        reader = csv.reader(lines[above:], delimiter=delimiter, skipinitialspace=True)
        header = [column.strip() for column in next(reader, [])]
        stripped = ([text.strip() for text in fields] for fields in reader)
        found = [(reader.line_num + above, fields) for fields in stripped if any(fields) and fields != header]
    except csv.Error as error:
        raise place.error(f"not CSV text ({error})", "save the file as UTF-8 CSV") from None
    if second := next((column for column in header if column and header.count(column) > 1), None):
        raise Place(source=str(path), line=above + 1).error(
            f"{header.count(second)} columns are called {second!r}", "keep one and rename the others"
        )
    is_cut = is_growing and len(found) > 1 and len(found[-1][1]) < len(header)
    if is_cut:
        found.pop()
    for line, fields in found:
        while len(fields) > len(header) and not fields[-1]:  # a spreadsheet's empty columns
            fields.pop()
        if len(fields) != len(header):
            raise Place(source=str(path), line=line).error(
                f"{len(fields)} fields below a header of {len(header)}",
                "write numbers with a decimal point, not a comma; put a name that contains a comma in double quotes",
            )
    if _has_decimal_commas([text for _, fields in found for text in fields]):
        found = [(line, [_with_point(text) for text in fields]) for line, fields in found]
    return Table(
        header=header, rows=[(line, dict(zip(header, row, strict=True))) for line, row in found], is_cut=is_cut
    )


def _has_decimal_commas(texts: list[str]) -> bool:
    """True if numbers have commas that part no thousands, and none has a point."""
    has_commas = any(DECIMAL_COMMA.fullmatch(text) and not THOUSANDS.fullmatch(text) for text in texts)
    return has_commas and not any(map(DECIMAL_POINT.fullmatch, texts))


def _with_point(text: str) -> str:
    return DECIMAL_COMMA.sub(r"\1.\2", text) if DECIMAL_COMMA.fullmatch(text) else text
