"""Equality of values: SymPy expressions with symbols, decimals, lists, intervals, sets and matrices.

math-verify decides the rest: sets that are not lists of numbers, and identities that digits do not settle.
"""

import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, cast

from math_verify import verify
from sympy import Basic, Eq, Expr, FiniteSet, Float, I, Integer, Interval, MatrixBase, Pow, Rational, Symbol, Tuple
from sympy.concrete import Product, Sum
from sympy.core.function import Derivative
from sympy.functions import binomial, exp, factorial, factorial2
from sympy.integrals import Integral
from sympy.logic import false
from sympy.polys import cancel
from sympy.series import Limit

MAX_DIGITS = 10_000
MAX_DECIMALS = 50
"""If two answers have more decimals than this, only the part in a million counts."""
RELATIVE_TOLERANCE = Rational(1, 10**6)
NOISE = Fraction(1, 10**9)
LARGEST_EXACT = 10**15
"""Largest integer without rounding error in 53 bits."""

COMPARED_AT = [Rational(p, 7) for p in (11, 13, 17, 19, 23, 29, 31, 37)]
"""Points at which two expressions are compared before simplification; equal expressions agree at all of them."""
SCALES = (Rational(1), Rational(1), Rational(1, 10), Rational(14), Rational(7))
"""Scales of these points, one per comparison: |x - 3| equals 3 - x at all small points, and rounding up equals rounding
down plus 1 except at integers, which the last two scales include, even and odd."""

_LEFT_TO_DO = (Limit, Integral, Derivative, Product, Sum)
"""Operations in an equation that are not evaluated."""
_NO_LIMIT: Any = None  # math-verify's signature says int, but its documentation None
_DECIMAL = re.compile(r"(?<![\d.])\d*\.\d+")


def equal(gold: Any, answer: Any, steps: Sequence[tuple[Fraction, Fraction]]) -> bool:
    """True if two SymPy objects have the same value; `steps` as returned by `decimals`."""
    if gold == answer:
        return True
    if num_digits(gold) > MAX_DIGITS or num_digits(answer) > MAX_DIGITS:
        return False
    if isinstance(gold, Expr) and isinstance(answer, Expr):
        if gold.has(Sum, Product) and gold.as_dummy() == answer.as_dummy():
            return True
        agreed = agree(gold, answer, steps)
        if agreed is not None:
            return agreed
    elif (
        isinstance(gold, Eq)
        and isinstance(answer, Eq)
        and (is_polynomial(gold, answer) or false in (Eq(*one.args) for one in (gold, answer)))
    ):
        return is_multiple(gold, answer)
    elif (pairs := parts(gold, answer)) is not None:
        return all(equal(g, a, steps) for g, a in pairs)
    return verify(gold, answer, allow_set_relation_comp=True, timeout_seconds=_NO_LIMIT)


def is_polynomial(*equations: Eq) -> bool:
    """True if both are polynomials without decimals: math-verify takes all without a real root for the same."""
    sides = [side for one in equations for side in one.args]
    return all(isinstance(side, Expr) and not side.has(Float) and side.is_polynomial() for side in sides)


def is_multiple(gold: Eq, answer: Eq) -> bool:
    """True if one equation is the other one times a number: x^2 + 1 = 0 and 2x^2 = -2."""
    one, other = cast(Any, gold), cast(Any, answer)
    if (one.lhs, one.rhs) == (other.lhs, other.rhs):
        return True
    if not all(isinstance(side, Expr) for side in (*one.args, *other.args)):
        return False
    ratio = cancel((one.lhs - one.rhs) / (other.lhs - other.rhs))
    return bool(ratio.is_number and ratio.is_finite and ratio != 0)


def parts(gold: Any, answer: Any) -> list[tuple[Any, Any]] | None:
    """Parts that must be equal for the whole to be: of lists, intervals, matrices and sets of real numbers.

    None if math-verify must decide. It rounds parts to six places, so that 0.0000001 would equal 0.0000002.
    """
    match gold, answer:
        case (MatrixBase(cols=1), Tuple()) | (Tuple(), MatrixBase(cols=1)) if len(gold) == len(answer):
            return list(zip(list(cast(Any, gold)), list(cast(Any, answer)), strict=True))
        case Tuple(), Tuple() if len(gold) == len(answer):
            return list(zip(gold, answer, strict=True))
        case MatrixBase(), MatrixBase() if gold.shape == answer.shape:
            return list(zip(gold.flat(), answer.flat(), strict=True))
        case Interval(), Interval() if (gold.left_open, gold.right_open) == (answer.left_open, answer.right_open):
            return [(gold.start, answer.start), (gold.end, answer.end)]
        case FiniteSet(), FiniteSet() if len(gold) == len(answer):
            if all(is_real_number(member) for member in (*gold, *answer)):
                in_order = (sorted(one, key=lambda member: cast(Expr, member).evalf(30)) for one in (gold, answer))
                return list(zip(*in_order, strict=True))
        case Eq(lhs=Symbol(), rhs=Expr()), Eq(lhs=Symbol(), rhs=Expr()) if gold.lhs == answer.lhs:
            return [(gold.rhs, answer.rhs)]
        case Eq(), Eq() if any(
            isinstance(side, MatrixBase) or side.has(*_LEFT_TO_DO) for side in gold.args + answer.args
        ):
            return [(gold.lhs, answer.lhs), (gold.rhs, answer.rhs)]
    return None


def is_real_number(value: Any) -> bool:
    """True if this is a point on the real line."""
    return (
        isinstance(value, Expr) and bool(value.is_number) and value.evalf(30).is_Float and value.is_finite is not False
    )


def decimals(*texts: str) -> list[tuple[Fraction, Fraction]]:
    """Decimals written in the texts, each with the largest distance to the value it stands for.

    `decimals("0.250")` is [(1/4, 1/1000)]. An integer, including 3.0, stands only for itself.
    """
    written = [number for text in texts for number in _DECIMAL.findall(text)]
    if len(written) > MAX_DECIMALS:
        return []
    found: list[tuple[Fraction, Fraction]] = []
    for number in written:
        value, places = Fraction(number), len(number.partition(".")[2])
        step = Fraction(0) if value.denominator == 1 else max(Fraction(1, 10**places), NOISE)
        found.append((value, step))
    return found


def step_of(decimal: Float, steps: Sequence[tuple[Fraction, Fraction]]) -> tuple[Fraction, Fraction]:
    """Written value of a decimal in an expression, and the largest distance to the value it stands for."""
    exact = cast(Any, Rational(decimal))
    value = Fraction(int(exact.p), int(exact.q))
    size = abs(value)
    written, step = min(steps, key=lambda one: (abs(size - one[0]), one[1]), default=(Fraction(-1), NOISE))
    if abs(size - written) > size / 2**50:  # computed by the parser from other decimals
        return value, size / 10**6
    return (written if value > 0 else -written), step


def agree(gold: Expr, answer: Expr, steps: Sequence[tuple[Fraction, Fraction]]) -> bool | None:
    """True if two expressions have the same value, with symbols at three points; None if digits leave that open.

    SymPy's simplification may take minutes to say no, and misses identities such as e^ix - e^-ix = 2i sin x.
    """
    symbols = sorted(gold.free_symbols | answer.free_symbols, key=str)
    decimal = gold.has(Float) or answer.has(Float)
    real_only = bool(symbols) and not (gold.has(I) or answer.has(I))
    num_compared = 0
    for shift, scale in enumerate(SCALES if symbols else SCALES[:1]):
        places = (
            scale * COMPARED_AT[(i + shift) % len(COMPARED_AT)] * (-1) ** (i + shift) for i in range(len(symbols))
        )
        point = dict(zip(symbols, places, strict=True))
        if decimal:
            a, a_step = with_step(gold, point, steps)
            b, b_step = with_step(answer, point, steps)
        else:
            a, b = worked_out(gold, point), worked_out(answer, point)
            a_step = b_step = None
        if a is None or b is None:
            return None
        if real_only and not (a.is_real and b.is_real):  # such as sqrt(x^3) and x^(3/2) at a negative x
            continue
        num_compared += 1
        if not close(a, b, max(a_step, b_step)) if a_step is not None and b_step is not None else apart(a, b):
            return False
    if not num_compared:
        return None
    if symbols or decimal:
        return True
    a, b = (attempted(value.doit) for value in (gold, answer))
    return a == b if isinstance(a, Rational) and isinstance(b, Rational) else None


def attempted(work: Callable[[], Any]) -> Any:
    """Result of work by SymPy or the parser, which may raise anything, such as ValueError for an integral over 2; None
    if it does."""
    try:
        return work()
    except MemoryError:
        raise
    except Exception:
        return None


def with_step(value: Expr, point: dict[Basic, Expr], steps: Sequence[tuple[Fraction, Fraction]]) -> tuple[Any, Any]:
    """Value at a point, and its change if each of its decimals changes by its step."""
    written = {decimal: step_of(decimal, steps) for decimal in value.atoms(Float)}
    exact: dict[Basic, Expr] = {decimal: Rational(number) for decimal, (number, _) in written.items()}
    middle = worked_out(value, point | exact)
    total: Any = Integer(0)
    for decimal, (number, step) in written.items():
        if middle is not None and step:
            moved = worked_out(value, point | exact | {decimal: Rational(number + step)})
            total += abs(moved - middle) if moved is not None else abs(middle) * RELATIVE_TOLERANCE
    return middle, total


def worked_out(value: Any, point: dict[Basic, Expr]) -> Any:
    """Value at a point, exact, or with 30 digits beyond the ten leading ones; None if it has no finite value."""

    def number_there() -> Any:
        number = value.xreplace(point)
        if number.is_Rational:
            return number
        number = number.evalf(30)
        if not abs(number).is_Number:  # such as 7 mod 3, which evalf leaves unchanged
            number = value.xreplace(point).doit().evalf(30)
        if not abs(number).is_Number or not number.is_finite:
            return None
        if abs(number) > 10**10:
            number = value.xreplace(point).evalf(30 + len(str(int(abs(number)))))
        return number if abs(number).is_Number else None

    return attempted(number_there)


def close(a: Expr, b: Expr, step: Expr) -> bool:
    """|a - b| < step and |a - b| <= 10^-6 max(|a|, |b|), and a = b for integers."""
    if a == b:
        return True
    largest = max(abs(a), abs(b))
    if largest < LARGEST_EXACT and a.is_real and b.is_real and a == round(a) and b == round(b):
        return False
    difference = abs(a - b)
    if not (a.is_Rational and b.is_Rational) and difference <= largest / 10**25:  # evaluated to 30 digits
        return True
    return bool(difference < step and difference <= RELATIVE_TOLERANCE * largest)


def apart(a: Expr, b: Expr) -> bool:
    """True if two exact numbers differ by more than 30 digits can hide; an evaluated 0 leaves up to 10^-60."""
    difference = abs(a - b)
    return bool(difference > max(abs(a), abs(b)) / 10**20 and difference > Rational(1, 10**60))


def num_digits(value: Any) -> float:
    """Upper bound on the decimal digits of numbers met when `value` is evaluated; infinite past MAX_DIGITS."""
    if isinstance(value, MatrixBase):
        return sum(num_digits(element) for element in value.flat())
    if isinstance(value, Rational):
        return math.log10(max(abs(value.p), value.q, 2))
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
    """Upper bound on |value|, infinite past 10^9."""
    if isinstance(value, Rational):
        return abs(float(value)) if num_digits(value) < 9 else math.inf
    digits = num_digits(value)
    return 10.0**digits if digits < 9 else math.inf
