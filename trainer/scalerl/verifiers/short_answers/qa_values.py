"""Short answers that name the same thing in other words: dates, quantities, lists and abbreviations.

same_value("4th of July, 1776", "July 4, 1776")    True        same_value("5,000,000", "5 million")    True
same_value("300 kilometres", "300 km")             True        same_value("Germany and France", "France and Germany")
"""

import re
import unicodedata
from fractions import Fraction

from scalerl.verifiers.mathematics.dates import date_of, times_of_day
from scalerl.verifiers.mathematics.notation import rewritings, rewritten
from scalerl.verifiers.mathematics.units import COUNT_WORDS, measure_of, number_of_words

_TEXT_OF_ORDINALS = """
first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth
fifteenth sixteenth seventeenth eighteenth nineteenth twentieth
"""
_ORDINALS = _TEXT_OF_ORDINALS.split()
_ENDINGS = {1: "st", 2: "nd", 3: "rd"}
_TEXT_OF_SHORT = """
saint=st mount=mt junior=jr senior=sr doctor=dr bce=bc colour=color theatre=theater centre=center grey=gray
harbour=harbor aluminium=aluminum sulphur=sulfur wwii=world_war_2 wwi=world_war_1 ww2=world_war_2 ww1=world_war_1
"""
_SHORT = {word: short.replace("_", " ") for word, _, short in (one.partition("=") for one in _TEXT_OF_SHORT.split())}
_SHORT |= {word: f"{number}{_ENDINGS.get(number, 'th')}" for number, word in enumerate(_ORDINALS, 1)}
"""Words and their usual short form."""
_ABOUT = re.compile(r"^(?:(?:there (?:are|were|is|was)|about|approximately|around|roughly|exactly|is|the number)\s+)+")
_CURRENCIES = "$€£¥₹"
_CODE = re.compile(r"^(-?)\s*(?:us)?([$€£¥₹]|usd\s|eur\s|gbp\s)\s*(.+)$")
_LARGE = {word: times for word, times in COUNT_WORDS.items() if word in ("thousand", "million", "billion", "trillion")}
_AMOUNT = re.compile(
    r"(?P<number>(?:[1-9]\d{0,2}(?:,\d{3})+|0|[1-9]\d*)(?:\.\d+)?)\s*(?P<times>(?:thousand|million|billion|trillion)\b)?\s*"
    r"(?P<unit>[a-zμ$€£¥₹°%][a-zμ$€£¥₹°%/ ]*?)?(?:\s*,\s*(?:and\s+)?|\s+and\s+|\s+(?=\d)|$)"
)
_COUNTED = re.compile(r"(?:[a-z]{3,} )?(?:[a-z]{3,}s|people|children|men|women)")
_BETWEEN = re.compile(r"\s*,\s*(?:and\s+|&\s*)?|\s+and\s+|\s*&\s*")
_CHOICE = re.compile(r"\b(?:or|nor|neither|either|not)\b")
_TEXT_OF_NUMERALS = "i ii iii iv v vi vii viii ix x xi xii xiii xiv xv xvi xvii xviii xix xx"
_ROMAN = {word: number for number, word in enumerate(_TEXT_OF_NUMERALS.split(), 1) if word != "xi"}  # a name
_IN_SHORT = rewritings(
    (r"(?<=\b[b-z]) (?=[b-z] )", ""),  # initials
    (rf"(?<=[a-z] )(?:{'|'.join(_ROMAN)})(?!\S)", lambda found: str(_ROMAN[found[0]])),
    (r"(?<=[a-z] )(\d+)(?:st|nd|rd|th)$", r"\1"),  # Henry VIII is Henry the Eighth
    (r"\b([12])(?:st|nd) world war\b", r"world war \1"),
    (r"^(\d\d)(\d\d) (\d\d)$", r"\1\2 \1\3"),  # 1914-18
    (r"^(?:from )?(\d+) (?:to|until|till|through) (\d+)$", r"\1 \2"),
)
_COUNTRIES = {"usa": "united states", "united states of america": "united states"}
_NAMED = re.compile(
    r"^(?:the\s+)?(?:river\s+)?|^an?\s+|(?i:\s+river|,?\s+(?:inc|corp|ltd|corporation))\.?$", re.IGNORECASE
)
_SMALL = frozenset({"of", "the", "and", "for", "in"})


def same_initials(answer: str, gold: str) -> bool:
    """True if one of the two has the initials of the other in capitals: "UK" for "United Kingdom"."""
    plain = [re.sub(r"[.\s]", "", text.strip().removeprefix("the ")) for text in (answer, gold)]
    known = [_COUNTRIES.get(text.strip(" .").casefold().removeprefix("the "), text) for text in (answer, gold)]
    known = [_COUNTRIES.get(short.casefold(), text) for short, text in zip(plain, known, strict=True)]
    if known[0].casefold() == known[1].casefold():
        return True
    for short, text in ((plain[0], known[1]), (plain[1], known[0])):
        words = [word for word in re.split(r"[\s-]+", text.strip()) if word.casefold() not in _SMALL]
        if re.fullmatch("[A-Z]{2,6}", short) and len(words) > 1:
            return short == "".join(word[:1] for word in words).upper()
    return False


def same_person_or_thing(answer: str, gold: str) -> bool:
    """True for a middle name beside its initial, a name with and without River or Inc., and the plural of a common
    noun."""
    one, other = (re.sub(r"\.(?!\d)", "", _NAMED.sub("", text.strip(" ."))).split() for text in (answer, gold))
    if not one or not other:
        return False
    if len(one) == len(other) > 2:
        pairs = [(a.casefold(), b.casefold()) for a, b in zip(one, other, strict=True)]
        return pairs[0][0] == pairs[0][1] and pairs[-1][0] == pairs[-1][1] and all(map(_is_initial, pairs[1:-1]))
    one, other = ([word.casefold() for word in words] for words in (one, other))
    if (one == other and _NAMED.sub("", answer) != answer) or (one == other and _NAMED.sub("", gold) != gold):
        return True
    last = gold.split()[-1]
    is_noun = len(last) > 3 and last.isalpha() and last.islower() and one[:-1] == other[:-1] and one[-1].isalpha()
    return is_noun and one[-1].removesuffix("s") == other[-1].removesuffix("s")


def _is_initial(pair: tuple[str, str]) -> bool:
    short, long = sorted(pair, key=len)
    return short == long or (len(short) == 1 and long.startswith(short))


def same_value(answer: str, gold: str) -> bool:
    """True if both are the same date, amounts of the same quantity, or the same things joined by "and"."""
    answer, gold = (
        unicodedata.normalize("NFKC", text).casefold().strip(" \n").rstrip(" .\n") for text in (answer, gold)
    )
    answer, gold = (re.sub(r"(?<!\d)\.(?=\d)", "0.", text) for text in (answer, gold))
    for one, other in ((gold, answer), (answer, gold)):
        if (
            (found := _AMOUNT.fullmatch(_in_digits(_ABOUT.sub("", one))))
            and found["unit"] not in ("s", "%", None)
            and (_COUNTED.fullmatch(found["unit"]) if one is answer else isinstance(_unit(found["unit"])[1], tuple))
            and not (one is answer and re.fullmatch(r"1\d{3}|20\d\d", gold))
            and (alone := _quantity(other)) is not None
            and alone[1] == ""
        ):
            return _unit(found["unit"])[1] is not None and alone == _quantity(found["number"] + (found["times"] or ""))
    for meaning in (date_of, times_of_day, _quantity, _things):
        wanted = meaning(gold)
        if wanted and wanted == meaning(answer) and not (meaning is times_of_day and len(wanted) > 1):
            return " and " in gold or "&" in gold if meaning is _things else True
    return False


def in_short(normal_form: str) -> str:
    """A text in normal form with words as their abbreviations: "nineteenth" is "19th", "1914 to 1918" a span."""
    return rewritten(" ".join(_SHORT.get(word, word) for word in normal_form.split()), _IN_SHORT)


def other_currency(answer: str, gold: str) -> bool:
    """True if both texts show currencies and none is in both, or the answer alone is a percentage."""
    one, other = set(answer) & set(_CURRENCIES), set(gold) & set(_CURRENCIES)
    return bool(one and other and not one & other) or ("%" in answer and not re.search("%|per ?cent", gold))


def _quantity(text: str) -> tuple[Fraction, object] | None:
    """Sum of amounts in base units, and what they measure; None for other text."""
    if (share := number_of_words(text)) is not None and share.denominator > 1:
        return share, ""
    if re.fullmatch(r"\d{1,3}/[1-9]\d{0,2}", text):
        return Fraction(text), ""
    text = re.sub(r"\bper ?cent\b", "%", _ABOUT.sub("", text)).replace("degrees ", "°")
    if found := _CODE.match(text):
        text = f"{found[1]}{found[3]} {found[2].strip()}"
    sign = -1 if text.startswith(("-", "−", "minus ")) else 1
    text = _in_digits(text.removeprefix("minus ").lstrip("-− "))
    total, kinds, place = Fraction(0), set[object](), 0
    while place < len(text):
        found = _AMOUNT.match(text, place)
        if found is None:
            return None
        size, kind = _unit(found["unit"] or "")
        total += Fraction(found["number"].replace(",", "")) * _LARGE.get(found["times"] or "", 1) * size
        kinds.add(kind)
        place = found.end()
    several = len(list(_AMOUNT.finditer(text))) > 1
    if len(kinds) != 1 or None in kinds or (several and not isinstance(next(iter(kinds)), tuple)):
        return None
    return sign * total, kinds.pop()


def _unit(name: str) -> tuple[Fraction, object]:
    """Size and dimensions of a known unit, or 1 and the words of another; None for words that change a number."""
    if not name or name == "%":
        return Fraction(1), name
    name = {"°c": "celsius", "°celsius": "celsius", "°f": "fahrenheit", "°fahrenheit": "fahrenheit"}.get(name, name)
    unit = measure_of(name)
    if unit is None:
        return Fraction(1), None
    return (Fraction(unit.size), unit.dimensions) if unit.dimensions is not None else (Fraction(1), name)


def _in_digits(text: str) -> str:
    """The text with a number in words at its start as digits: "five million people" is "5 million people"."""
    words = text.split()
    for count in range(min(4, len(words)), 0, -1):
        number = number_of_words(" ".join(words[:count]))
        if number is not None and number.denominator == 1 and words[0].isalpha():
            return " ".join([str(number.numerator), *words[count:]])
    return text


def _things(text: str) -> list[str] | None:
    """Things joined by commas and "and", sorted; None for one thing and for a choice between several."""
    if _CHOICE.search(text):
        return None
    parts = [re.sub(r"^(?:an?|the)\s", "", part.strip()) for part in _BETWEEN.split(re.sub(r"^both\s+", "", text))]
    return sorted(parts) if len(parts) > 1 and all(parts) else None
