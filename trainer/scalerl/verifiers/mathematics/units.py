r"""Units of measure in answers: synonyms, sizes, and words that are not units.

measure_of("square feet")     ->  UnitOfMeasure(dimensions=(("length", 2),), size=(381/1250)^2)
measure_of("km/h")            ->  UnitOfMeasure(dimensions=(("length", 1), ("time", -1)), size=5/18)
measure_of("red apples")      ->  UnitOfMeasure(dimensions=None, words={"red", "apple"}): compared by its words
measure_of("or more")         ->  None: the words change the number
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

Dimensions = tuple[tuple[str, int], ...]

BASE = {
    "length": {"m meter metre 米": "1", "in inch inches": "127/5000", "ft foot feet": "381/1250",
               "um micron": "1/1000000", "mi mile": "201168/125", "千米 公里": "1000", "分米": "1/10", "厘米": "1/100",
               "毫米": "1/1000", "yd yard": "1143/1250"},
    "time": {"s sec second 秒": "1", "min minute 分钟": "60", "h hr hour 小时 时": "3600", "day 天 日": "86400",
             "week wk 周": "604800", "month 个月": "2628000", "yr year 年": "31536000", "decade": "315360000",
             "century centuries": "3153600000"},
    "mass": {"g gram gm 克": "1", "kilo 千克 公斤": "1000", "tonne 吨": "1000000", "oz ounce": "45359237/1600000",
             "lb pound": "45359237/100000", "ton": "45359237/50"},
    "money": {"cent ¢": "1/100", "dollar $ usd buck": "1"}, "euro": {"euro € eur": "1"},
    "pound sterling": {"£ gbp": "1"}, "yen": {"¥ yen jpy": "1"}, "rupee": {"₹ rupee rs inr": "1"},
    "yuan": {"元 yuan cny": "1"},
    "celsius": {"celsius": "1"}, "fahrenheit": {"fahrenheit": "1"}, "kelvin": {"K kelvin": "1"},
    "current": {"A amp ampere": "1"}, "amount": {"mol mole": "1"}, "angle": {"rad radian": "1"}, "unit": {"unit": "1"},
    "data": {"bit": "1", "byte": "8", "kB KB kilobyte": "8000", "MB megabyte": "8000000", "GB gigabyte": "8000000000"},
}  # fmt: skip
"""Exact size of each unit in metres, seconds, grams, dollars and so on; names may have a plural s or es. A year has 365
days, and twelve months."""
DERIVED = {
    "l L liter litre 升": "1/1000 m^3", "cc 毫升": "1/1000000 m^3", "gal gallon": "473176473/125000000000 m^3",
    "qt quart": "473176473/500000000000 m^3", "pt pint": "473176473/1000000000000 m^3",
    "cup": "473176473/2000000000000 m^3", "acre": "316160658/78125 m^2", "ha hectare": "10000 m^2",
    "mph": "1397/3125 m s^-1", "kph kmh kmph": "5/18 m s^-1", "mpg": "48000000000/112903 m^-2",
    "fps": "381/1250 m s^-1", "N newton": "1000 g m s^-2", "dyn dyne": "1/100 g m s^-2", "erg": "1/10000 g m^2 s^-2",
    "J joule": "1000 g m^2 s^-2", "cal calorie": "4184 g m^2 s^-2", "kcal": "4184000 g m^2 s^-2",
    "kWh": "3600000000 g m^2 s^-2", "W watt": "1000 g m^2 s^-3", "Pa pascal": "1000 g m^-1 s^-2",
    "Hz hertz": "1 s^-1", "V volt": "1000 g m^2 A^-1 s^-3", "Ω ohm": "1000 g m^2 A^-2 s^-3", "C coulomb": "1 A s",
}  # fmt: skip
PREFIXED = {
    "n nano": ("1/1000000000", "m"), "μ micro": ("1/1000000", "m s g A C"), "m milli": ("1/1000", "m s g l A V J W"),
    "c centi": ("1/100", "m l"), "d deci": ("1/10", "m l"), "k kilo": ("1000", "m g N J cal W Pa Hz V Ω"),
    "M mega": ("1000000", "N J W Pa Hz V Ω"), "G giga": ("1000000000", "J W Pa Hz"),
}  # fmt: skip
"""Size of each prefix, and the units that it may precede: short before short names, long before long ones."""
COUNT_WORDS = {
    "dozen": Fraction(12), "score": Fraction(20), "hundred": Fraction(100), "thousand": Fraction(1000),
    "million": Fraction(10**6), "billion": Fraction(10**9), "trillion": Fraction(10**12),
    "half": Fraction(1, 2), "halves": Fraction(1, 2), "third": Fraction(1, 3), "quarter": Fraction(1, 4),
    "fourth": Fraction(1, 4), "fifth": Fraction(1, 5), "sixth": Fraction(1, 6), "seventh": Fraction(1, 7),
    "eighth": Fraction(1, 8), "ninth": Fraction(1, 9), "tenth": Fraction(1, 10), "twelfth": Fraction(1, 12),
    "hundredth": Fraction(1, 100), "thousandth": Fraction(1, 1000), "millionth": Fraction(1, 10**6),
}  # fmt: skip
"""Words after a number that multiply it: 3 dozen, 3 tenths."""
_SCALES = {"billion": 10**9, "million": 10**6, "thousand": 1000, "hundred": 100}
_ONES = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
eighteen nineteen
"""
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
NUMBER_WORDS = {word: number for number, word in enumerate(_ONES.split())} | {"one hundred": 100, "a hundred": 100}
NUMBER_WORDS |= {
    f"{ten} {one}".removesuffix(" zero"): 20 + 10 * place + number
    for place, ten in enumerate(_TENS.split())
    for number, one in enumerate(_ONES.split()[:10])
}


def number_of_words(text: str) -> Fraction | None:
    """Number in words: "negative six", "forty-two", "three quarters", "half", "a dozen"; None for other text."""
    words = text.lower().replace("-", " ").split()
    if words and words[0] in ("negative", "minus"):
        number = number_of_words(" ".join(words[1:]))
        return None if number is None else -number
    if (whole := _cardinal(words)) is not None:
        return Fraction(whole)
    if len(parts := re.split(r" out of ", " ".join(words))) == 2:
        hit, every = (_cardinal(part.split()) for part in parts)
        return Fraction(hit, every) if hit is not None and every else None
    last = words[-1] if words else ""
    times = COUNT_WORDS.get(last, COUNT_WORDS.get(last.removesuffix("s")))
    if times is None or len(words) > 3:
        return None
    first = " ".join(words[:-1])
    if first in ("a", "an") or (not first and last == "half"):
        return times
    return None if first not in NUMBER_WORDS else NUMBER_WORDS[first] * times


def _cardinal(words: Sequence[str]) -> int | None:
    """The whole number of "two thousand three hundred and five"; None for other words."""
    if (known := NUMBER_WORDS.get(" ".join(words))) is not None:
        return known
    for scale, size in _SCALES.items():
        if scale in words:
            place = words.index(scale)
            times = 1 if words[:place] == ["a"] else _cardinal(words[:place])
            rest = words[place + 1 :]
            rest = rest[1:] if len(rest) > 1 and rest[0] == "and" else rest
            below = _cardinal(rest) if rest else 0
            return None if not times or below is None or below >= size else times * size + below
    return None


_CHANGING = """
excluded excluding exclusive except mille permille ppm ppb or and than least most at up over under above below
between not no non plus minus times multiplied divided by squared cubed square cube root factorial power to mod
modulo base remainder percent point if when unless else but except either neither nor if any all none undefined
infinite infinity am pm a.m p.m one two three four five six seven eight nine ten eleven twelve false true yes
wrong incorrect isn't maybe perhaps possibly guess rejected discarded extraneous invalid divides
"""
CHANGING = frozenset(_CHANGING.split())
"""Words after a number that change its meaning."""
DIRECTIONS = frozenset({"north", "south", "east", "west", "clockwise", "counterclockwise", "anticlockwise"})
AFTER_A_UNIT = re.compile(
    r"\s+(?:of|in|long|wide|tall|high|deep|old|away|apart|each|total|altogether|left|remaining)\b.*"
)

_SHAPES = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
_FACTOR = re.compile(r"(?P<name>[^\s\d^]+?)\^?\{?(?P<power>-?\d)?\}?")


@dataclass(frozen=True, kw_only=True)
class UnitOfMeasure:
    """Unit after a number."""

    dimensions: Dimensions | None
    """Powers of the base dimensions, sorted; None for an unknown unit."""
    size: Fraction = Fraction(1)
    """Size in metres, seconds, grams and so on."""
    words: frozenset[str] = frozenset()
    """Words of an unknown unit, in the singular."""


def _product(*factors: tuple[UnitOfMeasure, int], size: Fraction = Fraction(1)) -> UnitOfMeasure:
    powers: dict[str, int] = {}
    for unit, power in factors:
        size *= unit.size**power
        for dimension, of_unit in unit.dimensions or ():
            powers[dimension] = powers.get(dimension, 0) + power * of_unit
    return UnitOfMeasure(dimensions=tuple(sorted((name, power) for name, power in powers.items() if power)), size=size)


def _table() -> Mapping[str, UnitOfMeasure]:
    known: dict[str, UnitOfMeasure] = {}
    for dimension, units in BASE.items():
        for names, size in units.items():
            for name in names.split():
                known[name] = UnitOfMeasure(dimensions=((dimension, 1),), size=Fraction(size))
    for names, written in DERIVED.items():
        size, *parts = written.split()
        factors = ((known[name], int(power or 1)) for name, _, power in (part.partition("^") for part in parts))
        known.update(dict.fromkeys(names.split(), _product(*factors, size=Fraction(size))))
    for prefixes, (size, symbols) in PREFIXED.items():
        units = {known[symbol] for symbol in symbols.split()}
        for name, unit in [one for one in known.items() if one[1] in units]:
            scaled = _product((unit, 1), size=Fraction(size))
            known |= {one + name: scaled for one in prefixes.split() if (len(one) > 2) == (len(name) > 2)}
    return MappingProxyType(known)


UNITS = _table()


def known_unit(name: str) -> UnitOfMeasure | None:
    """Unit with this name, in singular or plural; case matters only if two names differ only in case."""
    spellings = (name, name.lower()) if len(name) > 2 or (len(name) == 2 and name.isupper()) else (name,)
    for spelt in spellings:
        for form in (spelt, spelt.removesuffix("s"), spelt.removesuffix("es")):
            if form in UNITS and not (form != spelt and len(form) < 2):
                return UNITS[form]
    return None


def measure_of(text: str) -> UnitOfMeasure | None:
    """Unit named by `text`, known or not; None if its words change the number before them."""
    text = text.replace("\\cdot", " ").replace("·", " ").replace("平方", "square ").replace("立方", "cubic ")
    text = re.sub(r"/\s*\(([^()]*)\)$", r"/\1", text)
    text = re.sub(r"(?<!\^)-", " ", text.replace("\\", " ").replace("left over", "left"))
    text = " ".join(text.split()).strip(" .")
    if not text:
        return None
    if (unit := _known(text)) is not None or (unit := _known(AFTER_A_UNIT.sub("", text))) is not None:
        return unit
    words = [word.strip(".,()'") for word in text.lower().replace("/", " ").split()]
    if not all(word.isalpha() for word in words) or CHANGING.intersection(words) or COUNT_WORDS.keys() & set(words):
        return None
    if all(len(word) < 3 and word.isascii() for word in words) or re.search("[上下多余半以不倍折成左右几第]", text):
        return None
    return UnitOfMeasure(dimensions=None, words=frozenset(word.removesuffix("s") for word in words))


def _known(text: str) -> UnitOfMeasure | None:
    """Known unit, or a quotient of known units, with its shape or power."""
    above, *below = re.split(r"\s*/\s*|\s+per\s+|^per\s+", text)
    factors: list[tuple[UnitOfMeasure, int]] = []
    for part, sign in ((above, 1), *((one, -1) for one in below)):
        power, words = 1, part.replace(".", " ").split()
        for word in words:
            if word.lower() in _SHAPES and power == 1:
                power = _SHAPES[word.lower()]
                continue
            if word.lower() in ("squared", "cubed") and factors:
                unit, _ = factors[-1]
                factors[-1] = (unit, sign * (2 if word.lower() == "squared" else 3))
                continue
            match = _FACTOR.fullmatch(word)
            unit = known_unit(match["name"]) if match else None
            if unit is None or match is None:
                return None
            factors.append((unit, sign * int(match["power"] or power)))
            power = 1
        if power != 1 or (not words and sign < 0):
            return None
    return _product(*factors) if factors else None
