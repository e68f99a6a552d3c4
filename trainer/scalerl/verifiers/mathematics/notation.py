r"""One notation for many ways of writing: Unicode marks, spacing, currency, outer brackets.

tidy("**\$1,250**")  ->  "1,250\text{ dollar}"      tidy("\left( ２½ \right)")  ->  "(2 1/2)"
"""

import re
import unicodedata
from collections.abc import Callable
from html import unescape
from itertools import accumulate

TEXT = r"\\(?:text(?:bf|it|rm|sf|tt|normal|up)?|math(?:rm|bf|sf|it|tt|normal)|mbox|hbox|operatorname)\s*"
"""A command that typesets its argument as text."""

Rewriting = tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]


def rewritings(*rows: tuple[str, str | Callable[[re.Match[str]], str]]) -> list[Rewriting]:
    """A table of patterns with their replacements; a later row sees the output of earlier ones."""
    return [(re.compile(pattern), form) for pattern, form in rows]


def rewritten(text: str, table: list[Rewriting]) -> str:
    """The text after all rows of a table."""
    for pattern, form in table:
        text = pattern.sub(form, text)
    return text


_MARKS = {
    "−": "-", "–": "-", "—": "-", "―": "-", "‐": "-", "‑": "-", "‒": "-", "×": r"\times ", "⋅": r"\cdot ",
    "·": r"\cdot ", "∙": r"\cdot ", "•": r"\cdot ", "÷": r"\div ", "∕": "/", "⁄": "/", "∞": r"\infty ", "°": r"^\circ ",
    "º": r"^\circ ", "˚": r"^\circ ", "℃": r"^\circ \text{C}", "℉": r"^\circ \text{F}", "≤": r"\le ", "≥": r"\ge ",
    "⩽": r"\le ", "⩾": r"\ge ", "≠": r"\ne ", "±": r"\pm ", "∓": r"\mp ", "∪": r"\cup ", "∩": r"\cap ", "∈": r"\in ",
    "≈": r"\approx ", "≡": r"\equiv ", "∅": r"\emptyset ", "∠": r"\angle ", "△": r"\triangle ", "ℝ": r"\mathbb{R}",
    "ℤ": r"\mathbb{Z}", "ℕ": r"\mathbb{N}", "ℚ": r"\mathbb{Q}", "′": "'", "’": "'", "‘": "'", "″": "''", "¢": " cents",
    "✓": "", "✔": "", "✅": "", "\ufe0f": "", "“": '"', "”": '"', "、": ",", "∶": ":", "∣": "|", "…": r"\dots ",
    "：": ":", "。": ".", "《": "", "⟨": r"\langle ", "⟩": r"\rangle ",
}  # fmt: skip
_GREEK = {
    letter: f"\\{name.lower() if letter.islower() else name.capitalize()} "
    for letter in "αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΠΣΦΨΩ"
    for name in [unicodedata.name(letter).split()[-1].replace("LAMDA", "LAMBDA")]
}
_COMMANDS = {
    r"\nicefrac": r"\frac", r"\sfrac": r"\frac", r"\ensuremath": "", r"\mathcal{O}(": "O(",
    r"\mathbb{R}^+": r"(0,\infty)", r"\mathbb{R}^{+}": r"(0,\infty)", r"\bmod": r"\mod", r"\dfrac": r"\frac",
    r"\tfrac": r"\frac", r"\cfrac": r"\frac", r"\displaystyle": "", r"\textstyle": "", r"\varnothing": r"\emptyset ",
    r"\leqslant": r"\le ", r"\geqslant": r"\ge ", r"\leq": r"\le", r"\geq": r"\ge", r"\neq": r"\ne", r"\lbrace": r"\{",
    r"\rbrace": r"\}", r"\degree": r"^\circ ", r"\textdegree": r"^\circ ", r"\quad": " ", r"\qquad": " ",
    r"\thinspace": " ", r"\nobreak": "", r"\large": "", r"\Large": "", r"\LARGE": "", r"\huge": "", r"\Huge": "",
    r"\small": "", r"\normalsize": "", r"\boldsymbol": "", r"\bm": "", r"\pmb": "", r"\rm": "", r"\bf": "", r"\it": "",
    r"\not=": r"\ne ", r"\underline": "", r"\emph": "", r"\rightarrow": r"\to", r"\lnot": r"\neg", r"\mid": "|",
    r"\wedge": r"\land", r"\vee": r"\lor", r"\lVert": r"\|", r"\rVert": r"\|",
    r"\lg": r"\log_{10}",
    r"\log_e": r"\ln ", r"\log_{e}": r"\ln ", r"\not =": r"\ne ", r"\limits": "", r"\mathstrut": "", r"\enspace": " ",
    r"\tan^{-1}": r"\arctan", r"\sin^{-1}": r"\arcsin", r"\cos^{-1}": r"\arccos", r"\colon": ":", r"\ratio": ":",
    r"\mathbb Z": r"\mathbb{Z}", r"\mathbb R": r"\mathbb{R}", r"\mathbb N": r"\mathbb{N}", "~": " ", r"\euro": "€",
    r"\blacksquare": "",
    r"\pounds": "£", r"\textsterling": "£", r"\texteuro": "€", r"\cents": r"\text{ cents}", r"\cent": r"\text{ cents}",
    r"\rupee": "₹", r"\lt": "<", r"\gt": ">", "<=": r"\le ",
    ">=": r"\ge ", r"\dotsc": r"\dots", r"\ldots": r"\dots", r"\cdots": r"\dots",
}  # fmt: skip
_SCRIPTS = rewritings(
    (r"(\d*)\s*([¼½¾⅐-⅞])", lambda found: f"{found[1]} {_fraction(found[2])}".lstrip()),
    ("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ]+", lambda found: f"^{{{_normal(found[0])}}}"),
    ("[₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎]+", lambda found: f"_{{{_normal(found[0])}}}"),
)
_ROOTS = rewritings((r"([√∛∜])\s*(?:\(([^()]*)\)|\{([^{}]*)\}|(\d+(?:\.\d+)?|[A-Za-z]))", lambda found: _root(found)))
_LAYOUT = rewritings(
    (r"(?<=\d),\\!\s*(?=\d{3}(?!\d))", ""),
    (r"\\(?:left|right|[bB]igg?[lr]?)\s*(?=[\\(){}\[\]|.<>/])\.?", ""),
    (r"\\(?:[hv]space\*?|[vh]?phantom|(?:text)?color|tag|label)\s*\{[^{}]*\}", ""),
    (r"(?<=\d)(?:\\,|\{,\}|\\ |')(?=\d{3}(?!\d))", ""),
    (
        "|".join(
            re.escape(name) + ("(?![A-Za-z])" if name[-1].isalpha() else "")
            for name in sorted(_COMMANDS, key=len, reverse=True)
        ),
        lambda found: _COMMANDS[found[0]],
    ),
    (r"\*\*", "^"),
)
MOST_MARKS = 4
"""Maximum nesting of Markdown marks."""
_SEPARATED = re.compile(r"\d(?:,\s|;|\s*(?:\\text\s*\{\s*)?(?:and|or)\b)")
_BOLD = re.compile(r"(?<![*\w])(\*\*|__|\*|`)(?=\S)([^*`\n]{1,500}?)(?<=\S)\1(?![*\w])")
_HTML = re.compile(r"<su([bp])>([^<>]{1,100})</su\1>|&[a-z]{2,6};")
_BOLD_TAG = re.compile(r"</?(?:b|strong|i|em|u|p|span)>")
_DELIMITERS = rewritings((r"\\?\$|(?<!\\)\\[()\[\]!]", ""), (r"(?<!\\)\\[ ,;:>]", " "))
_SYMBOL = r"(\\(?:pi|alpha|beta|gamma|theta|phi|varphi|lambda|mu|omega)(?![A-Za-z])|[A-Za-z0-9])"
_TEN_TO = {"百": 2, "千": 3, "万": 4, "亿": 8}
_CURRENCY = {"$": "dollar", "€": "€", "£": "£", "¥": "¥", "₹": "₹"}
_IN_FRONT = re.compile(
    r"^(?P<sign>-?)\s*(?:(?:US|A|C)?(?P<mark>\\?\$|€|£|¥|₹)|(?P<code>USD|EUR|GBP|INR|Rs\.?)\s)\s*(?P<number>-?[\d.][\d.,]*(?:\{,\}\d{3})*)(?P<rest>[^$]*)$"
)
_LARGE = re.compile(
    r"\s*(?:\\text\s*\{\s*)?(?P<times>hundred|thousand|million|billion|trillion)(?![A-Za-z])\s*\}?\s*(?P<rest>.*)"
)
_SHORT_LARGE = {"k": "thousand", "m": "million", "b": "billion", "bn": "billion"}
_BEHIND = re.compile(r"(?<=[\d}])\s*(€|£|¥|₹)$")
_DOLLAR_BEHIND = re.compile(r"^[^$]*\d\s*\\?\$$")
_TRAILING = re.compile(r"(?:\s*(?:[,;:?。]|\\text\s*\{[\s.,]*\}|\\(?![A-Za-z%${}|,;:!]))|\s+!)+$")
_INVISIBLE = re.compile("[\U0001f300-\U0001faff\u200b-\u200f\u2060\ufeff\u00ad]")
_LEADING = re.compile(
    r"^(?:\s|=|:(?!\d)|\\(?:approx|equiv|sim|simeq|implies|Rightarrow|Longrightarrow|therefore|to|rightarrow)(?![A-Za-z])|~)+"
)
_FORMS = rewritings(
    (r"(?<=[\[(])([^\[\](){},;]+);([^\[\](){},;]+)(?=[\])\[])", r"\1,\2"),
    (rf"(?<=[-+]\s|\S[-+])(?:{TEXT}\{{\s*)?[Cc]onst(?:ant)?\.?\s*\}}?$", "C"),
    (r"\\(max|min|gcd|lcm)\s*\\\{([^{}]*)\\\}", r"\\\1(\2)"),
    (r"(?<![A-Za-z\\])sqrt\s*(?:\(([^()]*)\)|\{([^{}]*)\}|(\d+))", r"\\sqrt{\1\2\3}"),
    (r"\\sqrt\s*\(([^()]*)\)", r"\\sqrt{\1}"),
    (r"\\lor\s*(?=[a-z]\s*=)", r"\\text{ or }"),
    (rf"(?:{TEXT}\{{\s*)?([或和])\s*\}}?", lambda found: rf"\text{{ {'or' if found[1] == '或' else 'and'} }}"),
    (r"\\(?:bar|overline)\s*\{?\s*([A-Za-z])(?![A-Za-z])\s*\}?", r"\\overline{\1}"),
    (
        r"\\frac\s*\{\s*(?:d|\\mathrm\s*\{d\})\s*([a-z])\s*\}\s*\{\s*(?:d|\\mathrm\s*\{d\})\s*x\s*\}(?=\s*=)",
        r"\1^{\\prime}",
    ),
    (r"\\mathcal\s*\{?\s*N\s*\}?\s*(?=\()", "N"),
    (r"\{\}(?=\^)", ""),
    (rf"^(?:{TEXT}\{{\s*)?0x([\dA-Fa-f]+)\s*\}}?$", lambda found: f"{found[1].upper()}_{{16}}"),
    (r"^([a-z])_\{?1\}?\s*=\s*\1_\{?2\}?\s*=", r"\1="),
    (r"\\begin\{(aligned|align\*?|gathered|split)\}((?:(?!\\begin).)*)\\end\{\1\}", lambda found: _rows(found[2])),
    (r"\\\{\s*\\begin\{array\}\s*\{[lcr]\}((?:(?!\\begin).)*)\\end\{array\}$", lambda found: _rows(found[1])),
    (r"(?<=[\d})])\s*\\angle\s*(?:\(([^()]*)\)|([^()]+))$", r"\\cis(\1\2)"),
    (r"\\(?:vec|mathbf)\s*(?:\{\s*([a-hl-z])\s*\}|(?<=[ c])([a-hl-z])(?![A-Za-z]))", r" \1\2 "),
    (r"\\(?:num|ang|SI|qty)\s*\{([^{}]*)\}(?:\s*\{([^{}]*)\})?", lambda found: _si(found)),
    (rf"(?<=[\d}}])(?:\s+|\s*{TEXT}\{{\s*([kMm]?)\s*\}}?\s*)\\Omega\s*\}}?$", r"\\text{ \1Ω}"),
    (rf"(?<=[\d}}])\s*{TEXT}\{{\s*([㐀-鿿]+)\s*\}}", r"\1"),
    (
        r"(?<=\d)([百千万亿]{1,2})(?![米克瓦])",
        lambda found: rf"\times 10^{{{sum(_TEN_TO[one] for one in found[1])}}}",
    ),
    (r"(?<=[\d}])\s*([㐀-鿿]+)$", r"\\text{ \1}"),
    (TEXT + r"\{\s*-\s*\}(?=\s*\d)", "-"),
    (rf"{TEXT}\{{\s*mod\s*\}}|(?<=[\s\d])mod(?=\s)", r"\\mod "),
    (TEXT + r"\{\s*(sin|cos|tan|cot|sec|csc|arcsin|arccos|arctan|ln|log|exp)\s*\}", r"\\\1 "),
    (r"\.\.\.", r"\\dots "),
    (
        r"[(\[]\s*\\begin\{array\}\s*\{[lcr| ]*\}((?:(?!\\end).)*)\\end\{array\}\s*[)\]]",
        r"\\begin{pmatrix}\1\\end{pmatrix}",
    ),
    (r"(?<=\d)\s*(?:[x*]|\\times|\\cdot)\s*10\s*\^\s*(?:\{([-+]?\d+)\}|([-+]?\d+)(?![\d.]))", r"\\times 10^{\1\2}"),
    (r"(?P<lo>[\[\]])(?P<inside>[^\[\](){},;]+[,;][^\[\](){},;]+)(?P<hi>[\[\]])", lambda found: _interval(found)),
    (r"\\[dt]?binom\s*(\w)\s*(\w)", r"\\binom{\1}{\2}"),
    (rf"\\frac\s*{_SYMBOL}", r"\\frac{\1}"),
    (rf"(\\frac\s*\{{(?:[^{{}}]|\{{[^{{}}]*\}})*\}})\s*{_SYMBOL}", r"\1{\2}"),
    (rf"\\sqrt\s*{_SYMBOL}", r"\\sqrt{\1}"),
    (r"(\\sqrt\s*\[[^\[\]]*\])\s*([A-Za-z0-9])", r"\1{\2}"),
    (r"\\(?:under|over)brace\s*\{((?:[^{}]|\{[^{}]*\})*)\}\s*[_^]\s*\{(?:[^{}]|\{[^{}]*\})*\}", r"\1"),
    (r"(?:\{\})?\^\s*\{?(\d+)\}?\s*/\s*_\s*\{?(\d+)\}?", r"\\frac{\1}{\2}"),
    (rf"(?<=\d)\s*{TEXT}\{{\s*E\s*\}}\s*(?=[-+]?\d)", "E"),
    (r"(?<![\w.])(\d+(?:\.\d*)?|\.\d+)[eE]([-+]?\d+)(?![\d.A-Za-z_])", r"\1\\times 10^{\2}"),  # 3e5
    (rf"\\mu\s*{TEXT}\{{\s*(?=[smgACF]\s*\}})", r"\\text{μ"),
    (
        r"\\(?:hat|vec|widehat|mathbf)\s*"
        r"(?:\{\s*(?:\\mathbf\s*\{\s*)?(?:\\([ij])math|([ijk]))\s*\}{1,2}|([ijk])(?![A-Za-z]))",
        r" \1\2\3 ",
    ),
    (r"\{([-+:])\}", r"\1"),
    (r"\\\\\s*\\\\", r"\\\\"),
    (r"\\\{\s*\\\}", r"\\emptyset "),
    (r"(?<![A-Za-z\\])(?:pi|ln|log|exp|sin|cos|tan)(?![A-Za-z])", r"\\\g<0> "),
    (TEXT + r"(?=\{\s*(?:-?[\d.,/]+\s*\}|\\(?!\$|%)))", ""),
    (
        r"(?<=[A-Za-z)}\d])\s*('+)(?!')|\^\s*\{?((?:\\prime\s*)+)\}?",
        lambda found: "^{" + r"\prime" * (len(found[1] or "") or found[2].count("prime")) + "}",
    ),
)
"""Rewritings of LaTeX, one after another."""


def tidy(text: str) -> str:
    """Text in one notation, without currency, delimiters, outer marks and outer brackets."""
    text = without_bold(_INVISIBLE.sub("", text).strip())
    text = rewritten(text, _SCRIPTS)
    if not text.isascii():
        text = "".join(_MARKS.get(one, _GREEK.get(one, one)) for one in text)
        text = unicodedata.normalize("NFKC", rewritten(text, _ROOTS))
        text = "".join(_MARKS.get(one, one) for one in text)
    text = _money(rewritten(text, _LAYOUT))
    if _SEPARATED.search(text):
        text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)
    text = _TRAILING.sub("", _LEADING.sub("", rewritten(text, _DELIMITERS).strip()))
    if text.endswith(".") and not text.endswith(("..", "\\.")):
        text = text[:-1].rstrip()
    text = _TRAILING.sub("", rewritten(text, _FORMS))
    braces = num_enclosing(text, "{}")
    text = text[braces : len(text) - braces].strip()
    needless = max(0, num_enclosing(text, "()") - 1)
    return text[needless : len(text) - needless]


def without_bold(text: str) -> str:
    """Text without marks of Markdown and HTML around bold words."""
    text = _HTML.sub(
        lambda found: unescape(found[0]) if found[2] is None else f"{'^_'[found[1] == 'b']}{{{found[2]}}}",
        _BOLD_TAG.sub("", text),
    )
    for _ in range(MOST_MARKS):
        if (plain := _BOLD.sub(r"\2", text)) == text:
            break
        text = plain
    return text


def _rows(inside: str) -> str:
    """Rows aligned at & as those of cases; a row that starts with = goes on with the one before it."""
    rows = re.sub(r"\\\\\s*&?\s*=", " =", inside).replace("&", " ")
    return rf"\begin{{cases}}{rows}\end{{cases}}" if "\\\\" in rows else rows


def _si(found: re.Match[str]) -> str:
    r"""A number or quantity of the package siunitx: 3.2\text{ kilojoule} for \SI{3.2}{\kilo\joule}."""
    unit = re.sub(r"\\(kilo|milli|centi|micro|nano|mega|giga)\s*\\", r"\\\1", found[2] or "").replace("\\", " ")
    angle = r"^\circ " if found[0].startswith(r"\ang") else ""
    return f"{found[1]}{angle}" + (rf"\text{{ {unit}}}" if unit else "")


def _interval(found: re.Match[str]) -> str:
    """An interval with brackets turned outwards, as French writes an open end: ]0, 1] is (0, 1]."""
    return f"{'(' if found['lo'] == ']' else '['}{found['inside']}{')' if found['hi'] == '[' else ']'}"


def _normal(text: str) -> str:
    return unicodedata.normalize("NFKC", text).replace("−", "-")


def _fraction(sign: str) -> str:
    return _normal(sign).replace("⁄", "/")


def _root(found: re.Match[str]) -> str:
    degree = {"√": "", "∛": "[3]", "∜": "[4]"}[found[1]]
    return rf"\sqrt{degree}{{{found[2] or found[3] or found[4]}}}"


def _money(text: str) -> str:
    """Amount with its currency as a unit after it; a $ that opens a formula is not a currency."""
    whole = text[1:-1] if len(text) > 2 and text[0] == text[-1] == "$" and text[-2] != "\\" else text
    if (found := _IN_FRONT.match(whole)) is not None:
        mark = (found["mark"] or found["code"]).lstrip("\\")
        number = found["number"].rstrip(".,")
        times, rest = "", found["rest"]
        rest = re.sub(r"^(?:[kK]|M|bn?)(?![A-Za-z])", lambda found: _SHORT_LARGE[found[0].lower()], rest)
        if large := _LARGE.fullmatch(rest):
            times, rest = large["times"] + " ", large["rest"]
        rest = rf"\text{{ {rest}}}" if re.fullmatch(r"[A-Za-z ,]*[A-Za-z][A-Za-z ,]*", rest) else f" {rest}"
        return rf"{found['sign']}{number}\text{{ {times}{_CURRENCY.get(mark, mark)}}}{rest}"
    if _DOLLAR_BEHIND.match(whole):
        return whole.rstrip("$\\ ") + r"\text{ dollar}"
    return _BEHIND.sub(r"\\text{ \1}", whole) if _BEHIND.search(whole) else text


def without_stray_brace(text: str) -> str:
    r"""Text without its first unmatched closing brace, as in \text{about 5} once "about" is dropped."""
    depth = 0
    for place, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if depth < 0:
            return text[:place] + text[place + 1 :]
    return text


def num_enclosing(text: str, pair: str) -> int:
    """Number of bracket `pair`s around the whole text: 2 for "{{3}}", 1 for "{{3}+{4}}"."""
    at_ends = min(len(text) - len(text.lstrip(pair[0])), len(text) - len(text.rstrip(pair[1])))
    lowest = depth = at_ends
    for character in text[at_ends : len(text) - at_ends]:
        depth += (character == pair[0]) - (character == pair[1])
        lowest = min(lowest, depth)
    return max(lowest, 0) if depth == at_ends else 0


def nesting(text: str) -> int:
    """Nesting depth of round and square brackets."""
    return max(accumulate(((one in "([") - (one in ")]") for one in text), initial=0))


def squeeze(text: str) -> str:
    """Text with each run of white space replaced by one space."""
    return " ".join(text.split())
