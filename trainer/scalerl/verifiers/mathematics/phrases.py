r"""Phrases and rows of numbers with the same meaning, brought into one form.

in_one_form(r"n\in\mathbb{Z}^+")   ->  \text{positive integers} in_one_form(r"\text{Yes, it is}")  ->  \text{yes}
in_one_form("(2 3 1)")             ->  (1,2,3)                  in_one_form(r"\angle CBA")         ->  \text{angle ABC}
without_reason("5 (since x>0)")    ->  "5", "(since x>0)"       kind_of_numbers("all odd n")       ->  {"odd"}
"""

import re

from scalerl.verifiers.mathematics.notation import TEXT, rewritings

SHORT_WORDS = frozenset({"yes", "no", "true", "false", "none", "odd", "even", "dne", "nan"})
"""Runs of letters that are words in any spelling; others of up to five letters may be products of symbols."""
SYNONYMS = {
    "does not exist": "DNE", "undefined": "DNE", "not defined": "DNE", "convergent": "converges",
    "divergent": "diverges", "none": "no solution",
}  # fmt: skip
"""Phrases with the same meaning."""
NO_SOLUTION = (
    r"no (?:(?:(?:real|integer|such|valid|positive) )*(?:solutions?|roots?|zeros?)|(?:such|valid|possible) [a-z]+)"
    r"(?: (?:exists?|(?:is|are) possible))?"
)
_ROMAN = re.compile(r"[IVX]{2,}")
_DOES = "(?:is|are|was|were|does|do|did|can|will|has|have)"
_UNIT_VECTOR = re.compile(r"\s*([-+]?)\s*([^-+ijk]*?)\s*([ijk])\s*(?=[-+]|$)")
_PHRASES = (
    (rf"yes\s*[,.;:]\s*\w+ {_DOES}", r"\\text{yes}"),
    (rf"no\s*[,.;:]\s*\w+ {_DOES}(?: ?not|n(?:'|\^\{{\\prime\}})t)", r"\\text{no}"),
    (
        r"(?:the (?:statement|claim|assertion|limit|series|sequence|sum|integral)|it|this) (?:is )?"
        r"(true|false|convergent|divergent|converges|diverges|does not exist|(?:un)?bounded|undefined)",
        r"\\text{\1}",
    ),
    (
        r"(?:an? )?(increase|decrease|profit|loss|gain|rise|fall|drop) (?:of|by)\s*\}?\s*([^{}A-Za-z]*\d[^{}A-Za-z]*)",
        r"\2\\text{ \1}",
    ),
    (r"none of (?:these|the above)", r"\\text{none of these}"),
    (r"all real(?:s| numbers| values)(?: of)?(?:\s*\}?\s*[a-z])?", r"\\mathbb{R}"),
    (r"(?:the )?empty set", r"\\emptyset"),
    (r"between (-?[\d.]+) and (-?[\d.]+),? \(?inclusive\)?", r"[\1,\2]"),
    (r"(?:oui|sí|да|是的?|对|正确)", r"\\text{yes}"),
    (r"(?:nein|нет|否|不是|不对|错误?)", r"\\text{no}"),
    (
        r"(?:(?:此|该|原)?方程(?:组)?)?无(?:实数)?解"
        rf"|(?:(?:there (?:are|is|exists?)|(?:the (?:equation|system|inequality)|it) has) )?{NO_SOLUTION}",
        r"\\text{no solution}",
    ),
    (r"(\d+)\s*\}?\s*(?:\\text\s*\{)?\s*(?:in|out of)\s*\}?\s*(\d+)", r"\\frac{\1}{\2}"),
    (r"(?:on )?(?:an? )?(mon|tue|wed|thu|fri|sat|sun)(?:s|nes|rs|r|ur)?(?:day)?s?", r"\\text{\1day}"),
    (r"(?:(?:all )?(?:the )?integers|every integer)(?: [a-z])?", r"\\mathbb{Z}"),
    (
        r"all real(?:s| numbers) (?:except|but|other than)(?: for)?\s*\}?\s*(-?[^{}A-Za-z]+?)",
        r"\\mathbb{R}\\setminus\\{\1\\}",
    ),
    (
        r"(?:diverges to\s*)?(?:(?:positive )?infinity|infinite(?:ly many)?(?: solutions)?|\}?\s*\\infty)",
        r"\\infty",
    ),
)
"""Phrases in any capitals, perhaps typeset as text, and the form of each."""
_BOUND = {
    "greater than or equal to": r"\ge", "less than or equal to": r"\le", "at least": r"\ge", "at most": r"\le",
    "greater than": ">", "more than": ">", "less than": "<",
}  # fmt: skip
_COLUMN = r"\\begin\{[bp]matrix\}((?:(?!\\begin|\\end)[^&])*)\\end\{[bp]matrix\}"
_FORMS = rewritings(
    (
        r"(?:[a-z]\s*\\in\s*)?(?:\\mathbb\s*\{?Z\}?\s*(?:[\^_]\s*\{?\+\}?|_\s*\{\s*>\s*0\s*\})"
        r"|\\mathbb\s*\{?N\}?\s*\^\s*\{?\*\}?)",
        r"\\text{positive integers}",
    ),
    (r"\\mathbf\{R\}", r"\\mathbb{R}"),
    *((rf"(?i:(?:{TEXT}\{{)?\s*(?:{phrase})\s*\}}?)", form) for phrase, form in _PHRASES),
    (
        r"\\(?:angle|measuredangle)\s*\{?\s*([A-Z]{3})\s*\}?",
        lambda found: rf"\text{{angle {min(found[1], found[1][::-1])}}}",
    ),
    (
        r"\\\{\s*([^{}|:]+?)\s*(?::|\\mid|\||\\text\{\s*where\s*\})\s*([a-z]\s*\\in\s*\\mathbb\s*\{?[ZN]\}?)\s*\\\}",
        r"\1, \2",
    ),
    (
        rf"(?:{TEXT}\{{)?\s*(?:all real numbers|([a-z]))(?:\s*{TEXT}\{{|\s)\s*"
        rf"(?:is )?({'|'.join(_BOUND)})\s*\}}?\s*([^a-zA-Z{{}}]+)\}}?",
        lambda found: f"{found[1] or 'x'} {_BOUND[found[2]]} {found[3]}",
    ),
    (
        rf"(?:{TEXT}\{{)?\s*[A-Z]{{1,3}}(?:\s*,\s*[A-Z]{{1,3}})*\s*,?(?:{TEXT}\{{)?\s*and(?![a-z])[\s}}{{]*"
        rf"(?:{TEXT}\{{)?[A-Z]{{1,3}}\s*\}}?",
        lambda found: ",".join(re.findall(r"[A-Z]+", re.sub(r"\\text\w*", "", found[0]))),
    ),
    (
        r"(-?(?:\d+|\\frac\{(?:\d+|\\sqrt\{\d+\})\}\{(?:\d+|\\sqrt\{\d+\})\}|\\sqrt\{\d+\}))\s*(?:\\cdot\s*)?"
        rf"(?:{_COLUMN}|\(([^()]*,[^()]*)\))",
        lambda found: _tuple(found[2], found[3], times=found[1]),
    ),
    (r".*", lambda found: _of_named(found[0])),
    (
        r"(?:\\begin\{[bp]matrix\}((?:(?!\\\\|\\end).)*)\\end\{[bp]matrix\}|[(\[]([^()\[\]]*,[^()\[\]]*)[)\]])"
        r"\s*\^\s*\{?\s*(?:T|\\top|\\intercal|\\text\{T\}|\\mathrm\{T\})\s*\}?",
        lambda found: f"({(found[1] or found[2]).replace('&', ',')})",
    ),
    (
        rf"(?=.*(?:\\\\|\\langle)){_COLUMN}|\\langle((?:(?!\\[lr]angle)[^<>])*,(?:(?!\\[lr]angle)[^<>])*)\\rangle",
        lambda found: f"({found[2].strip()})" if found[1] is None else _tuple(found[1]),
    ),
    (r".*", lambda found: _along(found[0])),
    (r"\\begin\{cases\}([^&]*)\\end\{cases\}", lambda found: _equations(found[1])),
    (r"\d{1,2}(?: +\d{1,2}){2,}", lambda found: f"({','.join(found[0].split())})"),
    (r"(?:\(\s*\d{1,2}(?: +\d{1,2})+\s*\)\s*)+", lambda found: _cycles(found[0])),
)
"""Forms of a whole text; the first match counts; "" leaves the text to later ones."""
_PART = re.compile(
    r"\(([a-e])\)\s*([^()]*?)\s*(?:,|;|\\text\s*\{\s*,?\s*and\s*\}|(?<![A-Za-z])and(?![A-Za-z])|(?=\()|$)\s*"
)
_ASSIGNED = re.compile(r"\s*\(?\s*([a-zA-Z])\s*=\s*([^=,;]+?)\s*\)?\s*")
_EITHER = re.compile(r"\\text\s*\{\s*,?\s*or\s*\}|(?<![A-Za-z])or(?![A-Za-z])|;")
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
    for pattern, form in _FORMS:
        if (found := pattern.fullmatch(text)) and (new := found.expand(form) if isinstance(form, str) else form(found)):
            return new
    return re.sub(r"\\mathbb\s*\{R\}\s*-\s*\\\{", r"\\mathbb{R}\\setminus\\{", _of_parts(text))


def _tuple(column: str | None, row: str | None = None, *, times: str = "") -> str:
    """A column or row of values as a tuple, each multiplied by a factor if there is one."""
    parts = row.split(",") if column is None and row else re.split(r"\\\\(?:\[[^\]]*\])?", column or "")
    parts = [part.strip() for part in parts if part.strip()]
    scaled = [rf"({times})\cdot ({part})" for part in parts] if times else parts
    return f"({','.join(scaled)})"


def _along(text: str) -> str:
    """A tuple for 3i - 5j + k; "" for other text."""
    along = {found[3]: found[1].strip("+") + (found[2] or "1") for found in _UNIT_VECTOR.finditer(text)}
    if len(along) < 2 or _UNIT_VECTOR.sub("", text):
        return ""
    return f"({','.join(along.get(unit, '0') for unit in ('ijk' if 'k' in along else 'ij'))})"


def _equations(rows: str) -> str:
    """Equations below each other as a list; "" if another row is among them."""
    parts = [row.strip(" ,") for row in rows.split(r"\\") if row.strip(" ,")]
    return ",".join(parts) if all("=" in part for part in parts) else ""


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


def _cycles(text: str) -> str:
    """Cycles of a permutation as tuples that start with their smallest number: (2 3 1) is (1 2 3)."""
    cycles = [found.split() for found in re.findall(r"\(([\d ]+)\)", text)]
    first = [min(range(len(cycle)), key=lambda place, cycle=cycle: int(cycle[place])) for cycle in cycles]
    return ",".join(f"({','.join(cycle[at:] + cycle[:at])})" for cycle, at in zip(cycles, first, strict=True))


def _of_parts(text: str) -> str:
    """Answers to parts (a), (b) as a tuple, which no product is."""
    text = re.sub(TEXT + r"\{\s*(\([a-e]\))\s*\}", r"\1", text)
    parts = list(_PART.finditer(text)) if text.startswith("(a)") else []
    letters, whole = ("".join(part[group] for part in parts) for group in (1, 0))
    if len(parts) < 2 or whole != text or letters != "abcde"[: len(parts)] or not all(part[2] for part in parts):
        return text
    return f"({','.join(part[2].strip(' ,') for part in parts)})"


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
    """True if letters may be adjacent symbols: AB, mgh, xyz, dcba, uvwz, but not act, even, no solution or ABC."""
    letters = re.sub(r"(?<![A-Za-z])([A-Za-z]{1,2})-(?=[A-Za-z]{1,2}(?![A-Za-z]))", r"\1", word)
    if word.lower() in SHORT_WORDS or _ROMAN.fullmatch(word) or not letters.isalpha():
        return False
    places = sorted(map(ord, letters))
    are_symbols = places == [*range(places[0], places[0] + len(places))] or min(letters) >= "s"
    is_no_word = are_symbols or not set("aeiouAEIOU").intersection(letters)
    return len(word) <= 2 or (len(word) <= 5 and is_no_word and not word.isupper())
