r"""Which mathematical answers count as equal: math-verify decides, after what it gets wrong has been decided here.

* Words are compared as words, case apart: `even` is not the product of its letters.
* A percent sign, a degree sign, a number base or a unit counts when both answers have one, and units are converted:
  5 cm are 50 mm and not 5 m. Beside an answer that has none, 5 cm are 5, 90 degrees are 90 or pi/2, and 50 % are 50 or
  1/2; 0.5 % are 0.005 only.
* A decimal equals what is within one part in a million of it. Integers are equal only when they are the same.
* A number of more than 10^4 digits is not worked out: it equals only what reads the same.
* Brackets nested more than 20 deep are not read: math-verify takes a tenth of a second for each.
* Sets, and lists without brackets, have no order; tuples have. An inequality equals its interval.
"""

import logging
import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, cast

from latex2sympy2_extended.logic import And
from math_verify import LatexExtractionConfig, parse, verify
from sympy import (
    Basic,
    Eq,
    Expr,
    FiniteSet,
    Float,
    I,
    Integer,
    Intersection,
    MatrixBase,
    Pow,
    Product,
    Rational,
    Symbol,
    Union,
    binomial,
    exp,
    factorial,
    factorial2,
    pi,
)
from sympy.core.relational import Relational

from scalerl.verifiers.math_reading import Reading, nesting, read

if TYPE_CHECKING:  # `batch` loads torch, which the worker does without
    from scalerl.rollout import Outcome

logging.disable(logging.CRITICAL)  # math-verify warns that its own time-outs, which need the main thread, are off

MAX_DIGITS = 10_000
MAX_NESTING = 20
RELATIVE_TOLERANCE = Rational(1, 10**6)
LARGEST_EXACT = 10**15
"""Integers up to here have no rounding error as decimals of 53 bits."""

PLACES = [Rational(p, 7) for p in (11, 13, 17, 19, 23, 29, 31, 37)]
"""Where two expressions are compared before they are simplified; equal ones agree anywhere."""

SIGNS = {"": Integer(1), "percent": Rational(1, 100), "degree": pi / 180}
_NORMALISED = replace(LatexExtractionConfig().normalization_config, units=False)  # it takes the m of 5m for metres
_IN_A_BOX = (LatexExtractionConfig(boxed_match_priority=0, normalization_config=_NORMALISED),)
_I = Symbol("i", real=False)  # what math-verify makes of an i that stands alone
_NO_LIMIT: Any = None  # math-verify's signatures say int, its documentation None
_PROSE = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")

Place = Literal["marked", "said", "prose"]
"""Where the answer was stated: in a box or after "####", after "the answer is", or somewhere in the text."""


def judge(answer: str, gold: str, place: Place) -> "Outcome":
    """The verdict on a stated answer: right, wrong or unparsable."""
    stated, wanted = read(answer), read(gold)
    if place == "marked":
        return compare(stated, wanted)
    if wanted.is_text:
        outcome = compare(stated, wanted)
        return outcome if outcome == "right" or place == "said" else "unparsable"
    if not stated.words and not _PROSE.search(stated.latex):
        outcome = compare(stated, wanted)
        if outcome != "unparsable":
            return outcome
    anchor = "The answer is " if place == "said" else ""
    found = [value for value in parse(anchor + answer, parsing_timeout=_NO_LIMIT) if not isinstance(value, str)]
    if not found:
        return "unparsable"
    value = parsed(wanted.latex)
    return "right" if value is not None and equal(value, found[0]) else "wrong"


def compare(answer: Reading, gold: Reading) -> "Outcome":
    """The verdict on two answers taken apart."""
    if not answer.latex:
        return "unparsable"
    if answer.text == gold.text:
        return "right"
    if len(gold.words) > 1 and answer.words == gold.words:
        return "right"
    if gold.is_text:
        return "right" if answer.words == gold.words else "wrong"
    if (answer.is_text and len(answer.words) > 1) or answer.clock or gold.clock:
        return "wrong"
    if gold.base and answer.base:
        return "right" if (gold.latex.casefold(), gold.base) == (answer.latex.casefold(), answer.base) else "wrong"
    stated, wanted = parsed(answer.latex), parsed(gold.latex)
    if stated is None and wanted is not None:
        return "unparsable"
    if stated is None or wanted is None:  # beside a gold answer that does not parse only the same text is right
        return "wrong"
    return "right" if any(equal(g, a) for g, a in values(gold, answer, wanted, stated)) else "wrong"


def values(gold: Reading, answer: Reading, wanted: Any, stated: Any) -> list[tuple[Any, Any]]:
    """The pairs of values of which one must agree, given the signs and units that the two answers have."""
    if not (isinstance(wanted, Expr) and isinstance(stated, Expr)):
        return [(wanted, stated)]
    if gold.unit and answer.unit:
        return [(wanted * Rational(gold.size), stated * Rational(answer.size))] if gold.unit == answer.unit else []
    if gold.sign == answer.sign:
        return [(wanted, stated)]
    bare = stated if gold.sign else wanted
    pairs = [] if "percent" in (gold.sign, answer.sign) and below_one(bare) else [(wanted, stated)]
    return [*pairs, (wanted * SIGNS[gold.sign], stated * SIGNS[answer.sign])]


def below_one(value: Expr) -> bool:
    """Whether this is a number under 1, which beside a percentage can only be meant as its hundredth part."""
    return (
        num_digits(value) <= MAX_DIGITS
        and bool(value.is_number)
        and abs(value.evalf(30)).is_Float
        and abs(value.evalf(30)) < 1
    )


def parsed(latex: str) -> Any:
    """What math-verify reads, as a SymPy object that is not worked out yet; None where it reads nothing."""
    if nesting(latex) > MAX_NESTING:
        return None
    found = parse(rf"\boxed{{{latex}}}", extraction_config=_IN_A_BOX, parsing_timeout=_NO_LIMIT)
    value = next((value for value in found if isinstance(value, Basic | MatrixBase)), None)
    if isinstance(value, Expr | MatrixBase):
        if num_digits(value) > MAX_DIGITS:  # replacing a symbol works out the numbers beside it
            return value
        return value.xreplace({symbol: _symbol(symbol) for symbol in value.free_symbols})
    return solutions(value)


def _symbol(symbol: Any) -> Expr:
    """The same symbol from both answers: math-verify makes them real or not by whether an i stands in the answer."""
    return I if symbol.name == "i" else Symbol(symbol.name, real=True)


def solutions(value: Any) -> Any:
    """The set of solutions of a chain of inequalities, as 1 < x <= 4, or of several joined by "or"; else `value`."""
    parts: tuple[Any, ...] = value.args if isinstance(value, And | FiniteSet) else ()
    if not parts or not all(isinstance(part, Relational) and not isinstance(part, Eq) for part in parts):
        return value
    if len(value.free_symbols) != 1:
        return value
    sets = [part.as_set() for part in parts]
    return Intersection(*sets) if isinstance(value, And) else Union(*sets)


def equal(gold: Any, answer: Any) -> bool:
    """Whether two SymPy objects have the same value."""
    if gold == answer:
        return True
    if num_digits(gold) > MAX_DIGITS or num_digits(answer) > MAX_DIGITS:
        return False
    if isinstance(gold, Expr) and isinstance(answer, Expr):
        agreed = agree(gold, answer)
        if agreed is not None:
            return agreed
    return verify(gold, answer, allow_set_relation_comp=True, timeout_seconds=_NO_LIMIT)


def agree(gold: Expr, answer: Expr) -> bool | None:
    """Whether two expressions have the same value, with symbols at three points; None where digits leave that open.

    SymPy's simplification may take minutes to say no, and misses identities as e^ix - e^-ix = 2i sin x.
    """
    symbols = sorted(gold.free_symbols | answer.free_symbols, key=str)
    decimal = gold.has(Float) or answer.has(Float)
    for shift in range(3 if symbols else 1):
        places = (PLACES[(i + shift) % len(PLACES)] * (-1) ** (i + shift) for i in range(len(symbols)))
        point = dict(zip(symbols, places, strict=True))
        a, b = worked_out(gold, point), worked_out(answer, point)
        if a is None or b is None:
            return None
        if not close(a, b) if decimal else apart(a, b):
            return False
    return True if symbols or decimal else None


def worked_out(value: Any, point: dict[Basic, Expr]) -> Any:
    """The value at a point to 30 digits, None for one that is infinite, undefined or not to be had."""
    number = value.xreplace(point).evalf(30)
    if not abs(number).is_Number:  # as 7 mod 3, which evalf leaves as it is
        number = value.xreplace(point).doit().evalf(30)
    return number if abs(number).is_Number and number.is_finite else None


def close(a: Expr, b: Expr) -> bool:
    """|a - b| <= 10^-6 max(|a|, |b|), and a = b for integers."""
    largest = max(abs(a), abs(b))
    if largest < LARGEST_EXACT and a.is_real and b.is_real and a == round(a) and b == round(b):
        return a == b
    return bool(abs(a - b) <= RELATIVE_TOLERANCE * largest)


def apart(a: Expr, b: Expr) -> bool:
    """Whether two exact numbers differ by more than 30 digits can hide; 10^-60 is what is left of a 0 worked out."""
    difference = abs(a - b)
    return bool(difference > max(abs(a), abs(b)) / 10**20 and difference > Rational(1, 10**60))


def num_digits(value: Any) -> float:
    """An upper bound on the decimal digits of the numbers met when `value` is worked out; infinite past MAX_DIGITS."""
    if isinstance(value, MatrixBase):
        return sum(num_digits(element) for element in value.flat())
    if isinstance(value, Rational):
        return max(value.p.bit_length(), value.q.bit_length()) * math.log10(2)
    if not value.args:
        return 1.0
    if isinstance(value, Pow | exp):
        base, exponent = value.as_base_exp()
        return 1.0 if base in (-1, 0, 1) else num_digits(base) * magnitude(exponent)
    if isinstance(value, factorial | factorial2 | binomial):  # n! and binomial(n, k) are below n^n
        n = magnitude(value.args[0])
        return n * math.log10(n + 1)
    if isinstance(value, Product):
        function, *limits = cast(Any, value.args)
        return num_digits(function) * math.prod(magnitude(upper - lower) + 1 for _, lower, upper in limits)
    return sum(num_digits(part) for part in value.args)


def magnitude(value: Any) -> float:
    """An upper bound on |value|, infinite past 10^9."""
    if isinstance(value, Rational):
        return abs(float(value)) if num_digits(value) < 9 else math.inf
    digits = num_digits(value)
    return 10.0**digits if digits < 9 else math.inf


def warm_up() -> None:
    """Fill the parser's tables with the usual forms; the first of a form takes ten times as long as later ones."""
    forms = (
        r"\frac{1}{2}",
        "0.5",
        r"2\sqrt{3}+x^2",
        "[0,1)",
        r"\{1,2\}",
        "(1,2,3)",
        "x=5",
        r"x\le 3",
        r"\pi r^2",
        "1,2",
    )
    for form in (
        *forms,
        r"\begin{pmatrix}1&2\\3&4\end{pmatrix}",
        r"\log_2 8",
        r"\binom{5}{2}",
        "3!",
        r"\sin x",
        r"2\pm 1",
    ):
        compare(read(form), read(form + " "))
        equal(parsed(form), parsed("7"))
    judge("She has 3 + 4 = 7 eggs.", "7", "prose")
    judge("7 eggs, which is all of them.", "7", "said")
