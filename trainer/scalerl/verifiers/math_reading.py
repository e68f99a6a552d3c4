r"""What an answer says beside its value: words, a percent or degree sign, a unit, a number base.

\text{(B)}  ->  words "b"                5\,\mathrm{cm}^2  ->  latex "5", unit ("length", 2), size 1/10000
50\%        ->  latex "50", percent      90^\circ          ->  latex "90", degree
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

MAX_ANSWER_CHARS = 1_000
"""Of an answer that is not one long number."""
NUMBER = re.compile(r"[-+]?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d+)?")

UNITS = {
    "length": {
        "mm millimeter millimetre": "1/1000",
        "cm centimeter centimetre": "1/100",
        "m meter metre": "1",
        "km kilometer kilometre": "1000",
        "in inch": "127/5000",
        "ft foot feet": "381/1250",
        "yd yard": "1143/1250",
        "mi mile": "201168/125",
    },
    "time": {"s sec second": "1", "min minute": "60", "h hr hour": "3600", "day": "86400", "week": "604800"},
    "mass": {
        "mg milligram": "1/1000",
        "g gram": "1",
        "kg kilogram": "1000",
        "oz ounce": "45359237/1600000",
        "lb pound": "45359237/100000",
    },
    "volume": {"ml milliliter millilitre": "1/1000", "l liter litre": "1"},
    "money": {"cent": "1/100", "dollar": "1"},
}
"""Exact size of each unit in metres, seconds, grams, litres or dollars; the names may take a plural s or es."""

SIZES = {
    name: (dimension, Fraction(size))
    for dimension, units in UNITS.items()
    for names, size in units.items()
    for name in names.split()
}
COUNTS = {"dozen": 12, "hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12}


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One answer taken apart."""

    text: str
    """All of it in one notation, without spaces."""
    latex: str
    """What is left for the parser."""
    words: str = ""
    """The answer in lower case where it is nothing but letters."""
    is_text: bool = False
    r"""The words are set as text, as \text{no}, or one has four letters or more: no product of variables."""
    sign: Literal["", "percent", "degree"] = ""
    unit: tuple[str, int] | None = None
    """Dimension and power of a unit in `UNITS`; any other unit is dropped."""
    size: Fraction = Fraction(1)
    """The unit to its power, in the units named at `UNITS`."""
    base: str = ""
    """The subscript of 1011_2."""
    clock: bool = False
    """Hours and minutes, as 3:30, which are not a quotient."""


_TEXT = r"\\(?:text(?:bf|it|rm|sf|tt|normal|up)?|math(?:rm|bf|sf|it|tt)|mbox|hbox)\s*"
_ALL_TEXT = re.compile(rf"(?:{_TEXT}\{{[^{{}}]*\}}[\s.]*)+")
_TEXT_COMMAND = re.compile(rf"{_TEXT}\{{([^{{}}]*)\}}")
_WORDS = re.compile(r"\(?[A-Za-z]+(?:[' -][A-Za-z]+)*\)?\.?")
_LONG_WORD = re.compile(r"[A-Za-z]{4}")
_CLOCK = re.compile(r"\d{1,2}:\d\d")
_BASE = re.compile(r"\(?(?P<digits>[0-9A-Za-z]+)\)?_\{?(?P<base>\d{1,2})\}?")

_FRACTION = r"\\frac(?:\{[\d.]+\}\{[\d.]+\}|\d\d)"
_VALUE = rf"(?P<value>[-+]?(?:[\d.,/ ]|{_FRACTION}|\\times|\\cdot|\\pi|\^\{{?-?\d+\}}?|\\sqrt\{{?\d+\}}?)+?)"
_UNIT = re.compile(
    rf"{_VALUE}(?:\s*{_TEXT}\{{(?P<text>[^{{}}\d]*)\}}|\s(?P<apart>[A-Za-z][A-Za-z. ]*)|(?P<joined>[a-z]{{2,}}))"
    r"\s*(?:\^\{?(?P<power>[1-9])\}?)?"
)
_TEXT_UNIT = re.compile(
    rf"(?P<value>.*\d.*[\d)}}])\s*{_TEXT}\{{(?P<text>[^{{}}\d^]*)(?:\^(?P<inside>[1-9]))?\}}\s*(?:\^\{{?(?P<power>[1-9])\}}?)?"
)
_PERCENT = re.compile(
    rf"(?P<value>[^%]*\d[^%]*?)\s*(?:\\?%|(?:{_TEXT}\{{)?\s*(?:percent|per cent|percentage|pct)\s*\}}?)"
)
_DEGREE = re.compile(rf"{_VALUE}\s*(?:\^\s*\{{?\s*\\circ\s*\}}?|(?:{_TEXT}\{{)?\s*degrees?\s*\}}?)")
_ORDINAL = re.compile(rf"(?<=\d)\s*\^?\{{?(?:{_TEXT}\{{)?(?:st|nd|rd|th)\}}{{0,2}}$")
_SET_BUILDER = re.compile(r"\\\{\s*(?P<symbol>[a-z])\s*(?:\\in\s*\\mathbb\{R\}\s*)?(?::|\\mid|\|)(?P<condition>.*)\\\}")
_ROOT = re.compile(r"√\s*(\d+|[a-z])")
_SHAPE = re.compile(r"(?P<shape>square|sq\.?|cubic|cu\.?)\s+")

_ONE_NOTATION = {
    r"\mathbb{R}^+": r"(0,\infty)", r"\mathbb{R}^{+}": r"(0,\infty)",
    "−": "-", "–": "-", "×": r"\times ", "·": r"\cdot ", "÷": r"\div ", "π": r"\pi ", "∞": r"\infty ", "°": r"^\circ ",
    "≤": r"\le ", "≥": r"\ge ", "±": r"\pm ", "∪": r"\cup ", "€": "", "£": "", "**": "^", "~": " ", r"\quad": " ",
    r"\bmod": r"\mod", r"\dfrac": r"\frac", r"\tfrac": r"\frac", r"\cfrac": r"\frac", r"\displaystyle": "",
    r"\varnothing": r"\emptyset ",
}  # fmt: skip
_DELIMITER = re.compile(r"\\?\$|(?<!\\)\\[()\[\]!]")
_MONEY = re.compile(r"\\\$|^[^$]*\$[^$]*$")
_SPACE = re.compile(r"(?<!\\)\\[ ,;:]")
_THOUSANDS = re.compile(r"(?<=\d)(?:\\,|\{,\})(?=\d{3}(?!\d))")
_THIN_COMMAS = re.compile(r"(?<=\d),\\!\s*(?=\d{3}(?!\d))")
_SPACED = re.compile(r"[-+]?\d{1,3}(?: \d{3})+(?:\.\d+)?")
_MIXED = re.compile(r"(?<![\w.^{})])(\d{1,9}) +(\d{1,9}) ?/ ?(\d{1,9})(?![\w.^({])")
_NEEDLESS_SPACE = re.compile(r"(?<!\d) | (?!\d)")
_E_NOTATION = re.compile(r"(?<![A-Za-z\d.])(\d+(?:\.\d*)?|\.\d+)[eE]([-+]?\d+)(?![\d.A-Za-z])")
_REPEATING = re.compile(r"(\d*)\.(\d*)\\overline\s*\{?(\d+)\}?")
_ANGLE = re.compile(r"(\d+(?:\.\d+)?)\s*\^\s*\{?\s*\\circ\s*\}?")
_CHOOSE = re.compile(r"\{?([^{}]+)\\choose([^{}]+)\}?")
_FUNCTION = re.compile(r"(?<![A-Za-z\\])(?:pi|ln|log|exp|sin|cos|tan)(?![A-Za-z])")
_IMAGINARY = re.compile(r"(?<=\d)i(?![A-Za-z])|(?<![A-Za-z\\])i(?=[a-z](?![A-Za-z]))")


def read(answer: str) -> Reading:
    """Take an answer apart."""
    text = tidy(answer)
    if _MONEY.search(answer) and re.fullmatch(_VALUE, text):
        text += r"\text{dollar}"
    words = _TEXT_COMMAND.sub(r"\1", text).strip()
    whole = _MIXED.sub(r"(\1+\2/\3)", text)
    whole = _NEEDLESS_SPACE.sub("", whole).replace("{pmatrix}", "{bmatrix}")
    if _ALL_TEXT.fullmatch(text) and not _WORDS.fullmatch(words):
        text = words
    if _WORDS.fullmatch(words):
        is_text = bool(_ALL_TEXT.fullmatch(text)) or bool(_LONG_WORD.search(words))
        return Reading(text=whole, latex=words.strip("(). "), words=words.strip("(). ").casefold(), is_text=is_text)
    if _CLOCK.fullmatch(text):
        return Reading(text=whole, latex=text, clock=True)
    if base := _BASE.fullmatch(text):
        return Reading(text=whole, latex=base["digits"], base=base["base"])
    if percent := _PERCENT.fullmatch(text):
        return Reading(text=whole, latex=plain(percent["value"]), sign="percent")
    if degree := _DEGREE.fullmatch(text):
        return Reading(text=whole, latex=plain(degree["value"]), sign="degree")
    return _read_unit(text, whole) or Reading(text=whole, latex=plain(text))


def _read_unit(text: str, whole: str) -> Reading | None:
    """A number with a unit; None where the letters are a product of variables, as in 2ab or 5 x."""
    found = _UNIT.fullmatch(text) or _TEXT_UNIT.fullmatch(text)
    if found is None:
        return None
    parts = found.groupdict("")
    value = plain(parts["value"])
    name = (parts["text"] or parts.get("apart") or parts.get("joined") or "").strip(" .").lower()
    power = int(parts["power"] or parts.get("inside") or 1)
    if shape := _SHAPE.match(name):
        power = 2 if shape["shape"].startswith("sq") else 3
        name = name[shape.end() :]
    if name in COUNTS:
        return Reading(text=whole, latex=f"{value} \\cdot {COUNTS[name]}")
    for known in (name, name.removesuffix("s"), name.removesuffix("es")):
        if known in SIZES:
            dimension, size = SIZES[known]
            return Reading(text=whole, latex=value, unit=(dimension, power), size=size**power)
    if not parts["text"] and (parts["joined"] or len(name) < 3):
        return None
    return Reading(text=whole, latex=value)


def tidy(text: str) -> str:
    """One notation for what has several, without currency, delimiters, full stop and brackets around the whole."""
    text = _THIN_COMMAS.sub("", text.strip().strip("*"))
    for old, new in _ONE_NOTATION.items():
        text = text.replace(old, new)
    text = _SPACE.sub(" ", _DELIMITER.sub("", _THOUSANDS.sub("", text))).strip()
    if text.endswith(".") and not text.endswith(("..", "\\.")):
        text = text[:-1].rstrip()
    text = _FUNCTION.sub(r"\\\g<0> ", text)
    braces = num_enclosing(text, "{}")
    text = text[braces : len(text) - braces].strip()
    needless = max(0, num_enclosing(text, "()") - 1)
    return text[needless : len(text) - needless]


def num_enclosing(text: str, pair: str) -> int:
    """How many `pair`s of brackets surround the whole text: 2 for "{{3}}", 1 for "{{3}+{4}}"."""
    at_ends = min(len(text) - len(text.lstrip(pair[0])), len(text) - len(text.rstrip(pair[1])))
    lowest = depth = at_ends
    for character in text[at_ends : len(text) - at_ends]:
        depth += (character == pair[0]) - (character == pair[1])
        lowest = min(lowest, depth)
    return max(lowest, 0) if depth == at_ends else 0


def nesting(text: str) -> int:
    """The depth of its round and square brackets."""
    deepest = depth = 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        deepest = max(deepest, depth)
    return deepest


def plain(text: str) -> str:
    """Numbers as the parser reads them, where it does not read the usual ways to write them."""
    text = _ORDINAL.sub("", text)
    if _SPACED.fullmatch(text):
        return text.replace(" ", "")
    text = _MIXED.sub(r"(\1+\\frac{\2}{\3})", text)
    if builder := _SET_BUILDER.fullmatch(text):
        text = builder["condition"]
    text = _ROOT.sub(r"\\sqrt{\1}", text)
    text = _E_NOTATION.sub(r"\1\\times 10^{\2}", text)
    text = _REPEATING.sub(_repeating, text)
    text = _CHOOSE.sub(r"\\binom{\1}{\2}", text)
    text = _ANGLE.sub(r"(\\frac{\1\\pi}{180})", text)
    return _IMAGINARY.sub(" i ", text).strip()


def _repeating(match: re.Match[str]) -> str:
    """0.1\\overline{6} is (16 - 1) / 90."""
    whole, start, period = match.groups()
    numerator = int(whole + start + period) - int("0" + whole + start)
    return rf"\frac{{{numerator}}}{{{(10 ** len(period) - 1) * 10 ** len(start)}}}"
