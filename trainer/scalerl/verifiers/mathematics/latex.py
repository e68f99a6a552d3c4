r"""Values rewritten for the parser, which does not read all usual forms.

as_latex("1 000")  ->  "1000"      as_latex("2 1/3")  ->  r"(2+\frac{1}{3})"      as_latex("3e5")  ->  r"3\times 10^{5}"
"""

import re

from scalerl.verifiers.mathematics.notation import TEXT, rewritings, rewritten

_CALCULUS = re.compile(r"\\int|\\frac\s*\{\s*d|\\partial|\\mathrm\s*\{d\}|d\s*/\s*d")
_LETTERS = re.compile(r"\\sqrt|\\[A-Za-z]+(?:\s*\{[A-Za-z* ]*\})?|_\{?[A-Za-z]+\}?|\{[a-z]*matrix\*?\}|[A-Za-z]+")
MOST_TERMS = 100
"""Maximum number of terms for which a list such as 1, 2, ..., 10 is written in full."""
MIXED_NUMBER = re.compile(r"(?<![\w.^{})])(\d{1,9}) +(\d{1,9}) ?/ ?(\d{1,9})(?![\w.^({])")
ANGLE_IN_DEGREES = re.compile(r"(\d+(?:\.\d+)?)\s*\^\s*\{?\s*\\circ\s*\}?")


def as_latex(text: str) -> str:
    """Numbers rewritten for the parser, which does not read all usual forms."""
    text = rewritten(text, _WRITTEN)
    with_differentials = bool(_CALCULUS.search(text))
    text = _LETTERS.sub(lambda run: _as_symbols(run[0], with_differentials), text)
    return rewritten(text, _FORMS).strip()


def _as_symbols(letters: str, with_differentials: bool) -> str:
    """Letters in which I is no imaginary unit and d no differential, as the parser would read the dc of dcba."""
    if letters[0] in "\\_{" or letters in ("and", "mod", "odd"):
        return letters
    letters = letters if with_differentials else letters.replace("d", " d_{0} ")
    return letters.replace("I", r" \mathrm{I} ")


def _cis(found: re.Match[str]) -> str:
    """cos t + i sin t for cis t."""
    angle = found["angle"]
    angle = angle[1:-1] if angle[0] in "({" else angle
    return rf"(\cos({angle}) + i \sin({angle}))"


def _listed_in_full(found: re.Match[str]) -> str:
    """All terms of 1, 2, ..., 10, if there are few of them."""
    terms = [int(one) for one in found["first"].split(",")]
    step, last = terms[1] - terms[0], int(found["last"])
    whole = list(range(terms[0], last + (step > 0) - (step < 0), step)) if step else []
    is_one = whole[: len(terms)] == terms and whole[-1] == last and len(whole) <= MOST_TERMS
    return ",".join(map(str, whole)) if is_one else found[0]


def _matrix(match: re.Match[str]) -> str:
    """Rows in brackets, [[1,2],[3,4]], as a matrix."""
    rows = r"\\".join(row.replace(",", "&") for row in re.findall(r"\[([^\[\]]*)\]", match[1]))
    return rf"\begin{{bmatrix}}{rows}\end{{bmatrix}}"


def _combinations(match: re.Match[str]) -> str:
    """C_5^2, the ways to choose two of five; C_2^5 and C_1^1 may be powers of constants."""
    of, chosen = match.groups()
    return rf"\binom{{{of}}}{{{chosen}}}" if int(of) > max(2, int(chosen)) else match[0]


def _repeating(match: re.Match[str]) -> str:
    """Repeating decimal as a fraction: 0.1\\overline{6} is (16 - 1) / 90."""
    whole, start, period = match.groups()
    numerator = int(whole + start + period) - int("0" + whole + start)
    return rf"\frac{{{numerator}}}{{{(10 ** len(period) - 1) * 10 ** len(start)}}}"


_WRITTEN = rewritings(
    (rf"(?<=\d)\s*\^?\{{?(?:{TEXT}\{{)?(?:st|nd|rd|th)\}}{{0,2}}$", ""),  # 3rd
    (r"^[-+]?\d{1,3}(?: \d{3})+(?:\.\d+)?$", lambda found: found[0].replace(" ", "")),  # 1 000
    (MIXED_NUMBER.pattern, r"(\1+\\frac{\2}{\3})"),
    (r"^\\\{\s*[a-z]\s*(?:\\in\s*\\mathbb\{R\}\s*)?(?::|\\mid|\|)(.*)\\\}$", r"\1"),  # {x : x > 0}
    (
        rf"(?<=[A-Za-z}}])\s*\^\s*\{{?\s*(?:T|\\top|\\intercal|\\mathsf\s*\{{\s*T\s*\}}"
        rf"|{TEXT}\{{\s*T\s*\}}|\\mathsf T)\s*\}}?(?!\w)",
        "^{t_{ranspose}}",
    ),
    (rf"{TEXT}\{{\s*([A-Za-z])\s*\}}", r" \1 "),
)
_FORMS = rewritings(
    (
        r"(?<![\d.])(\d*)\.(\d*?)(?:(\d)\3\3+|(\d{2,9}?)\4+)\s*\\dots(?!\s*[\d,])",
        r"\1.\2\\overline{\3\4}",
    ),  # 0.333...
    (r"\\dot\s*\{?(\d)\}?(\d*)\\dot\s*\{?(\d)\}?", r"\\overline{\1\2\3}"),  # 0.\dot{3}\dot{6}
    (r"^(-?\d+\.\d*)\((\d+)\)$", r"\1\\overline{\2}"),  # 0.(36)
    (r"(\d*)\.(\d*)\\(?:overline|bar|dot)\s*\{?(\d+)\}?", _repeating),  # 0.\overline{3}
    (r"\[\s*(\[[^\[\]]*\](?:\s*,\s*\[[^\[\]]*\])+)\s*\]", _matrix),  # [[1,2],[3,4]]
    (
        r"(?P<first>-?\d{1,6}(?:\s*,\s*-?\d{1,6})+)\s*,\s*\\dots\s*,\s*(?P<last>-?\d{1,6})(?![\d.^/])",
        _listed_in_full,
    ),
    (
        r"(?:\\(?:operatorname|text|mathrm)\s*\{\s*cis\s*\}|\\cis|(?<![A-Za-z\\])cis)\s*"
        r"(?P<angle>\([^()]*\)|\{[^{}]*\}|[\d.]+\s*\^\s*\{?\s*\\circ\s*\}?|\\frac\s*\{[^{}]*\}\s*\{[^{}]*\}|\\[a-z]+(?![a-z])|[a-z])",
        _cis,
    ),
    (r"\\sqrt\s*\[\s*([3579])\s*\]\s*\{\s*-\s*(\d+|\\frac\{\d+\}\{\d+\})\s*\}", r"-\\sqrt[\1]{\2}"),  # \sqrt[3]{-8}
    (r"(?<![A-Za-z\\_^])C\s*\(\s*([\w+-]+)\s*,\s*([\w+-]+)\s*\)", r"\\binom{\1}{\2}"),  # C(6,2)
    (r"(?<![A-Za-z\\_^])C_\{?(\d+)\}?\s*\^\s*\{?(\d+)\}?", _combinations),  # C_6^2
    (r"^(\d+) ?C ?(\d+)$", r"\\binom{\1}{\2}"),  # 6C2
    (r"\{?([^{}]+)\\choose([^{}]+)\}?", r"\\binom{\1}{\2}"),  # {6 \choose 2}
    (r"(?:\{\}|(?<![\w}]))[_^]\s*\{?(\w+)\}?\s*C_\s*\{?(\w+)\}?", r"\\binom{\1}{\2}"),  # ^6C_2
    (ANGLE_IN_DEGREES.pattern, r"(\\frac{\1\\pi}{180})"),  # 90^\circ
    (r"\\([gG])amma(?![A-Za-z(])(?!\s*\()", r"\1_{amma}"),  # the symbol, not the function
    (r"\\langle(.*?)\\rangle", r"(\1)"),
    (r"(?<=\d)i(?![A-Za-z])|(?<![A-Za-z\\])i(?=[a-z](?![A-Za-z]))", " i "),  # 2i, ix
)
