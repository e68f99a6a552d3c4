"""Arithmetic over the columns of a log: `cumsum(perf/time_per_step) * 64 / 3600`.

    comparison   sum [< <= > >= == != sum]
    sum          product {+ - product}
    product      factor {* / factor}
    factor       - factor | number | column | function(comparison, ...) | (comparison)

A column is written as it is called, or in backticks. Without backticks the longest column of the log that is written at
this place is meant: `perf/time_per_step` is one column if the log has it. A column that begins with a digit, or that
contains a sign and is followed by the rest of a longer column, needs backticks. A missing value stays missing in
arithmetic; a comparison with one is false. Nothing is ever handed to Python's `eval`.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ablations.errors import AblationsError
from ablations.nearest_name import did_you_mean, scores_first

MOST_NESTED, MOST_OPERATORS = 50, 200
MOST_SHOWN = 200
"""Maximum length of an expression quoted in a message."""
NUMBER_TEXT = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
WORD = re.compile(r"[^\s()*+,<>=!`]+")
FUNCTION = re.compile(r"([A-Za-z_]\w*)\s*\(")
INSIDE_A_NAME = re.compile(r"[\w@.:]")


@dataclass(frozen=True, kw_only=True)
class Constant:
    """A number: `Constant(value=3600.0)`."""

    value: float


@dataclass(frozen=True, kw_only=True)
class ColumnOf:
    """A column: `ColumnOf(name="perf/time_per_step")`."""

    name: str


@dataclass(frozen=True, kw_only=True)
class Call:
    """An operator or a function: `Call(name="-", arguments=(ColumnOf(name="x"), Constant(value=1.0)))`."""

    name: str
    arguments: "tuple[Expression, ...]"


Expression = Constant | ColumnOf | Call


def increases(values: np.ndarray) -> np.ndarray:
    """The increase since the previous value, or since 0 for the first; missing where the value is, so `cumsum(diff(x))`
    is x."""
    found = np.full(values.shape, np.nan)
    present = ~np.isnan(values)
    found[present] = np.diff(values[present], prepend=0.0)
    return found


def following(values: np.ndarray) -> np.ndarray:
    """The value or, if missing, the next one; after the last, the last."""
    present = np.flatnonzero(~np.isnan(values))
    if present.size == 0:
        return values
    return values[present[np.searchsorted(present, np.arange(values.size)).clip(max=present.size - 1)]]


def where_true(condition: np.ndarray, then: np.ndarray, otherwise: np.ndarray | float = np.nan) -> np.ndarray:
    """`then` where the condition is neither 0 nor missing, else `otherwise`, which is missing unless given."""
    return np.where((condition != 0) & ~np.isnan(condition), then, otherwise)


def _compared(compare: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Callable[..., np.ndarray]:
    def of(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return (compare(left, right) & ~np.isnan(left) & ~np.isnan(right)).astype(float)

    return of


OPERATORS: dict[str, Callable[..., np.ndarray]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "<": _compared(np.less),
    "<=": _compared(np.less_equal),
    ">": _compared(np.greater),
    ">=": _compared(np.greater_equal),
    "==": _compared(np.equal),
    "!=": _compared(np.not_equal),
}
COMPARISONS = ("<=", ">=", "==", "!=", "<", ">")
"""Comparison operators in search order, longer ones first."""
FUNCTIONS: dict[str, tuple[Callable[..., np.ndarray], int, int]] = {
    "cumsum": (np.nancumsum, 1, 1),
    "diff": (increases, 1, 1),
    "min": (np.minimum, 2, 2),
    "max": (np.maximum, 2, 2),
    "where": (where_true, 2, 3),
    "next": (following, 1, 1),
}
"""Each function with its minimum and maximum number of arguments."""


def parse(text: str, columns: Collection[str], *, option: str) -> Expression:
    """Parse an expression for a log with these columns.

    Raises AblationsError with the option, the place in the text and the correct form.
    """
    return _Parser(text, columns, option).whole()


def column_text(name: str) -> str:
    """A column as written in an expression, in backticks."""
    return f"`{name}`"


def columns_of(expression: Expression) -> Iterator[str]:
    """The columns that an expression reads, one as often as it stands there."""
    if isinstance(expression, ColumnOf):
        yield expression.name
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from columns_of(argument)


def calls_of(expression: Expression, name: str) -> Iterator[Call]:
    """The outermost calls of a function in an expression."""
    if isinstance(expression, Call):
        if expression.name == name:
            yield expression
            return
        for argument in expression.arguments:
            yield from calls_of(argument, name)


def evaluate(expression: Expression, columns: Mapping[str, np.ndarray], size: int) -> np.ndarray:
    """The value at every step, float64 (size,); NaN if missing."""
    if isinstance(expression, Constant):
        return np.full(size, expression.value)
    if isinstance(expression, ColumnOf):
        return columns[expression.name]
    function = OPERATORS.get(expression.name) or FUNCTIONS[expression.name][0]
    arguments = [evaluate(argument, columns, size) for argument in expression.arguments]
    with np.errstate(all="ignore"):
        return function(*arguments)


class _Parser:
    """Reads an expression from left to right."""

    def __init__(self, text: str, columns: Collection[str], option: str) -> None:
        self._text, self._option, self._at, self._depth, self._operators = text, option, 0, 0, 0
        self._columns = sorted(columns, key=len, reverse=True)

    def whole(self) -> Expression:
        found = self._comparison()
        if self._rest():
            raise self._error(f"found {self._rest()[:20]!r}", "write an operator such as + or *, or end here")
        return found

    def _comparison(self) -> Expression:
        found = self._sum()
        if sign := self._sign(*COMPARISONS):
            found = Call(name=sign, arguments=(found, self._sum()))
        return found

    def _sum(self) -> Expression:
        return self._chain(self._product, "+", "-")

    def _product(self) -> Expression:
        return self._chain(self._factor, "*", "/")

    def _chain(self, part: Callable[[], Expression], *signs: str) -> Expression:
        found = part()
        while sign := self._operator(*signs):
            found = Call(name=sign, arguments=(found, part()))
        return found

    def _factor(self) -> Expression:
        self._depth += 1
        if self._depth > MOST_NESTED:
            raise self._error(f"more than {MOST_NESTED} parentheses or signs inside each other", "write fewer")
        if self._sign("-"):
            found = Call(name="-", arguments=(Constant(value=0.0), self._factor()))
        elif self._sign("("):
            found = self._comparison()
            self._close()
        else:
            found = self._atom()
        self._depth -= 1
        return found

    def _atom(self) -> Expression:
        rest = self._rest()
        if not rest:
            raise self._error("the expression ends", "write a column, a number or a function here")
        if rest.startswith("`"):
            name, quote, _ = rest[1:].partition("`")
            if not quote:
                raise self._error("a backtick without a second one", "put backticks on both sides of a column")
            return self._column(name, len(name) + 2)
        if (called := FUNCTION.match(rest)) and called[1] in FUNCTIONS:
            self._at += called.end()
            return self._call(called[1])
        if number := NUMBER_TEXT.match(rest):
            self._at += number.end()
            return Constant(value=float(number[0]))
        for name in self._columns:
            if rest.startswith(name) and not INSIDE_A_NAME.match(rest, len(name)):
                return self._column(name, len(name))
        if called:
            right = f"functions are: {', '.join(FUNCTIONS)}"
            raise self._error(f"no function {called[1]!r}", right)
        word = WORD.match(rest)
        if word is None:
            raise self._error(f"found {rest[:1]!r}", "write a column, a number or a function here")
        return self._column(word[0], len(word[0]))

    def _column(self, name: str, length: int) -> Expression:
        if name not in self._columns:
            raise AblationsError(
                f"{self._option}: no column {name!r}; {did_you_mean(name, scores_first(self._columns), 'columns')}"
            )
        self._at += length
        return ColumnOf(name=name)

    def _call(self, name: str) -> Expression:
        _, least, most = FUNCTIONS[name]
        arguments = [self._comparison()]
        while self._sign(","):
            arguments.append(self._comparison())
        self._close()
        if not least <= len(arguments) <= most:
            right = f"{least}" if least == most else f"{least} or {most}"
            raise self._error(f"{name} with {len(arguments)} arguments", f"{name} takes {right}")
        return Call(name=name, arguments=tuple(arguments))

    def _close(self) -> None:
        if not self._sign(")"):
            raise self._error(f"found {self._rest()[:20]!r}" if self._rest() else "the expression ends", "write ) here")

    def _rest(self) -> str:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1
        return self._text[self._at :]

    def _operator(self, *signs: str) -> str:
        """Like `_sign`, and counted: each operator of a chain makes the expression one level deeper."""
        found = self._sign(*signs)
        self._operators += bool(found)
        if self._operators > MOST_OPERATORS:
            raise self._error(f"more than {MOST_OPERATORS} operators", "write fewer")
        return found

    def _sign(self, *signs: str) -> str:
        """The sign that comes next, if it is one of these, else ""."""
        rest = self._rest()
        found = next((sign for sign in signs if rest.startswith(sign)), "")
        self._at += len(found)
        return found

    def _error(self, found: str, right: str) -> AblationsError:
        text = self._text if len(self._text) <= MOST_SHOWN else f"{self._text[:MOST_SHOWN]}..."
        return AblationsError(f"{self._option} {text!r}, character {self._at + 1}: {found}; {right}")
