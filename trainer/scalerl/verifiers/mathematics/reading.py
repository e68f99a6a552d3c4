r"""Parts of an answer besides its value: letter of a choice, name, words, sign, unit, number base, ratio.

\text{(B)}  ->  words "B"                    5\,\mathrm{cm}^2       ->  latex "5", unit cm^2
50\%        ->  latex "50", percent          \textbf{(D)}\ 35       ->  letter "D", body 35
x = 90^\circ -> name "x", body 90 degrees    4 \pmod{9}             ->  latex "4", modulus "9"
2:5:6       ->  ratio ("2", "5", "6")        \frac{\pi}{2}+k\pi, k\in\mathbb{Z}  ->  integer "k"
"""

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from scalerl.verifiers.mathematics.dates import date_of, is_time_of_day
from scalerl.verifiers.mathematics.latex import ANGLE_IN_DEGREES, MIXED_NUMBER, as_latex
from scalerl.verifiers.mathematics.notation import TEXT, rewritings, rewritten, tidy, without_stray_brace
from scalerl.verifiers.mathematics.phrases import SYNONYMS, chemical, in_one_form, kind_of_numbers, may_be_a_product
from scalerl.verifiers.mathematics.units import COUNT_WORDS, NUMBER_WORDS, UnitOfMeasure, measure_of, number_of_words

MAX_ANSWER_CHARS = 1_000
"""Maximum length of an answer that is not one long number."""
NUMBER = re.compile(r"[-+]?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d+)?")


@dataclass(frozen=True, kw_only=True)
class ParsedAnswer:
    """Parsed parts of one answer."""

    text: str = ""
    """Whole answer in one notation, without spaces."""
    latex: str
    """Rest for the parser."""
    letter: str = ""
    """Letter of a choice before its value, as in AMC; the value is `body`."""
    name: str = ""
    """Left side of an equation that names a value, such as x or \\angle A; the value is `body`."""
    body: "ParsedAnswer | None" = None
    words: str = ""
    """The answer if it consists only of letters."""
    is_text: bool = False
    r"""True if the words are typeset as text, as in \text{no}, or cannot be a product of symbols."""
    sign: Literal["", "percent", "degree"] = ""
    unit: UnitOfMeasure | None = None
    unit_text: str = ""
    quantities: "tuple[ParsedAnswer, ...]" = ()
    """Amounts of several things, as in 3 boys and 4 girls."""
    base: str = ""
    """Base in a subscript, such as 2 in 1011_2."""
    ratio: tuple[str, ...] = ()
    is_time: bool = False
    """True for a time of day, which is in `text`."""
    modulus: str = ""
    """Modulus, such as 9 in 4 (mod 9)."""
    integer: str = ""
    """Symbol for any number of `domain`."""
    domain: str = ""
    """Set Z, N or R."""


_TEXT_COMMAND = re.compile(rf"{TEXT}\{{([^{{}}]*)\}}")
_MERGE = re.compile(rf"{TEXT}\{{([^{{}}]*)\}}\s*(/?)\s*{TEXT}\{{([^{{}}]*)\}}")
_OPENING = rewritings(
    (
        rf"\\frac\s*\{{\s*{TEXT}\{{([^{{}}]*)\}}\s*\}}\s*\{{\s*{TEXT}\{{([^{{}}]*)\}}\s*(?:(\^)\s*\{{?(\d)\}}?)?"
        rf"\s*(?:\\cdot\s*{TEXT}\{{([^{{}}]*)\}}\s*)?\}}",
        r"\\text{\1/(\2\3\4 \5)}",
    ),
    (
        rf"(?i)^(?:{TEXT}\{{)?\s*(?:(?:the )?(?:final )?answer(?: is|:)|there (?:are|is)"
        r"|the (?!complement|opposite|negative|reciprocal|inverse)[a-z]+ (?:is|equals)|probability"
        r"|we (?:get|have)|it(?:\^\{\\prime\}s| is| equals)|exactly|about"
        r"|only|just|approximately|approx\.?|around|roughly|nearly|(?:a )?total of|simply|still)\s*(?:\}\s*)?"
        r"(?=[-\d\\])",
        "",
    ),
)
"""Quotients of units as text, and words before a value."""
_AROUND = rewritings(
    (rf"(?i)^(?:{TEXT}\{{)?\s*(?:negative|minus)\s*(?:\}}\s*)?(?=[\d\\])", "-"),
    (
        rf"(?<=[\d}} ])"
        rf"(?:{TEXT}\{{(?:[^{{}}]|\^\{{-?\d\}})*\}}(?:\s*\^\s*\{{?-?\d\}}?)?\s*(?:(?:\\cdot|/)\s*)?){{1,5}}$",
        lambda found: _one_unit(found),
    ),
    (
        rf"(?i)^(?:{TEXT}\{{)?\s*(?:option|choice|answer)\s*(?:\}}\s*)?(?:{TEXT}\{{)?\s*\(?([A-J])\)?\s*\}}?$",
        r"\1",
    ),
    (rf"^(?:{TEXT}\{{\s*(?:the )?point\s*\}}\s*)?[A-MO-Z]?\s*(\(\s*-?\d[^()]*,[^()]*\))$", r"\1"),
    (
        rf"(?i)_\s*\{{?\s*{TEXT}\{{\s*({'|'.join(word for word in NUMBER_WORDS if ' ' not in word)})\s*\}}\s*\}}?",
        lambda found: f"_{{{NUMBER_WORDS[found[1].lower()]}}}",
    ),
)
"""Rewritings of signs in words, of units, of a letter or point with its name, and of bases in words."""
_WORDS = re.compile(r"\(?[A-Za-z]+(?:[' -][A-Za-z]+)*\)?\.?")
_LETTER = re.compile(
    rf"(?:\(\s*{TEXT}\{{\s*(?P<e>[A-J])\s*\}}\s*\)|{TEXT}\{{\s*(?:\(\s*(?P<a>[A-J])\s*\)|(?P<b>[A-J])\s*[).:])\s*\}}|\(\s*(?P<c>[A-J])\s*\)(?=\s*(?:-?\d|\\frac|\\sqrt|\\pi|\\text|\$))"
    r"|(?P<d>[A-J])[).]\s*(?=[-\d\\]))[\s.:]*(?P<rest>[^\s+*/^_=<>,|)].*)"
)
_LETTER_INSIDE = re.compile(rf"{TEXT}\{{\s*\(?([A-J])[).:]\)?\s+(?P<rest>[^{{}}]+)\}}")
_ANOTHER_LETTER = re.compile(r"(?<![\w\\])\([A-J]\)|\b(?:or|and)\b\W*(?:\\text\w*\W+)?[A-J]\b")
_MODULUS = re.compile(
    rf"\s*(?:\\pmod\s*\{{?(?P<a>[\w\\]+)\}}?|\(\s*(?:{TEXT}\{{\s*)?\\?mod\s*(?:ulo\s*)?\}}?\s*\{{?(?P<b>\w+)\}}?\s*\}}?\s*\))$"
)
_KIND = r"(?:(?:positive|non-?negative|natural|real|arbitrary|integers?|numbers?|constants?)\b\s*)"
_QUANTIFIED = re.compile(
    rf"[\s,;]*\(?\s*(?P<for>\b(?:where|for|with|and)\s+)?(?P<all>(?:all|any|some|every|each|an?)\s+)?(?P<kind>{_KIND}*)"
    r"(?<![A-Za-z\\])(?P<symbol>[A-Za-z](?:_\d)?)\s*(?P<of>\\in\s*(?:\\mathbb\s*\{?[ZNR]\}?|Z)(?:\^?[+*]|\^\{[+*]\})?"
    rf"|(?:is|=)?\s*(?:an?\s|any\s)?\s*{_KIND}+|(?P<bound>(?:[<>]|\\[gl]e(?![a-z]))\s*-?\d+))?\s*\)?$"
)
"""A remark about a symbol at the end: "for any integer k", "where C is a constant", "for all n > 1"."""
_NAME = re.compile(
    r"\((?:\\?[A-Za-z]+)(?:\s*,\s*\\?[A-Za-z]+)+\)|(?:\\?#)?(?:\\(?:Pr|max|min|det|dim|deg|arg|lcm|gcd)(?![A-Za-z])(?:\([^()=]*\)|\s*[A-Z])?|(?:m\s*)?(?:\\(?:angle|triangle|overline|widehat|vec|hat|bar|mathrm|mathbf|text|measuredangle|operatorname)(?![A-Za-z])\s*)*"
    r"(?:\{[A-Za-z ]+\}|\|?[A-Za-z]{1,4}\|?|\[[A-Z]+\]|\\(?:alpha|beta|gamma|delta|epsilon|theta|lambda"
    r"|mu|phi|varphi|psi|omega|sigma|rho|tau|Delta|Omega))"
    r"(?:_(?:\{[^{}]*\}|\w))?(?:\^\{(?:\\prime)+\})?(?:\((?:[a-zA-Z]|-?\d+)(?:\s*(?:,|\||\\c[au]p)\s*(?:[a-zA-Z]|-?\d+))*\))?)"
)
_WORD_NAME = re.compile(
    rf"(?:{TEXT}\{{[A-Za-z ,']+\}}|[A-Za-z]{{3,}}(?: [A-Za-z]+)*)(?:\s*(?:of|\\triangle)?\s*[A-Z]*)"
)
_EQUALS = re.compile(r"(?<![<>!\\])(?:=|\\equiv(?![A-Za-z])|\\approx(?![A-Za-z]))(?!=)")
_RELATION = re.compile(r"[<>]|\\(?:le|ge|lt|gt|ne|in|neq|leq|geq|subset)(?![A-Za-z])")
_BASE = re.compile(r"\(?(?P<digits>[0-9A-Za-z]+)\)?_\{?(?P<base>\d{1,2})\}?")
_TO = re.compile(rf"(?<=[\d\w}}])\s*(?:{TEXT}\{{\s*to\s*\}}|(?<![A-Za-z])to(?![A-Za-z]))\s*(?=[\d\w\\])")

_PIECEWISE = re.compile(r"\\begin\{cases\}(.*)\\end\{cases\}")
_INTRODUCED = re.compile(r"^(?:(?:[Ii]t|[Tt]his|[Tt]he [a-z]+) (?:is|was|will be) )?(?:(?:an?|the) (?=[a-z]))?")
_FRACTION = r"\\frac(?:\{[\d.\\a-z]+\}\{[\d.\\a-z]+\}|\d\d)"
_VALUE = (
    rf"(?P<value>[-+]?(?:[\d.,/ ()+-]|{_FRACTION}|\\times|\\cdot|\\pi|\^\{{?-?\d+(?!\d)\}}?"
    r"|\\sqrt(?:\{[^{}]*\}|\d))+?)"
)
_POWER = r"\s*(?:\^\s*\{?(?P<power>-?[1-9])\}?)?"
_UNIT = re.compile(
    rf"{_VALUE}(?:\s*{TEXT}\{{(?P<text>[^{{}}]*)\}}"
    rf"|\s(?P<apart>[A-Za-z$€£¥₹Ωμ][A-Za-z./ ]*)|(?P<joined>[a-z]{{2,}})){_POWER}\.?"
)
_TEXT_UNIT = re.compile(rf"(?P<value>.*\d.*[\d)}}])\s*{TEXT}\{{(?P<text>[^{{}}]*)\}}{_POWER}\.?")
_INSIDE_POWER = re.compile(r"\s*\^\s*\{?(-?[1-9])\}?$")
_PERCENT = re.compile(
    rf"(?P<value>[^%]*\d[^%]*?)\s*(?:\\?%|(?:{TEXT}\{{)?\s*(?:percent|per cent|percentage|pct)\s*\}}?)"
    rf"(?:\s*(?:{TEXT}\{{)?\s*of(?: [a-z]{{3,}})+\s*\}}?)?"
)
_DEGREE_MARK = rf"(?:\^\s*\{{?\s*(?:\\circ|o)\s*\}}?|(?:{TEXT}\{{)?\s*degrees?\s*\}}?)"
_DEGREE = re.compile(rf"(?P<value>[^,]*?[\d)}}])\s*{_DEGREE_MARK}")
_MINUTES = re.compile(
    r"(?P<whole>\d+)\s*\^\s*\{?\\circ\}?\s*(?P<minutes>\d{1,2})\s*\^\{\\prime\}(?:\s*(?P<seconds>\d{1,2})\s*\^\{\\prime\\prime\})?"
)
_TEMPERATURE = re.compile(
    rf"(?i)(?P<value>.*?\d)\s*(?:\^\s*\{{?\\circ\}}?|(?:{TEXT}\{{)?\s*degrees?)\s*(?:{TEXT}\{{)?\s*(?P<scale>[CF]|Celsius|Fahrenheit)\s*\}}?",
)
_NEEDLESS_SPACE = re.compile(r"(?<!\d) | (?!\d)")
_TRIGONOMETRY = re.compile(r"\\(?:arc)?(?:sin|cos|tan|cot|sec|csc)|cis(?![a-z])")
_QUANTITY = re.compile(
    rf"(?P<number>\d[\d.,]*(?:\s+\d+/\d+)?|{_FRACTION})\s*(?:{TEXT}\{{(?P<text>[^{{}}\d]*)\}}|(?P<bare>[A-Za-z]+\.?))"
    rf"\s*,?\s*(?:{TEXT}\{{\s*and\s*\}}|and(?![A-Za-z]))?\s*"
)


def read(answer: str) -> ParsedAnswer:
    """Parse an answer into its parts."""
    text = in_one_form(rewritten(without_stray_brace(rewritten(tidy(answer), _OPENING)), _AROUND))
    while (merged := _MERGE.sub(r"\\text{\1 \2\3}", text)) != text:
        text = merged
    if (found := _LETTER.fullmatch(text)) or (found := _LETTER_INSIDE.fullmatch(text)):
        letter = next(one for one in found.groups() if one)
        rest = found["rest"] if found.re is _LETTER else rf"\text{{{found['rest']}}}"
        body = _read(tidy(rest))
        if (body.is_text or not body.words) and not _ANOTHER_LETTER.search(rest):  # A) x is a choice of symbols
            return replace(body, text=_whole(text), letter=letter, body=body)
    return _read(text)


def _one_unit(run: re.Match[str]) -> str:
    r"""Units as one text: \text{m s^-1} for \mathrm{m}\cdot\mathrm{s}^{-1}."""
    if "^" not in run[0] and "cdot" not in run[0]:
        return run[0]
    bare = re.sub(rf"{TEXT}|[{{}}]", " ", run[0].replace(r"\cdot", " "))
    bare = re.sub(r"\s*\^\s*", "^", bare)
    return rf"\text{{ {' '.join(bare.split())}}}" if measure_of(bare) else run[0]


def _whole(text: str) -> str:
    whole = _TEXT_COMMAND.sub(r"\1", MIXED_NUMBER.sub(r"(\1+\2/\3)", text))
    if found := _PIECEWISE.search(whole):
        rows = re.sub(r"(?<![A-Za-z])(?:if|for|when|is|otherwise)(?![A-Za-z])|[,\s]", "", found[1]).split(r"\\")
        whole = f"{whole[: found.start(1)]}{'; '.join(sorted(filter(None, rows)))}{whole[found.end(1) :]}"
    return _NEEDLESS_SPACE.sub("", whole).replace("{pmatrix}", "{bmatrix}")


def _read(text: str) -> ParsedAnswer:
    whole = _whole(text)
    modulus = integer = domain = ""
    if (found := _MODULUS.search(text)) and found.start():
        text, modulus = text[: found.start()].rstrip(), found["a"] or found["b"]
    found = _QUANTIFIED.search(plain := _TEXT_COMMAND.sub(r" \1 ", text))
    if found and found["symbol"] in (before := plain[: found.start()]):
        said = f"{found['kind']}{'' if found['bound'] else found['of'] or ''}"
        if said or (found["for"] and found["all"]):
            text = before.rstrip(" ,;")
        if re.search(r"integer|natural|[ZN]\b", said):
            integer, domain = found["symbol"], "N" if re.search(r"\+|positive|negative|natural|N", said) else "Z"
        elif said and found["symbol"].islower() and not _RELATION.search(before):
            integer, domain = found["symbol"], "R"
    around = {"modulus": modulus, "integer": integer, "domain": domain}
    name, value = _named(text)
    if not name:
        return replace(_value(text, integer), text=whole, **around)
    body = replace(_value(value, integer), text=_whole(value), **around)
    return replace(ParsedAnswer(latex=as_latex(text), name=name, body=body), text=whole, **around)


def _named(text: str) -> tuple[str, str]:
    """Name and value of an equation that names a value; of x = 10/2 = 5 the last value. Empty for other text."""
    sides = [side.strip() for side in _EQUALS.split(text)]
    if len(sides) < 2 or not all(sides) or _RELATION.search(text) or (";" in text or _listed(text)):
        return "", ""
    if len(sides) == 2 and _is_name(sides[1]) and not _is_name(sides[0]):
        sides.reverse()
    first = sides[0]
    if "\\equiv" in text or _is_name(first) or (len(sides[-1]) < 40 and ":" in first and ":" in sides[-1]):
        name = _TEXT_COMMAND.sub(r"\1", first)
        return re.sub(r"\\(?:angle|triangle|measuredangle)|^m(?=\s*\\)|[\s{}|]", "", name), sides[-1]
    return "", ""


def _listed(text: str) -> bool:
    """True if several equations are listed: a comma outside of brackets with an equation on either side."""
    depth, commas = 0, 0
    for character in text:
        depth += (character in "([{") - (character in ")]}")
        commas += character == "," and depth <= 0
    return bool(commas or re.search(r"(?<![a-z])(?:or|and)(?![a-z])", text)) and text.count("=") > 1


def _is_name(text: str) -> bool:
    return bool(_NAME.fullmatch(text) or _WORD_NAME.fullmatch(text))


def _value(text: str, integer: str) -> ParsedAnswer:
    """Value of a text; its symbol for any integer is no unit, as m might be metres."""
    words = _TEXT_COMMAND.sub(r"\1", text).strip()
    if kind_of_numbers(words) is not None:
        words = " ".join(words.split())
    is_set_as_text = not _TEXT_COMMAND.sub("", text).strip(" .") and bool(text)
    if is_time_of_day(words):
        return ParsedAnswer(latex=words, is_time=True)
    if date := date_of(words):
        return ParsedAnswer(latex=words, words=date, is_text=True)
    if is_set_as_text and not _WORDS.fullmatch(words):
        text = words
    if _WORDS.fullmatch(words):
        bare = words.strip("(). ")
        if (number := number_of_words(bare)) is not None:
            return ParsedAnswer(latex=str(number))
        first, _, counted = bare.partition(" ")
        if counted and number_of_words(first) is not None and first.lower() not in COUNT_WORDS and measure_of(counted):
            written = rf"{number_of_words(first)}\text{{ {counted}}}"
            return _with_unit(written) or ParsedAnswer(latex=as_latex(_whole(text)))
        bare = _INTRODUCED.sub("", SYNONYMS.get(bare.lower(), bare))
        return ParsedAnswer(latex=as_latex(bare), words=bare, is_text=is_set_as_text or not may_be_a_product(bare))
    if (found := _BASE.fullmatch(text)) and _is_of_base(found["digits"], int(found["base"])):
        return ParsedAnswer(latex=found["digits"], base=found["base"])
    if formula := chemical(text):
        return ParsedAnswer(latex=as_latex(text), words=formula, is_text=True)
    spelt = _TO.sub(":", text)
    if _is_ratio(spelt) and not _WORDS.fullmatch(spelt.replace(":", " ")):
        return ParsedAnswer(latex=as_latex(spelt), ratio=tuple(as_latex(part) for part in spelt.split(":")))
    if found := _PERCENT.fullmatch(text):
        return ParsedAnswer(latex=as_latex(found["value"]), sign="percent")
    measured = _temperature(text) or _angle(text) or (None if integer else _with_unit(text))
    return measured or ParsedAnswer(latex=as_latex(text))


def _temperature(text: str) -> ParsedAnswer | None:
    """One or several temperatures of one scale."""
    temperatures = [_TEMPERATURE.fullmatch(part.strip()) for part in text.split(",")]
    scales = {found["scale"][0].upper() for found in temperatures if found}
    if not all(temperatures) or len(scales) != 1:
        return None
    scale = "celsius" if scales == {"C"} else "fahrenheit"
    values = ",".join(as_latex(found["value"]) for found in temperatures if found)
    return ParsedAnswer(latex=values, unit=measure_of(scale), unit_text=scale)


def _angle(text: str) -> ParsedAnswer | None:
    """An angle in degrees, also in minutes and seconds, or a point whose coordinates are angles."""
    if found := _MINUTES.fullmatch(text):
        latex = rf"{found['whole']}+\frac{{{found['minutes']}}}{{60}}+\frac{{{found['seconds'] or 0}}}{{3600}}"
        return ParsedAnswer(latex=latex, sign="degree")
    if _TRIGONOMETRY.search(text):
        return None
    if "\\circ" in text:
        bare = ANGLE_IN_DEGREES.sub(r"\1", text)
        if "\\circ" not in bare or _DEGREE.fullmatch(bare):
            if text.startswith("(") and "," in text and text.count("\\circ") <= text.count(","):
                return ParsedAnswer(latex=as_latex(text))
            return ParsedAnswer(latex=as_latex(re.sub(_DEGREE_MARK, "", bare)), sign="degree")
    if found := _DEGREE.fullmatch(text):
        return ParsedAnswer(latex=as_latex(found["value"]), sign="degree")
    return None


def _is_ratio(text: str) -> bool:
    """True for a ratio such as 2:5:6, but not for a set {x : x > 0}, an equation or a function."""
    parts = text.split(":")
    if len(parts) == 1 or not all(map(str.strip, parts)):
        return False
    return not (re.search(r"[|()]", parts[0]) or re.search(r"[=,<>]|\\[{}]", text))


def _is_of_base(digits: str, base: int) -> bool:
    """True if this can be a number in that base, rather than a symbol with a subscript."""
    values = [int(digit, 36) for digit in digits]
    return 1 < base <= 36 and max(values) < base and any(digit.isdecimal() for digit in digits)


def _with_unit(text: str) -> ParsedAnswer | None:
    """Number with a unit; None if the letters are a product of symbols, as in 2ab or 5 x."""
    if (added := _added(text)) is not None:
        return added
    found = _UNIT.fullmatch(text) or _TEXT_UNIT.fullmatch(text)
    if found is None:
        return None
    parts = found.groupdict("")
    name = (parts["text"] or parts.get("apart") or parts.get("joined") or "").strip(" .,()")
    name += ")" * (name.count("(") - name.count(")"))
    power = parts["power"] or ""
    if inside := _INSIDE_POWER.search(name):
        name, power = name[: inside.start()], inside[1]
    value = as_latex(parts["value"].strip(" ("))
    first, _, rest = name.partition(" ")
    singular = first.lower().removesuffix("s")
    if (times := COUNT_WORDS.get(first.lower()) or COUNT_WORDS.get(singular)) is not None:
        value = rf"({value})\cdot \frac{{{times.numerator}}}{{{times.denominator}}}"
        name = rest.removeprefix("of ").strip()
        if not name or name.startswith("a "):
            return ParsedAnswer(latex=value)
    if not parts["text"] and len(name) < 3 and parts.get("joined") == name and name in ("in", "hr", "as", "is"):
        return None
    unit = measure_of(f"{name}^{power}" if power else name)
    if unit is None or (unit.dimensions is None and not parts["text"] and (parts.get("joined") or len(name) < 3)):
        return None
    return ParsedAnswer(latex=value, unit=unit, unit_text=name)


def _added(text: str) -> ParsedAnswer | None:
    """Sum of a quantity in several units, such as 1 hour 20 minutes: in the smallest unit, or the largest for money."""
    pairs = [(found["number"], (found["text"] or found["bare"]).strip(" ,")) for found in _QUANTITY.finditer(text)]
    if len(pairs) < 2 or _QUANTITY.sub("", text).strip(" ."):
        return None
    units = [unit for _, name in pairs if (unit := measure_of(re.sub(r"\s*and$", "", name)))]
    if len(units) < len(pairs):
        return None
    dimensions = {unit.dimensions for unit in units}
    if len(dimensions) > 1 or None in dimensions:
        if len(set(units)) < len(units):
            return None
        amounts = tuple(
            ParsedAnswer(text=value, latex=as_latex(value), unit=unit, unit_text=name)
            for (value, name), unit in zip(pairs, units, strict=True)
        )
        return ParsedAnswer(latex=",".join(one.latex for one in amounts), quantities=amounts)
    one = units[0] if dimensions == {(("money", 1),)} else units[-1]
    shares = [Fraction(unit.size, one.size) for unit in units]
    latex = "+".join(
        rf"({as_latex(value.strip())})\cdot \frac{{{share.numerator}}}{{{share.denominator}}}"
        for (value, _), share in zip(pairs, shares, strict=True)
    )
    return ParsedAnswer(latex=latex, unit=one, unit_text=pairs[-1][1])
