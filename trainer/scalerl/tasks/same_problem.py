r"""Normal forms of problems, equal if two texts ask the same problem.

Case, white space, prose punctuation, typographic variants and LaTeX spacing do not distinguish problems; digits,
decimal points, signs, operators, brackets, primes and factorials do:

    "What is 2 - 3?", "what is 2−3"                    one problem
    "What is 2 + 3?", "What is 23?", "What is 2 3?"    three different problems
    "$x^{2}$", "x^2", "x²"                             one problem; "x2" is another

An ambiguous mark, such as the hyphen of "ab-cd", counts, so the problems differ.
"""

import re
import unicodedata

_MARKS = str.maketrans(
    {
        **dict.fromkeys("‐‑‒–—―−﹘﹣－⁃", "-"),
        **dict.fromkeys("“”„‟«»＂〝〞", '"'),
        **dict.fromkeys("‘’‚‛＇ʼ", "'"),
        "′": "'", "″": "''", "‴": "'''", "⁄": "/", "∕": "/", "∗": "*", "×": r" \times ", "·": r" \cdot ",
        "⋅": r" \cdot ", "÷": r" \div ", "≤": r" \le ", "≥": r" \ge ", "≠": r" \ne ", "π": r" \pi ", "∞": r" \infty ",
        "√": r" \sqrt ", "°": r"^\circ ", "…": "...", "⋯": "...",
        **dict.fromkeys("。、，؟،؛¿¡", " "),
    }
)  # fmt: skip
_SCRIPT = re.compile("([⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ]+)|([₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎]+)")
_VULGAR = re.compile("[¼½¾⅐-⅞↉]")
_SPACING = re.compile(r"\\[,;:! ]|\\(?:quad|qquad|displaystyle|limits|left|right|bigl?|bigr|Bigl?|Bigr)(?![A-Za-z])")
_TEXT = re.compile(r"\\(?:text|textbf|textit|mathrm|mathbf|mathit|mbox|operatorname)\s*\{([^{}]*)\}")
_COMMAND = re.compile(r"\\([A-Za-z]+)")
_SAME_COMMANDS = {
    "dfrac": "frac", "tfrac": "frac", "leq": "le", "geq": "ge", "neq": "ne", "ldots": "...", "dots": "...",
    "cdots": "...", "lbrace": "\\{", "rbrace": "\\}", "leqslant": "le", "geqslant": "ge", "lvert": "|", "rvert": "|",
}  # fmt: skip
_OPEN, _CLOSE, _POINT, _DOTS = "\ue000", "\ue001", "\ue002", "\ue003"
"""Private characters: around the name of a LaTeX command, for a decimal point, for an ellipsis."""
_LETTER_OF_COMMAND = re.compile(r"(?<=[A-Za-z])\{\s*([A-Za-z])\s*\}")
_ONE_IN_BRACES = re.compile(r"(?<!\\)\{\s*(\w)\s*\}")
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d.]*\d|,\d)")
_DECIMAL = re.compile(r"(?<![^\W\d_])\.(?=\d)")
_QUOTED = re.compile(r"(?<![\w')\]}])'([^'\n]*)'(?!\w)|``([^'`\n]*)''")
_ASKED = re.compile(r"\?[?!]+")
_SYMBOL_SPACE = re.compile(r"\s*([^\w\s])\s*")
_WORDS = re.compile(r"(?<=[^\W\d_]{3})-+(?=[^\W\d_]{3})")
_MARK = re.compile(r"[,;:]|!+|'+")
_DROPPED = str.maketrans(dict.fromkeys('."`$?', " "))
_SPACE = re.compile(r"(?<!\d)\s+|\s+(?!\d)")


def problem_key(text: str) -> str:
    """Normal form of a question; the text itself if it has no letters, digits or operators."""
    key = text if text.isascii() else _plain(text)
    key = " ".join(key.split())
    if any(character in key for character in "\\{~"):
        key = _latex(key)
    key = key.casefold()
    key = _THOUSANDS.sub(lambda match: match[0].replace(",", ""), key)
    key = key.replace("...", _DOTS)
    key = _DECIMAL.sub(_POINT, key)
    key = _QUOTED.sub(lambda match: f" {match[1] or match[2] or ''} ", key)
    key = _ASKED.sub(" ", key).translate(_DROPPED)
    key = _SYMBOL_SPACE.sub(r"\1", " ".join(key.split()))
    key = _WORDS.sub("", key)
    key = _MARK.sub(lambda match: _kept(match, key), key)
    key = _SPACE.sub("", key).strip(f"{_DOTS} ")
    return re.sub(r"\s+", " ", key) or text


def _plain(text: str) -> str:
    """The text with Unicode marks as ASCII, and superscripts and subscripts as powers and indices."""
    text = _SCRIPT.sub(_script, text.translate(_MARKS))
    text = _VULGAR.sub(lambda match: f" {unicodedata.normalize('NFKC', match[0])} ", text)
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).translate(_MARKS).casefold())
    return "".join(character for character in text if unicodedata.category(character) != "Cf")


def _script(match: re.Match[str]) -> str:
    """Script digits in LaTeX: `²` as `^2`, `₁₀` as `_{10}`."""
    inner = unicodedata.normalize("NFKC", match[0]).replace("−", "-")
    return ("^" if match[1] else "_") + (inner if len(inner) == 1 else f"{{{inner}}}")


def _latex(text: str) -> str:
    """Text without LaTeX layout, with names of commands between private characters."""
    text = re.sub(r",\s*\\!\s*", ",", text).replace("{,}", ",")
    text = _TEXT.sub(r" \1 ", text)
    text = _SPACING.sub(" ", text)
    text = re.sub(r"\\[()\[\]]|\\\\|(?<=\w)~(?=\w)", " ", text)
    text = re.sub(r"\\([$%#&_])", r"\1", text)
    text = _ONE_IN_BRACES.sub(r"\1", _LETTER_OF_COMMAND.sub(r" \1", text))
    return _COMMAND.sub(_command, text)


def _command(match: re.Match[str]) -> str:
    name = _SAME_COMMANDS.get(match[1], match[1])
    return name if name[0] in ".\\|" else f"{_OPEN}{name}{_CLOSE}"


def _kept(match: re.Match[str], text: str) -> str:
    """A mark that may be part of a formula, kept if it is; `text` has no space around symbols."""
    mark, start, end = match[0], match.start(), match.end()
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    last, following = before[-1:], after[:1]
    is_word_before = before.isalpha() and len(before) == 2
    is_word_after = after.isalpha() and len(after) == 2
    match mark[0]:
        case "!":  # a factorial follows a number, a bracket or a single letter
            is_operand = last.isdigit() or (bool(last) and last in f")]}}{_CLOSE}") or last.isalpha()
            return mark if is_operand and not is_word_before else " "
        case "'":  # a prime follows a name or a bracket, and no letter follows it
            is_name = last.isalnum() or (bool(last) and last in f")]}}{_CLOSE}")
            return mark if is_name and not following.isalpha() and not (is_word_before and not following) else ""
        case "," if last.isdigit() and following.isdigit():
            return " "
        case ":" if not (last.isdigit() and following.isdigit()):
            return " "
    return " " if is_word_before or is_word_after or not last or not following else mark
