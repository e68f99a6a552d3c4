"""Answers with a free symbol for any integer or constant: general solutions, residue classes, integrals."""

from typing import Any

from sympy import Basic, Expr, Integer, Symbol, pi, simplify

_ANY = Symbol("any integer", integer=True)
_CONSTANTS = frozenset({"c", "K", "k", "c_{1}", "C_{1}"})
"""Names of a constant of integration besides C."""


def period(value: Any) -> str:
    """The only symbol of a value such as pi/6 + 2 pi k, where it must mean any integer; "" for other values."""
    symbols = [str(symbol) for symbol in value.free_symbols] if isinstance(value, Expr) else []
    return symbols[0] if len(symbols) == 1 and symbols[0] in ("k", "n", "m") and value.has(pi) else ""


def with_integer(value: Any, symbol: str) -> Any:
    """The value with its symbol for any integer replaced by a common one."""
    return value.xreplace({Symbol(symbol, real=True): _ANY}) if isinstance(value, Basic) else value


def with_constant(stated: Any, wanted: Any) -> Any:
    """The value with the gold answer's name, C, of its constant of integration."""
    if not (isinstance(stated, Expr) and isinstance(wanted, Expr) and len(wanted.free_symbols) > 1):
        return stated
    new, old = stated.free_symbols - wanted.free_symbols, wanted.free_symbols - stated.free_symbols
    if [str(one) for one in old] != ["C"] or not {str(one) for one in new} <= _CONSTANTS or len(new) != 1:
        return stated
    (mine,), (its,) = new, old
    return stated.xreplace({mine: its}) if stated.diff(mine) == 1 == wanted.diff(its) else stated


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
    """True if both are integers of one residue class; an answer without a modulus must be the residue itself."""
    if not (modulus.isdecimal() and other == modulus and isinstance(gold, Integer) and isinstance(answer, Integer)):
        return False
    return (int(gold) - int(answer)) % int(modulus) == 0
