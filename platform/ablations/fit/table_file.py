"""Tables in text files: a header and rows, as programs and spreadsheets write them."""

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from ablations.errors import Place
from ablations.nearest_name import did_you_mean
from scalerl.readable_folders import refuse_unreadable

GZIP, UTF_16 = b"\x1f\x8b", (b"\xff\xfe", b"\xfe\xff")
DELIMITERS = (",", ";", "\t")
ABOVE_HEADER = ("#", "sep=")
"""Beginnings of lines above the header: comments, and the line that tells Excel the delimiter."""
DECIMAL_COMMA = re.compile(r"([+-]?\d+),(\d+(?:[eE][+-]?\d+)?)")
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
DECIMAL_POINT = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")
MISSING = {"", "-", "--", "n/a", "na", "none", "null", "<na>"}
"""Texts for a missing value, in lower case."""


def is_curve_file(name: str) -> bool:
    """True for the name of a table of curves."""
    return name.lower().removesuffix(".gz").endswith((".csv", ".tsv"))


@dataclass(frozen=True, kw_only=True)
class TextTable:
    """A table as text: `TextTable(header=["curve", "score"], rows=[(2, {"curve": "dapo", "score": "0.31"})])`."""

    header: list[str]
    rows: list[tuple[int, dict[str, str]]]
    """Each row with the number of its line."""
    compute_name: str = "compute"
    """Unit of the compute."""
    is_wide: bool = False
    """True if it had a column for each run."""
    notes: tuple[str, ...] = ()


def text_of(path: Path) -> str:
    """The text of a file in UTF-8 or UTF-16, which gzip may have compressed; FileError if it is something else."""
    return "".join(text_lines(path))


def text_lines(path: Path) -> Iterator[str]:
    """The lines of such a file, each with its end, one after the other; a carriage return does not end a line."""
    place, number = Place(source=str(path)), 0
    try:
        refuse_unreadable(path)
        with path.open("rb") as packed:
            is_packed = packed.read(len(GZIP)) == GZIP
            packed.seek(0)
            with io.BufferedReader(gzip.GzipFile(fileobj=packed)) if is_packed else packed as file:
                is_wide = file.peek(len(GZIP))[: len(GZIP)] in UTF_16
                lines = io.TextIOWrapper(file, "utf-16", newline="\n") if is_wide else file
                for number, line in enumerate(lines, start=1):
                    yield line if isinstance(line, str) else line.decode("utf-8-sig" if number == 1 else "utf-8")
    except FileNotFoundError:
        there = [one.name for one in path.parent.glob("*.csv")]
        raise place.error("no such file", did_you_mean(path.name, there, "CSV files there")) from None
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise place.error(f"gzip cannot unpack it ({error})", "compress or copy the file again") from None
    except OSError as error:
        raise place.error(f"cannot be read ({error.strerror})", "name a readable file") from None
    except UnicodeDecodeError as error:
        raise Place(source=str(path), line=number or None).error(
            f"not UTF-8 text ({error})", "save the file as UTF-8"
        ) from None


class OpenTable:
    """A table that is read row by row: `for line, fields in OpenTable(path)`, with the number of the row's line.

    Fields are parted by commas, semicolons or tabs, whichever parts the header; lines of `#` above it, and the header
    again, as after a resume, are skipped. With `is_growing`, a last row with too few fields is left out. FileError for
    a row that does not fit the header.
    """

    def __init__(self, path: Path, *, is_growing: bool = False) -> None:
        self._place, self._is_growing = Place(source=str(path)), is_growing
        lines = (part for line in text_lines(path) for part in line.splitlines(keepends=True))
        self._above, first = 0, ""
        for line in lines:
            if line.strip() and not line.startswith(ABOVE_HEADER):
                first = line
                break
            self._above += 1
        with self._errors():
            parted = {sign: next(csv.reader([first], delimiter=sign), []) for sign in DELIMITERS}
            delimiter = max(DELIMITERS, key=lambda sign: len(parted[sign]))
            self._reader = csv.reader(chain([first], lines), delimiter=delimiter, skipinitialspace=True)
            self.header = [column.strip() for column in next(self._reader, [])]
        if second := next((column for column in self.header if column and self.header.count(column) > 1), None):
            raise Place(source=str(path), line=self._above + 1).error(
                f"{self.header.count(second)} columns are called {second!r}", "keep one and rename the others"
            )
        self.is_cut = False
        """True once the last row was left out, since its writer may be at work."""
        self._has_points = self._has_commas = False

    def __iter__(self) -> Iterator[tuple[int, list[str]]]:
        before: tuple[int, list[str]] | None = None
        is_first = True
        with self._errors():
            for fields in self._reader:
                found = [text.strip() for text in fields]
                if any(found) and found != self.header:
                    if before is not None:
                        yield self._checked(*before)
                        is_first = False
                    before = (self._reader.line_num + self._above, found)
        if before is None:
            return
        self.is_cut = self._is_growing and not is_first and len(before[1]) < len(self.header)
        if not self.is_cut:
            yield self._checked(*before)

    @property
    def has_decimal_commas(self) -> bool:
        """True if numbers of the rows so far have commas that part no thousands, and none has a point."""
        return self._has_commas and not self._has_points

    def _checked(self, line: int, fields: list[str]) -> tuple[int, list[str]]:
        while len(fields) > len(self.header) and not fields[-1]:  # a spreadsheet's empty columns
            fields.pop()
        if len(fields) != len(self.header):
            raise Place(source=self._place.source, line=line).error(
                f"{len(fields)} fields below a header of {len(self.header)}",
                "write numbers with a decimal point, not a comma; put a name that contains a comma in double quotes",
            )
        if not self._has_points:
            self._has_points = any(map(DECIMAL_POINT.fullmatch, fields))
            self._has_commas = self._has_commas or any(map(_has_decimal_comma, fields))
        return line, fields

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except csv.Error as error:
            raise self._place.error(f"not CSV text ({error})", "save the file as UTF-8 CSV") from None


def read_table(path: Path) -> TextTable:
    """The table in a file, as `OpenTable` reads it. A decimal comma is read as a point if no number of the file has a
    point."""
    table = OpenTable(path)
    found = [*table]
    if table.has_decimal_commas:
        found = [(line, [with_point(text) for text in fields]) for line, fields in found]
    return TextTable(
        header=table.header, rows=[(line, dict(zip(table.header, row, strict=True))) for line, row in found]
    )


def _has_decimal_comma(text: str) -> bool:
    return "," in text and bool(DECIMAL_COMMA.fullmatch(text)) and not THOUSANDS.fullmatch(text)


def with_point(text: str) -> str:
    """A number with a decimal point instead of a comma; any other text as it is."""
    return DECIMAL_COMMA.sub(r"\1.\2", text) if DECIMAL_COMMA.fullmatch(text) else text


def number_in(text: str, column: str, place: Place) -> float:
    """The number in a cell of this platform's column; FileError for a text, or a number that the column cannot have."""
    from ablations.fit.curve import requirement  # with numpy, which commands that name a file do without

    try:
        # float() would read 1_0 as 10.
        value = float(text.replace("_", "?"))
    except ValueError:
        raise place.error(f"found {text!r}", f"must be a number{number_advice(text)}") from None
    if right := requirement(column, value):
        raise place.error(f"found {text}", right)
    return value


def number_advice(text: str) -> str:
    """What to write instead of a text that is not a number; "" if unknown."""
    if text.endswith("%"):
        return "; divide percent by 100"
    return "; write no sign between thousands, and a decimal point" if "," in text else ""
