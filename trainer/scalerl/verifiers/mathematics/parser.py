r"""LaTeX to SymPy objects, not evaluated, by math-verify's parser.

Symbols are real and keep their case. 2 \pm 1 is the set of both values, a chain of inequalities the set of its
solutions. Brackets nested more than 20 deep are not read, because each takes the parser a tenth of a second.
"""

import re
from functools import lru_cache
from itertools import product
from typing import Any

from latex2sympy2_extended.latex2sympy2 import ConversionConfig, latex2sympy
from latex2sympy2_extended.logic import And
from latex2sympy2_extended.math_normalization import NormalizationConfig, normalize_latex
from latex2sympy2_extended.sets import FiniteSet as ParsedSet
from math_verify.grader import should_treat_as_complex
from sympy import Basic, Eq, Expr, FiniteSet, I, Integer, Intersection, Interval, MatrixBase, Reals, Symbol, Union
from sympy import Tuple as SympyTuple
from sympy.core.function import AppliedUndef, Derivative
from sympy.core.relational import Ge, Gt, Le, Lt, Ne, Relational

from scalerl.verifiers.mathematics.notation import nesting
from scalerl.verifiers.mathematics.values import MAX_DIGITS, attempted, num_digits

MAX_NESTING = 20
_NORMALISED = NormalizationConfig(units=False, malformed_operators=True, nits=True, boxed="none")
_AS_WRITTEN = ConversionConfig(lowercase_symbols=False)
_SIGN = re.compile(r"\\(pm|mp)(?![A-Za-z])")
MOST_SIGNS = 3
r"""Maximum number of \pm signs in one answer."""
_OF_SYMBOLS = re.compile(r"\\(?:gcd|lcm|operatorname\s*\{(?:lcm|gcd)\})\s*\(?\s*[^()]*(?<![A-Za-z\\])[A-Za-z]")
"""The greatest common divisor of symbols, 1, which the parser evaluates immediately."""
_OR, _AND = (
    re.compile(rf"\\text\s*\{{\s*,?\s*{word}\s*\}}|(?<![A-Za-z\\]){word}(?![A-Za-z])|\\(?:{marks})(?![A-Za-z])")
    for word, marks in (("or", "lor|vee"), ("and", "land|wedge"))
)
_RELATION = re.compile(r"[<>]|\\(?:le|ge|lt|gt|ne)(?![A-Za-z])")


def parsed(latex: str) -> Any:
    """Parsed SymPy object, not evaluated; None if the parser reads nothing or raises."""
    if nesting(latex) > MAX_NESTING:
        return None
    if _SIGN.search(latex):
        return both_signs(latex)
    if (joined := conditions(latex)) is not None:
        return joined
    value = None if _OF_SYMBOLS.search(latex) else parse_latex(latex)
    return attempted(lambda: _with_real_symbols(value))


def _with_real_symbols(value: Any) -> Any:
    if isinstance(value, Basic) and value.has(AppliedUndef) and num_digits(value) <= MAX_DIGITS:
        value = replaced(value, {part: Symbol(str(part), real=True) for part in value.atoms(AppliedUndef)})
    if not isinstance(value, Expr | MatrixBase):
        value = solutions(value)
    if not isinstance(value, Expr | MatrixBase) and not (
        isinstance(value, FiniteSet | Eq) and all(isinstance(part, Expr) for part in value.args)
    ):
        return value if isinstance(value, Basic) else None
    if num_digits(value) > MAX_DIGITS:  # replacing a symbol evaluates the numbers around it
        return value
    derivatives: Any = value.atoms(Derivative)
    named = replaced(value, {part: _derivative(part) for part in derivatives if part.expr.is_Symbol})
    return replaced(named, {symbol: _symbol(symbol) for symbol in named.free_symbols})


def replaced(value: Any, new: dict[Any, Any]) -> Any:
    """The value with parts replaced; an equation stays one even if it cannot hold, as z = 1 + i for a real z."""
    if isinstance(value, Eq):
        return Eq(*(replaced(side, new) for side in value.args), evaluate=False)
    return value.xreplace(new)


def conditions(latex: str) -> Any:
    """Solution set of inequalities of one symbol joined by "or" and "and"; None for other text."""
    either = [_AND.split(part) for part in _OR.split(latex)]
    texts = [one for all_of in either for one in all_of]
    if len(texts) == 1 or not all(map(_RELATION.search, texts)):
        return None
    each = [[parse_latex(one.strip(" ,")) for one in all_of] for all_of in either]
    every = [one for all_of in each for one in all_of]
    if not all(map(_is_condition, every)) or len(set[Any]().union(*(one.free_symbols for one in every))) != 1:
        return None
    return Union(*(Intersection(*map(_set_of, all_of)) for all_of in each))


def _is_condition(value: Any) -> bool:
    """True for an inequality and for a chain of them."""
    parts = value.args if isinstance(value, And) else (value,)
    return all(isinstance(part, Relational) and not isinstance(part, Eq) for part in parts)


def _set_of(value: Any) -> Any:
    return Intersection(*(part.as_set() for part in (value.args if isinstance(value, And) else (value,))))


@lru_cache(maxsize=1024)
def parse_latex(latex: str) -> Any:
    """Parse with latex2sympy2_extended, keeping symbols; an unreadable chain a = b = c is replaced by its end. None if
    the parser cannot read it. Takes milliseconds, and all answers to a prompt have the same right answer."""
    if latex.isdecimal() and latex.isascii():
        return Integer(latex)
    normal = attempted(lambda: normalize_latex(latex, _NORMALISED)) or ""
    *before, last = re.split(r"(?<![\\<>!])=", normal)
    value = attempted(lambda: _sympy(normal)) if normal else None
    is_chain = value is None and len(before) > 1 and "," not in normal and ";" not in normal
    return attempted(lambda: _sympy(last)) if is_chain else value


def _sympy(latex: str) -> Any:
    is_real = not should_treat_as_complex(latex)
    return latex2sympy(latex, is_real=is_real, normalization_config=None, conversion_config=_AS_WRITTEN)


def both_signs(latex: str) -> Any:
    r"""Set of values of an answer with \pm: independent signs, but coupled ones if \pm and \mp both occur."""
    if len(_SIGN.findall(latex)) > MOST_SIGNS:
        return None
    together = "\\mp" in latex
    found, opposite = list[Any](), {"+": "-", "-": "+"}
    for part in split_list(latex):
        first, *rest = _SIGN.split(part)  # text, pm or mp, text, pm or mp, text ...
        marks, texts = rest[::2], rest[1::2]
        signs = [("+",) * len(marks), ("-",) * len(marks)] if together else list(product("+-", repeat=len(marks)))
        for chosen in dict.fromkeys(signs):
            written = [one if mark == "pm" else opposite[one] for mark, one in zip(marks, chosen, strict=True)]
            signed = first + "".join(f" {sign} {text}" for sign, text in zip(written, texts, strict=True))
            value = parsed(re.sub(r"^\s*\+", "", signed))
            if value is None:
                return None
            found += value.args if isinstance(value, FiniteSet) else [value]
    return solutions(ParsedSet(*found))


def split_list(latex: str) -> list[str]:
    """Parts between commas outside brackets."""
    parts, depth = [""], 0
    for character in latex:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


def _derivative(derivative: Any) -> Symbol:
    """dy/dx as a symbol: evaluated with y as a symbol it would be 0."""
    return Symbol(f"d{derivative.expr}/d{derivative.variables}", real=True)


def _symbol(symbol: Any) -> Expr:
    """Same symbol for both answers: math-verify makes symbols real or not depending on an i in the answer."""
    return I if symbol.name == "i" else Symbol(symbol.name, real=True)


def solutions(value: Any) -> Any:
    """Solution set of a chain of inequalities, such as 1 < x <= 4, or of several joined by "or"; else `value`."""
    if isinstance(value, Eq) and isinstance(value.lhs, SympyTuple) and isinstance(value.rhs, SympyTuple | Interval):
        ends = value.rhs.args[: len(value.lhs)]
        return ParsedSet(*(Eq(name, end, evaluate=False) for name, end in zip(value.lhs, ends, strict=True)))
    parts: tuple[Any, ...] = value.args if isinstance(value, And | FiniteSet) else ()
    if parts and isinstance(value, FiniteSet) and all(isinstance(part, Eq) for part in parts):
        if len({part.lhs for part in parts}) == 1 and parts[0].lhs.is_Symbol and len(parts) > 1:
            return ParsedSet(*(part.rhs for part in parts))
        return value
    if not parts or not all(map(_is_condition, parts)):
        return value
    if len(value.free_symbols) != 1:
        if isinstance(value, And) and all(isinstance(part, Lt | Gt | Le | Ge) for part in parts):
            return ParsedSet(*(SympyTuple(part.lts, part.gts, Integer(part.func in (Lt, Gt))) for part in parts))
        return value
    sets = [_set_of(part) for part in parts]
    either = Union(*sets)
    is_both = isinstance(value, And) or either == Reals or any(isinstance(part, Ne) for part in parts)
    return Intersection(*sets) if is_both else either
