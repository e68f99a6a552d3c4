r"""Which mathematical answers count as equal: math-verify decides, after what it gets wrong has been decided here
and, of the values that it reads, in `math_values`.

* Words are compared as words, case apart: `even` is not the product of its letters.
* A percent sign, a degree sign, a number base or a unit counts when both answers have one, and units are converted:
  5 cm are 50 mm and not 5 m. Beside an answer that has none, 5 cm are 5, 90 degrees are 90 or pi/2, and 50 % are 50 or
  1/2; 0.5 % are 0.005 only.
* Brackets nested more than 20 deep are not read: math-verify takes a tenth of a second for each.
* Sets, and lists without brackets, have no order; tuples have. An inequality equals its interval.
"""

import logging
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from latex2sympy2_extended.logic import And
from math_verify import LatexExtractionConfig, parse
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
    Mul,
    Rational,
    Symbol,
    Union,
    pi,
)
from sympy.core.relational import Relational

from scalerl.verifiers.math_reading import MAX_ANSWER_CHARS, NUMBER, Reading, nesting, read
from scalerl.verifiers.math_values import MAX_DIGITS, decimals, equal, num_digits

if TYPE_CHECKING:  # `batch` loads torch, which the worker does without
    from scalerl.rollout import Outcome

logging.disable(logging.CRITICAL)  # math-verify warns that its own time-outs, which need the main thread, are off

MAX_NESTING = 20

SIGNS = {"": Integer(1), "percent": Rational(1, 100), "degree": pi / 180}
_NORMALISED = replace(LatexExtractionConfig().normalization_config, units=False)  # it takes the m of 5m for metres
_IN_A_BOX = (LatexExtractionConfig(boxed_match_priority=0, normalization_config=_NORMALISED),)
_NO_LIMIT: Any = None  # math-verify's signatures say int, its documentation None
_PROSE = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")

Place = Literal["marked", "said", "prose"]
"""Where the answer was stated: in a box or after "####", after "the answer is", or somewhere in the text."""


def judge(answer: str, gold: str, place: Place) -> "Outcome":
    """The verdict on a stated answer: right, wrong or unparsable."""
    if any(len(text) > MAX_ANSWER_CHARS and NUMBER.fullmatch(text) for text in (answer, gold)):
        return judge_long_number(answer, gold)
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
    return "right" if value is not None and equal(value, found[0], decimals(answer, wanted.latex)) else "wrong"


def judge_long_number(answer: str, gold: str) -> "Outcome":
    """The verdict where one of the two is a number too long for the parsers."""
    stated, wanted = (
        Rational(text.replace(",", "")) if NUMBER.fullmatch(text) else parsed(read(text).latex)
        for text in (answer, gold)
    )
    if stated is None:
        return "unparsable"
    return "right" if wanted is not None and equal(wanted, stated, []) else "wrong"


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
    steps = decimals(answer.latex, gold.latex)
    return "right" if any(equal(g, a, steps) for g, a in values(gold, answer, wanted, stated)) else "wrong"


def values(gold: Reading, answer: Reading, wanted: Any, stated: Any) -> list[tuple[Any, Any]]:
    """The pairs of values of which one must agree, given the signs and units that the two answers have."""
    if not (isinstance(wanted, Expr) and isinstance(stated, Expr)):
        return [(wanted, stated)]
    if gold.unit and answer.unit:
        pair = (times(wanted, Rational(gold.size)), times(stated, Rational(answer.size)))
        return [pair] if gold.unit == answer.unit else []
    if gold.sign == answer.sign:
        return [(wanted, stated)]
    bare = stated if gold.sign else wanted
    pairs = [] if "percent" in (gold.sign, answer.sign) and below_one(bare) else [(wanted, stated)]
    return [*pairs, (times(wanted, SIGNS[gold.sign]), times(stated, SIGNS[answer.sign]))]


def times(value: Expr, factor: Expr) -> Expr:
    """The product, in which decimals remain as they were written."""
    return Mul(value, factor, evaluate=False) if value.has(Float) else value * factor


def below_one(value: Expr) -> bool:
    """Whether this is a number under 1, which beside a percentage can only be meant as its hundredth part."""
    return (
        num_digits(value) <= MAX_DIGITS
        and bool(value.is_number)
        and abs(value.evalf(30)).is_Float
        and abs(value.evalf(30)) < 1
    )


def parsed(latex: str) -> Any:
    """What math-verify reads, as a SymPy object that is not worked out yet; None where it reads nothing or raises."""
    if nesting(latex) > MAX_NESTING:
        return None
    found = parse(rf"\boxed{{{latex}}}", extraction_config=_IN_A_BOX, parsing_timeout=_NO_LIMIT)
    value = next((value for value in found if isinstance(value, Basic | MatrixBase)), None)
    try:
        if not isinstance(value, Expr | MatrixBase):
            return solutions(value)
        if num_digits(value) > MAX_DIGITS:  # replacing a symbol works out the numbers beside it
            return value
        return value.xreplace({symbol: _symbol(symbol) for symbol in value.free_symbols})
    except MemoryError:
        raise
    except Exception:  # of SymPy any may come, as the ValueError of an integral over 2
        return None


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
        equal(parsed(form), parsed("7"), [])
    judge("She has 3 + 4 = 7 eggs.", "7", "prose")
    judge("7 eggs, which is all of them.", "7", "said")
