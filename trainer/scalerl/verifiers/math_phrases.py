r"""Phrases and rows of numbers that have one meaning in several forms.

in_one_form(r"n\in\mathbb{Z}^+")   ->  \text{positive integers} in_one_form(r"\text{Yes, it is}")  ->  \text{yes}
in_one_form("(2 3 1)")             ->  (1,2,3)                  in_one_form(r"\angle CBA")         ->  \text{angle ABC}
without_reason("5 (since x>0)")    ->  "5", "(since x>0)"       kind_of_numbers("all odd n")       ->  {"odd"}
"""

import re

from scalerl.verifiers.math_notation import TEXT

SHORT_WORDS = frozenset({"yes", "no", "true", "false", "none", "odd", "even", "dne", "nan"})
"""Runs of letters that are words in any spelling; others of up to five letters may be products of symbols."""
SYNONYMS = {
    "does not exist": "DNE", "undefined": "DNE", "not defined": "DNE", "convergent": "converges",
    "divergent": "diverges", "none": "no solution", "no real solution": "no solution",
    "no solutions": "no solution", "no real solutions": "no solution",
}  # fmt: skip
"""Phrases with the same meaning."""
_ROMAN = re.compile(r"[IVX]{2,}")
_POSITIVE = re.compile(
    r"(?:[a-z]\s*\\in\s*)?(?:\\mathbb\s*\{?Z\}?\s*(?:[\^_]\s*\{?\+\}?|_\s*\{\s*>\s*0\s*\})|\\mathbb\s*\{?N\}?\s*\^\s*\{?\*\}?)"
)
_DOES = "(?:is|are|was|were|does|do|did|can|will|has|have)"
_MONTH = "January|February|March|April|May|June|July|August|September|October|November|December"
_UNIT_VECTOR = re.compile(r"\s*([-+]?)\s*([^-+ijk]*?)\s*([ijk])\s*(?=[-+]|$)")
_PHRASES = [
    (re.compile(rf"(?:{TEXT}\{{)?\s*(?:{phrase})\s*\}}?", re.IGNORECASE), form)
    for phrase, form in (
        (rf"yes\s*[,.;:]\s*\w+ {_DOES}", r"\\text{yes}"),
        (rf"no\s*[,.;:]\s*\w+ {_DOES}(?: ?not|n(?:'|\^\{{\\prime\}})t)", r"\\text{no}"),
        (
            r"(?:the (?:statement|claim|assertion|limit|series|sequence|sum|integral)|it|this) (?:is )?"
            r"(?P<said>true|false|convergent|divergent|converges|diverges|does not exist|(?:un)?bounded|undefined)",
            r"\\text{\g<said>}",
        ),
        (
            r"(?:an? )?(?P<way>increase|decrease|profit|loss|gain|rise|fall|drop) (?:of|by)\s*\}?\s*"
            r"(?P<value>[^{}A-Za-z]*\d[^{}A-Za-z]*)",
            r"\g<value>\\text{ \g<way>}",
        ),
        (r"none of (?:these|the above)", r"\\text{none of these}"),
        (rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<month>{_MONTH})", r"\\text{\g<month> \g<day>}"),
        (rf"(?P<month>{_MONTH}) (?P<day>\d{{1,2}})(?:st|nd|rd|th)?", r"\\text{\g<month> \g<day>}"),
        (r"all real(?:s| numbers| values)(?: of)?(?:\s*\}?\s*[a-z])?", r"\\mathbb{R}"),
        (r"(?:the )?empty set", r"\\emptyset"),
        (r"between (?P<low>-?[\d.]+) and (?P<high>-?[\d.]+),? \(?inclusive\)?", r"[\g<low>,\g<high>]"),
        (r"(?:oui|sí|да|是的?|对|正确)", r"\\text{yes}"),
        (r"(?:nein|нет|否|不是|不对|错误?)", r"\\text{no}"),
        (r"(?:(?:此|该|原)?方程(?:组)?)?无(?:实数)?解", r"\\text{no solution}"),
        (
            r"(?:there (?:are|is)|(?:the (?:equation|system|inequality)|it) has) no (?:real )?solutions?",
            r"\\text{no solution}",
        ),
        (r"(?P<hit>\d+)\s*\}?\s*(?:\\text\s*\{)?\s*(?:in|out of)\s*\}?\s*(?P<all>\d+)", r"\\frac{\g<hit>}{\g<all>}"),
        (
            rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<month>{_MONTH}),? (?P<year>\d{{4}})",
            r"\\text{\g<month> \g<day>, \g<year>}",
        ),
        (
            rf"(?P<month>{_MONTH}) (?P<day>\d{{1,2}})(?:st|nd|rd|th)?,? (?P<year>\d{{4}})",
            r"\\text{\g<month> \g<day>, \g<year>}",
        ),
        (r"(?:on )?(?:an? )?(?P<day>mon|tue|wed|thu|fri|sat|sun)(?:s|nes|rs|r|ur)?(?:day)?s?", r"\\text{\g<day>day}"),
        (r"(?:(?:all )?(?:the )?integers|every integer)(?: [a-z])?", r"\\mathbb{Z}"),
        (
            r"all real(?:s| numbers) (?:except|but|other than)(?: for)?\s*\}?\s*(?P<value>-?[^{}A-Za-z]+?)",
            r"\\mathbb{R}\\setminus\\{\g<value>\\}",
        ),
        (
            r"(?:diverges to\s*)?(?:(?:positive )?infinity|infinite(?:ly many)?(?: solutions)?|\}?\s*\\infty)",
            r"\\infty",
        ),
    )
]
"""Phrases, perhaps typeset as text, and the form of each."""
_ANGLE = re.compile(r"\\(?:angle|measuredangle)\s*\{?\s*([A-Z]{3})\s*\}?")
_ROW = re.compile(r"\d{1,2}(?: +\d{1,2}){2,}")
_CYCLES = re.compile(r"(?:\(\s*\d{1,2}(?: +\d{1,2})+\s*\)\s*)+")
_CYCLE = re.compile(r"\(([\d ]+)\)")
_PART_AS_TEXT = re.compile(TEXT + r"\{\s*(\([a-e]\))\s*\}")
_PART = re.compile(
    r"\(([a-e])\)\s*([^()]*?)\s*(?:,|;|\\text\s*\{\s*,?\s*and\s*\}|(?<![A-Za-z])and(?![A-Za-z])|(?=\()|$)\s*"
)
_TRANSPOSED = re.compile(
    r"(?:\\begin\{[bp]matrix\}(?P<row>(?:(?!\\\\|\\end).)*)\\end\{[bp]matrix\}|[(\[](?P<tuple>[^()\[\]]*,[^()\[\]]*)[)\]])"
    r"\s*\^\s*\{?\s*(?:T|\\top|\\intercal|\\text\{T\}|\\mathrm\{T\})\s*\}?"
)
_LABELS = re.compile(
    rf"(?:{TEXT}\{{)?\s*[A-Z]{{1,3}}(?:\s*,\s*[A-Z]{{1,3}})*\s*,?(?:{TEXT}\{{)?\s*and(?![a-z])[\s}}{{]*(?:{TEXT}\{{)?[A-Z]{{1,3}}\s*\}}?"
)
_MULTIPLE = re.compile(
    r"(?P<times>-?(?:\d+|\\frac\{(?:\d+|\\sqrt\{\d+\})\}\{(?:\d+|\\sqrt\{\d+\})\}|\\sqrt\{\d+\}))\s*(?:\\cdot\s*)?"
    r"(?:\\begin\{[bp]matrix\}(?P<column>(?:(?!\\begin|\\end)[^&])*)\\end\{[bp]matrix\}"
    r"|\((?P<tuple>[^()]*,[^()]*)\))"
)
_FAMILY = re.compile(
    r"\\\{\s*(?P<value>[^{}|:]+?)\s*(?::|\\mid|\||\\text\{\s*where\s*\})\s*(?P<any>[a-z]\s*\\in\s*\\mathbb\s*\{?[ZN]\}?)\s*\\\}"
)
_ASSIGNED = re.compile(r"\s*\(?\s*([a-zA-Z])\s*=\s*([^=,;]+?)\s*\)?\s*")
_EITHER = re.compile(r"\\text\s*\{\s*,?\s*or\s*\}|(?<![A-Za-z])or(?![A-Za-z])|;")
_BOUND = {
    "greater than or equal to": r"\\ge", "less than or equal to": r"\\le", "at least": r"\\ge", "at most": r"\\le",
    "greater than": ">", "more than": ">", "less than": "<",
}  # fmt: skip
_BOUNDS = [
    (
        re.compile(
            rf"(?:{TEXT}\{{)?\s*(?:all real numbers|(?P<name>[a-z]))(?:\s*{TEXT}\{{|\s)\s*"
            rf"(?:is )?{words}\s*\}}?\s*(?P<value>[^a-zA-Z{{}}]+)\}}?"
        ),
        mark,
    )
    for words, mark in _BOUND.items()
]
_CASES = re.compile(r"\\begin\{cases\}(?P<rows>[^&]*)\\end\{cases\}")
_VECTOR = re.compile(
    r"\\begin\{[bp]matrix\}(?P<column>(?=.*\\\\)(?:(?!\\begin|\\end)[^&])*)\\end\{[bp]matrix\}"
    r"|\\langle(?P<row>(?:(?!\\[lr]angle)[^<>])*,(?:(?!\\[lr]angle)[^<>])*)\\rangle"
)
_MINUS_SET = re.compile(r"\\mathbb\s*\{R\}\s*-\s*\\\{")
_REASON = re.compile(
    rf"\s*(?:{TEXT}\{{)?\s*\(\s*(?:{TEXT}\{{)?\s*"
    r"(?:since|because|(?:reject|discard)(?:ing)?\s*(?!since|because|as|it|\)|\}\s*\))"
    r"|(?:a )?(?:double|repeated|triple) (?:real )?root|(?:with )?multiplicity|as required|as desired)(?!e?d).*$"
)
_CHEMICAL = re.compile(r"\d{0,2}(?:\(?(?:[A-Z][a-z]?\d{0,2})+\)?\d{0,2})+?(?P<charge>\^?\d?[+-])?")
_TEXT_OF_ELEMENTS = """
H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr Rb Sr Y Zr Nb Mo Ru
Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce W Re Os Ir Pt Au Hg Tl Pb Bi Po Rn Ra Th U Pu
"""
_ELEMENTS = frozenset(_TEXT_OF_ELEMENTS.split())
_KINDS = frozenset({"odd", "even", "integer", "number", "prime"})
_NEEDLESS = frozenset({"all", "every", "any", "is", "are"})


def in_one_form(text: str) -> str:
    """The whole text in one of its forms; the text itself if it has only this one."""
    if _POSITIVE.fullmatch(text):
        return r"\text{positive integers}"
    if text == r"\mathbf{R}":
        return r"\mathbb{R}"
    for phrase, form in _PHRASES:
        if found := phrase.fullmatch(text):
            return found.expand(form)
    if found := _ANGLE.fullmatch(text):
        return rf"\text{{angle {min(found[1], found[1][::-1])}}}"
    if found := _FAMILY.fullmatch(text):
        return f"{found['value']}, {found['any']}"
    for bound, mark in _BOUNDS:
        if found := bound.fullmatch(text):
            return found.expand(rf"{found['name'] or 'x'} {mark} \g<value>")
    if found := _LABELS.fullmatch(text):
        return ",".join(re.findall(r"[A-Z]+", re.sub(r"\\text\w*", "", text)))
    if found := _MULTIPLE.fullmatch(text):
        parts = found["column"].split(r"\\") if found["column"] else found["tuple"].split(",")
        parts = [part.strip() for part in parts if part.strip()]
        scaled = ",".join(rf"({found[1]})\cdot ({part})" for part in parts)
        return f"({scaled})"
    if tuples := _of_named(text):
        return tuples
    if found := _TRANSPOSED.fullmatch(text):
        return f"({(found['row'] or found['tuple']).replace('&', ',')})"
    if found := _VECTOR.fullmatch(text):
        parts = [
            part.strip() for part in re.split(r"\\\\(?:\[[^\]]*\])?", found["column"] or found["row"]) if part.strip()
        ]
        return f"({','.join(parts)})"
    along = {found[3]: found[1].strip("+") + (found[2] or "1") for found in _UNIT_VECTOR.finditer(text)}
    if len(along) > 1 and not _UNIT_VECTOR.sub("", text):  # 3i - 5j + k
        return f"({','.join(along.get(unit, '0') for unit in ('ijk' if 'k' in along else 'ij'))})"
    if found := _CASES.fullmatch(text):
        rows = [row.strip(" ,") for row in found["rows"].split(r"\\") if row.strip(" ,")]
        return ",".join(rows) if all("=" in row for row in rows) else text
    return _MINUS_SET.sub(r"\\mathbb{R}\\setminus\\{", _in_rows(text))


def _of_named(text: str) -> str:
    """Tuples for "x = 1, y = 2 or x = 2, y = 1"; "" for other text."""
    parts = [part for part in _EITHER.split(text) if part.strip(" ,")]
    if len(parts) < 2:
        return ""
    each = [[_ASSIGNED.fullmatch(one) for one in part.strip(" ,").split(",")] for part in parts]
    if not all(found for part in each for found in part):
        return ""
    named = [sorted((found[1], found[2]) for found in part if found) for part in each]
    if len({tuple(name for name, _ in part) for part in named}) != 1 or len({name for name, _ in named[0]}) < 2:
        return ""
    return ",".join(f"({','.join(value for _, value in part)})" for part in named)


def _in_rows(text: str) -> str:
    """Numbers apart, cycles of a permutation and answers to parts (a), (b) as tuples, which no product is."""
    if _ROW.fullmatch(text):
        return f"({','.join(text.split())})"
    if _CYCLES.fullmatch(text):
        return ",".join(_from_smallest(found[1].split()) for found in _CYCLE.finditer(text))
    text = _PART_AS_TEXT.sub(r"\1", text)
    parts = list(_PART.finditer(text)) if text.startswith("(a)") else []
    letters, whole = ("".join(part[group] for part in parts) for group in (1, 0))
    if len(parts) < 2 or whole != text or letters != "abcde"[: len(parts)] or not all(part[2] for part in parts):
        return text
    return f"({','.join(part[2].strip(' ,') for part in parts)})"


def _from_smallest(cycle: list[str]) -> str:
    """The cycle as a tuple that starts with its smallest number: (2 3 1) is (1 2 3)."""
    first = min(range(len(cycle)), key=lambda place: int(cycle[place]))
    return f"({','.join(cycle[first:] + cycle[:first])})"


def without_reason(text: str) -> tuple[str, str]:
    """The text without a reason in brackets at its end, and that reason."""
    found = _REASON.search(text)
    if not found or not found.start():
        return text, ""
    left = text[: found.start()]
    return left + "}" * (left.count("{") - left.count("}")), found[0].strip()


def kind_of_numbers(words: str) -> frozenset[str] | None:
    """The words that say which numbers are meant: "all odd n" and "odd numbers" are the odd ones; None for others."""
    bare = {re.sub(r"^(integer|number|prime)s$", r"\1", word) for word in words.lower().split()}
    if not bare & _KINDS:
        return None
    bare = {word for word in bare - _NEEDLESS if len(word) > 1}
    return frozenset(bare - {"integer", "number"} if bare & {"odd", "even", "prime"} else bare)


def chemical(text: str) -> str:
    r"""The formula of a substance, "H2SO4" for \mathrm{H_2SO_4} and \ce{H2SO4}; "" for other text: A_2B, C_1H."""
    bare = re.sub(rf"\\ce\s*|{TEXT}|[{{}}_\s]", "", text)
    elements, found = re.findall(r"[A-Z][a-z]?", bare), _CHEMICAL.fullmatch(bare)
    if found is None or not _ELEMENTS.issuperset(elements):
        return ""
    is_charged = found["charge"] and ("\\" in text or len(elements) > 1)
    return bare if is_charged or (len(set(elements)) > 1 and re.search(r"[A-Za-z)](?:[2-9]|1\d)", bare)) else ""


def may_be_a_product(word: str) -> bool:
    """True if letters may be adjacent symbols: abcd, AB, xy, but not even, Friday, no solution or ABC."""
    if _ROMAN.fullmatch(word):
        return False
    if all(len(part) <= 2 for part in word.split("-")) and " " not in word and "'" not in word:
        return word.lower() not in SHORT_WORDS
    if word.lower() in SHORT_WORDS or not word.isalpha() or len(word) > 5:
        return False
    if word.isupper() or word[1:] != word[1:].lower() or (word[0].isupper() and len(word) > 3):
        return False
    return len(word) == 3 or len(set(word)) == len(word)
