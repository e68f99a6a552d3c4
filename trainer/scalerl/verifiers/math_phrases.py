r"""Phrases and rows of numbers that have one meaning in several forms.

in_one_form(r"n\in\mathbb{Z}^+")   ->  \text{positive integers} in_one_form(r"\text{Yes, it is}")  ->  \text{yes}
in_one_form("(2 3 1)")             ->  (1,2,3)                  in_one_form(r"\angle CBA")         ->  \text{angle ABC}
without_reason("5 (since x>0)")    ->  "5", "(since x>0)"       kind_of_numbers("all odd n")       ->  {"odd"}
"""

import re

from scalerl.verifiers.math_notation import TEXT

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
        (r"none of (?:these|the above)", r"\\text{none of these}"),
        (rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? (?P<month>{_MONTH})", r"\\text{\g<month> \g<day>}"),
        (rf"(?P<month>{_MONTH}) (?P<day>\d{{1,2}})(?:st|nd|rd|th)?", r"\\text{\g<month> \g<day>}"),
        (r"all real(?:s| numbers)(?: [a-z])?", r"\\mathbb{R}"),
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
_CASES = re.compile(r"\\begin\{cases\}(?P<rows>[^&]*)\\end\{cases\}")
_VECTOR = re.compile(
    r"\\begin\{[bp]matrix\}(?P<column>(?=.*\\\\)(?:(?!\\begin|\\end)[^&])*)\\end\{[bp]matrix\}"
    r"|\\langle(?P<row>(?:(?!\\[lr]angle)[^<>])*,(?:(?!\\[lr]angle)[^<>])*)\\rangle"
)
_MINUS_SET = re.compile(r"\\mathbb\s*\{R\}\s*-\s*\\\{")
_REASON = re.compile(
    rf"\s*(?:{TEXT}\{{)?\s*\(\s*(?:{TEXT}\{{)?\s*"
    r"(?:since|because|(?:reject|discard)(?:ing)?\s*(?!since|because|as|it|\)|\}\s*\))"
    r"|as required|as desired)(?!e?d).*$"
)
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
