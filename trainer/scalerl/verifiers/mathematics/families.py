"""Answers with a free symbol for any integer or constant: general solutions, residue classes, integrals."""

import re
from itertools import permutations
from typing import Any

from sympy import Basic, Expr, Integer, Symbol, pi, simplify

_ANY = Symbol("any integer", integer=True)
_OF_GOLD = re.compile(r"C(?:_\{?\d\}?)?")
_OF_ANSWER = re.compile(r"[ABCDcKk]|[Cc]_\{?\d\}?")
"""Names of constants of integration."""
MOST_CONSTANTS = 3
_VARIABLES = frozenset({"x", "y", "z", "t", "u", "v", "r", "s", "theta", "n"})


def period(value: Any) -> str:
    """The only symbol of a value such as pi/6 + 2 pi k, where it must mean any integer; "" for other values."""
    symbols = [str(symbol) for symbol in value.free_symbols] if isinstance(value, Expr) and value.has(pi) else []
    return symbols[0] if symbols in (["k"], ["n"], ["m"]) else ""


def with_integer(value: Any, symbol: str) -> Any:
    """The value with its symbol for any integer replaced by a common one."""
    return value.xreplace({Symbol(symbol, real=True): _ANY}) if isinstance(value, Basic) else value


def with_constants(stated: Any, wanted: Any, any_number: str = "") -> list[Any]:
    """The value with the gold answer's names of its constants of integration, in every order; itself if it has none.

    Constants are C, C_1 and C_2 beside a variable such as x (in the gold answer BC the letter C is a point), and the
    letter for which the answer allows `any_number`.
    """
    if not (isinstance(stated, Expr) and isinstance(wanted, Expr)):
        return [stated]
    unknown = wanted.free_symbols - stated.free_symbols if any_number else set[Basic]()
    its = [one for one in wanted.free_symbols if one in unknown or _OF_GOLD.fullmatch(str(one))]
    others = wanted.free_symbols - set(its)
    mine = [one for one in stated.free_symbols - others if str(one) == any_number or _OF_ANSWER.fullmatch(str(one))]
    if not its or not others or len(mine) != len(its) or len(its) > MOST_CONSTANTS:
        return [stated]
    if not any(str(one) in _VARIABLES for one in others):
        return [stated]
    return [stated.xreplace(dict(zip(mine, order, strict=True))) for order in permutations(its)]


def residue(value: Any) -> tuple[int, int] | None:
    """Modulus and residue of numbers such as 7k + 3 for any integer k; None for other values."""
    symbols = list(value.free_symbols) if isinstance(value, Expr) else []
    if len(symbols) != 1 or str(symbols[0]) not in ("k", "n", "m", "t"):
        return None
    step, first = value.diff(symbols[0]), value.xreplace({symbols[0]: Integer(0)})
    if not (isinstance(step, Integer) and isinstance(first, Integer)) or abs(int(step)) < 2:
        return None
    return abs(int(step)), int(first) % abs(int(step))


def same_progression(gold: Any, answer: Any) -> bool:
    """True if a + b k and c + d k give the same numbers over all integers k."""
    if not (isinstance(gold, Expr) and isinstance(answer, Expr)):
        return False
    parts: Any = ((value.xreplace({_ANY: Integer(0)}), value.diff(_ANY)) for value in (gold, answer))
    (a, b), (c, d) = parts
    if b.has(_ANY) or d.has(_ANY) or b == 0 or simplify(b**2 - d**2) != 0:
        return False
    return bool(simplify((a - c) / b).is_integer)


def congruent(gold: Any, answer: Any, modulus: str, other: str) -> bool:
    """True if both are integers of one residue class, or one is, and the other is 7k + 3 for any integer k."""
    if modulus and other:
        both = other == modulus and isinstance(gold, Integer) and isinstance(answer, Integer)
        return modulus.isdecimal() and both and (int(gold) - int(answer)) % int(modulus) == 0
    one, family, known = (gold, answer, modulus) if modulus else (answer, gold, other)
    if not known.isdecimal() or not isinstance(one, Integer):
        return False
    return residue(family) == (int(known), int(one) % int(known))
