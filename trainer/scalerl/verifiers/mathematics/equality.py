r"""Equality of mathematical answers: this file compares the parts besides the value, `values` compares values, and
math-verify decides what they leave open. The rules are those of docs/judges.md.
"""

import logging
import re
from typing import Any, Literal

from sympy import Eq, Expr, Float, Integer, Mul, Rational, Symbol, pi

from scalerl.rollout import Judgement, Outcome
from scalerl.verifiers.mathematics.dates import times_of_day
from scalerl.verifiers.mathematics.families import congruent, period, same_progression, with_constants, with_integer
from scalerl.verifiers.mathematics.lists import (
    in_order_of_names,
    listed_names,
    operands_sorted,
    other_condition,
    other_repeats,
)
from scalerl.verifiers.mathematics.notation import num_enclosing
from scalerl.verifiers.mathematics.parser import parsed, split_list
from scalerl.verifiers.mathematics.phrases import SHORT_WORDS, kind_of_numbers, without_reason
from scalerl.verifiers.mathematics.prose import statements, words_said
from scalerl.verifiers.mathematics.reading import MAX_ANSWER_CHARS, NUMBER, ParsedAnswer, read
from scalerl.verifiers.mathematics.units import DIRECTIONS, UnitOfMeasure
from scalerl.verifiers.mathematics.values import MAX_DIGITS, decimals, equal, num_digits

logging.disable(logging.CRITICAL)  # math-verify's warnings are expected here

SIGNS = {"": Integer(1), "percent": Rational(1, 100), "degree": pi / 180}
_INTEGER = re.compile(r"[-+]?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.0+)?")
_EXCLAIMED = re.compile(r"\d!$")
"""The end of a sentence that may be a factorial, or an exclamation."""
_OF_A_SYMBOL = re.compile(r"([A-Za-z]+(?:\(|_))([a-z])\)?")
_PAIR = re.compile(r"\(.*,")
_CHOSEN = re.compile(r"(?<![A-Za-z\\_^])([CP])\s*\((\d+),\s*(\d+)\)")
"""Ways to choose, or to choose in order; a point C or P beside coordinates."""
_TWICE = re.compile(
    r"(?P<first>[^()=]+?)\s*(?:\\text\s*\{\s*(?:\((?P<inside>[^()]+)\)|or\s*\}(?P<other>.+))"
    r"|\s\((?:or |i\.e\.,? |=)?\s*(?P<same>[^()]+)\)|\sor\s(?P<or>.+)|=(?P<last>[^=]+))\s*\}?\$?\.?"
)
OFFSETS = {"celsius": (Rational(1), Rational(27315, 100)), "fahrenheit": (Rational(5, 9), Rational(45967, 180))}
"""Factor and offset of a temperature to kelvin."""

StatedPlace = Literal["marked", "said", "prose"]
"""Place of the answer: in a box or after "####", after "the answer is", or somewhere in the text."""
KNOWN = {"answer": r"\frac{1}{2}", "gold": "0.5", "place": "marked"}


def judge(answer: str, gold: str, place: StatedPlace) -> Judgement:
    """Judge a stated answer, as an engine of `judge_worker`: right, wrong or unparsable."""
    if any(len(text) > MAX_ANSWER_CHARS and NUMBER.fullmatch(text) for text in (answer, gold)):
        return Judgement(judge_long_number(answer, gold))
    if _INTEGER.fullmatch(answer) and _INTEGER.fullmatch(gold):
        one, other = (int(text.partition(".")[0].replace(",", "")) for text in (answer, gold))
        return Judgement("right" if one == other else "wrong")
    if not _PAIR.search(_CHOSEN.sub("", answer + gold)):
        answer, gold = (_CHOSEN.sub(_ways, text) for text in (answer, gold))
    wanted = read(stated_once(gold))
    if place == "marked":
        answer, reason = without_reason(answer)
        stated = read(stated_once(answer))
        return Judgement(compare_answers(stated, wanted), dropped(stated, wanted) or reason)
    for statement, left_out in statements(answer, place):
        stated = read(stated_once(statement))
        if stated.is_text and not (wanted.words or wanted.letter):
            continue
        if wanted.is_text and not (stated.words or compare_answers(stated, wanted) == "right"):
            continue
        outcome = compare_answers(stated, wanted)
        if outcome == "wrong" and _EXCLAIMED.search(statement):
            outcome = compare_answers(read(statement[:-1]), wanted)
        if outcome != "unparsable" and not (wanted.is_text and place == "prose" and outcome == "wrong"):
            return Judgement(outcome, dropped(stated, wanted) or left_out)
    for words in words_said(answer) if place == "prose" else ():
        if wanted.is_text or not read(words).is_text:
            return Judgement(compare_answers(read(words), wanted), "words around the answer")
    return Judgement("unparsable")


def _ways(found: re.Match[str]) -> str:
    return rf"\binom{{{found[2]}}}{{{found[3]}}}" + (rf"\cdot {found[3]}!" if found[1] == "P" else "")


def stated_once(answer: str) -> str:
    """The first of two equal values: 0.5 for "0.5 (50 %)" and for "0.5 or 50 %"."""
    sides = answer.split("=")
    if len(sides) > 2 and all(re.search(r"\d", side) and not re.search(r"[<>]", side) for side in sides):
        first, *others = (read(side) for side in sides)
        if all(compare_answers(first, other) == "right" for other in others):
            return sides[0]
    found = _TWICE.fullmatch(answer)
    if found is None or re.search("[A-Za-z]", re.sub(r"\\[A-Za-z]+", "", found["first"])):
        return answer
    first, second = read(found["first"]), read(next(one for one in found.groups()[1:] if one))
    return found["first"] if compare_answers(first, second) == "right" else answer


def judge_long_number(answer: str, gold: str) -> Outcome:
    """Verdict if one of the two is a number too long for the parsers."""
    stated, wanted = (
        Rational(text.replace(",", "")) if NUMBER.fullmatch(text) else parsed(read(text).latex)
        for text in (answer, gold)
    )
    if stated is None:
        return "unparsable"
    return "right" if wanted is not None and equal(wanted, stated, []) else "wrong"


def dropped(answer: ParsedAnswer, gold: ParsedAnswer) -> str:
    """Part besides the value that only one of the two answers has."""
    answer, gold = _innermost(answer), _innermost(gold)
    for one, other in ((answer, gold), (gold, answer)):
        if one.unit and not other.unit and not other.words:
            return f"the unit {one.unit_text!r}"
        if one.sign and not other.sign:
            return f"the {one.sign} sign"
        if one.base and not other.base:
            return f"the base {one.base}"
        if one.modulus and not other.modulus:
            return f"the modulus {one.modulus}"
        if len(times_of_day(one.text)) == 1 < len(times_of_day(other.text)):
            return "a.m. or p.m."
    return ""


def _innermost(reading: ParsedAnswer) -> ParsedAnswer:
    while reading.body is not None:
        reading = reading.body
    return reading


def compare_answers(answer: ParsedAnswer, gold: ParsedAnswer) -> Outcome:
    """Verdict on two parsed answers: by how they are written where that decides, else by their values."""
    if not answer.latex:
        return "unparsable"
    if operands_sorted(answer.text) == operands_sorted(gold.text):
        return "right"
    if answer.letter or gold.letter:
        return compare_choices(answer, gold)
    if answer.words and gold.words and same_words(answer, gold):
        return "right"
    if any(a and g and a != g for a, g in ((answer.modulus, gold.modulus), (answer.domain, gold.domain))):
        return "wrong"
    if answer.name or gold.name:
        return compare_named(answer, gold)
    if {answer.latex, gold.latex} <= {"no solution", r"\emptyset"}:
        return "right"
    if gold.is_text or answer.is_text:
        return "wrong"
    if answer.is_time or gold.is_time:
        return "right" if times_of_day(answer.text) & times_of_day(gold.text) else "wrong"
    if len(answer.ratio) > 2 or len(gold.ratio) > 2 or (answer.ratio and gold.ratio):
        return compare_ratios(answer.ratio, gold.ratio)
    if answer.quantities or gold.quantities:
        return "right" if same_quantities(answer, gold) else "wrong"
    if gold.base and answer.base:
        return "right" if (gold.latex.casefold(), gold.base) == (answer.latex.casefold(), answer.base) else "wrong"
    if (mine := listed_names(answer.latex)) and (its := listed_names(gold.latex)) and mine != its:
        return "wrong"
    if other_repeats(answer.latex, gold.latex):
        return "wrong"
    if "\\{" not in answer.text + gold.text and other_condition(answer.latex, gold.latex):
        return "wrong"
    return _compare_values(answer, gold)


def _compare_values(answer: ParsedAnswer, gold: ParsedAnswer) -> Outcome:
    """Verdict on two answers whose text parses as mathematics: numbers, expressions, equations, sets, tuples."""
    stated, wanted = parsed(answer.latex), parsed(gold.latex)
    if stated is None and wanted is not None:
        return "unparsable"
    if stated is None or wanted is None:  # only the same text equals a gold answer that does not parse
        return "wrong"
    periods = [reading.integer or period(value) for reading, value in ((answer, stated), (gold, wanted))]
    if all(periods):
        stated, wanted = with_integer(stated, periods[0]), with_integer(wanted, periods[1])
        if answer.domain in ("", "Z") and same_progression(wanted, stated):
            return "right"
    steps = decimals(answer.latex, gold.latex)
    if isinstance(stated, Eq) and not stated.free_symbols and not equal(stated.lhs, stated.rhs, steps):
        return "wrong"  # such as 2 = 3 against 3
    if is_set_beside_tuple(answer.latex, gold.latex):
        return "wrong"
    if congruent(wanted, stated, gold.modulus, answer.modulus):
        return "right"
    if (pair := in_order_of_names(answer.latex, gold.latex)) is not None:
        return pair
    any_number = answer.integer if answer.domain == "R" else ""
    pairs = [pair for one in with_constants(stated, wanted, any_number) for pair in values(gold, answer, wanted, one)]
    return "right" if any(equal(g, a, steps) for g, a in pairs) else "wrong"


def compare_choices(answer: ParsedAnswer, gold: ParsedAnswer) -> Outcome:
    """Verdict if at least one of the two is a letter with a value, such as (D) 35."""
    if answer.letter and gold.letter and answer.letter != gold.letter:
        return "wrong"
    for one, other in ((answer, gold), (gold, answer)):
        if not other.letter and len(other.words) == 1 and other.words.upper() in "ABCDEFGHIJ":
            return "right" if other.words.upper() == one.letter else "wrong"
    return compare_answers(*(one.body if one.letter and one.body else one for one in (answer, gold)))


def same_words(answer: ParsedAnswer, gold: ParsedAnswer) -> bool:
    """True if two runs of letters are the same word; case is ignored only in what is clearly a word."""
    one, other = answer.words, gold.words
    if (kind := kind_of_numbers(one)) is not None and kind == kind_of_numbers(other):
        return True
    if "and" in one.split() and sorted(_things(one)) == sorted(_things(other)) and len(_things(one)) > 1:
        return True
    if one == other:
        return answer.is_text or gold.is_text or len(one) > 1
    if one.casefold() != other.casefold() or len(one) < 2:
        return False
    short = len(one) <= 5 and one.casefold() not in SHORT_WORDS
    return not short or (one[1:] == other[1:] and len(one) > 2)


def _things(words: str) -> list[str]:
    return [thing.strip().casefold() for thing in re.split(r"\s+and\s+|,", words) if thing.strip()]


def compare_named(answer: ParsedAnswer, gold: ParsedAnswer) -> Outcome:
    """Verdict if at least one of the two names a value: x = 5."""
    if answer.body is not None and gold.body is not None:
        are_angles = all("\\angle" in one.latex for one in (answer, gold))
        if are_angles and answer.name not in (gold.name, gold.name[::-1]):  # no product of letters
            return "wrong"
        are_words = answer.name.isalpha() and gold.name.isalpha() and len(answer.name) > 3 < len(gold.name)
        may_agree = are_words or same_name(answer.name, gold.name)
        if may_agree and compare_answers(answer.body, gold.body) == "right":
            return "right"
        return "right" if same_function(answer, gold) else compare_equations(answer, gold)
    if "=" in (gold if answer.body else answer).latex:
        return compare_equations(answer, gold)
    return compare_answers(answer.body or answer, gold.body or gold)


def same_function(answer: ParsedAnswer, gold: ParsedAnswer) -> bool:
    """True for f(t) = t^2 beside f(x) = x^2, and a_k beside a_n."""
    mine, its = _OF_A_SYMBOL.fullmatch(answer.name), _OF_A_SYMBOL.fullmatch(gold.name)
    if not (mine and its and mine[1] == its[1] and answer.body and gold.body):
        return False
    stated, old, new = parsed(answer.body.latex), *(Symbol(one[2], real=True) for one in (mine, its))
    if not isinstance(stated, Expr) or new in stated.free_symbols:
        return False
    return equal(parsed(gold.body.latex), stated.xreplace({old: new}), decimals(answer.latex, gold.latex))


def same_name(one: str, other: str) -> bool:
    """True if two names are the same, or differ only in a missing argument: y and y(x)."""
    return one == other or re.sub(r"\([a-z]\)$", "", one) == other or one == re.sub(r"\([a-z]\)$", "", other)


def compare_equations(answer: ParsedAnswer, gold: ParsedAnswer) -> Outcome:
    """Verdict on two equations, compared as written."""
    stated, wanted = parsed(answer.latex), parsed(gold.latex)
    if stated is None:
        return "unparsable"
    return "right" if wanted is not None and equal(wanted, stated, decimals(answer.latex, gold.latex)) else "wrong"


def same_quantities(answer: ParsedAnswer, gold: ParsedAnswer) -> bool:
    """True if the amounts of each thing are equal; an answer without names must have them in order."""
    if answer.quantities and gold.quantities:
        left = list(answer.quantities)
        for wanted in gold.quantities:
            found = next(
                (one for one in left if one.unit == wanted.unit and compare_answers(one, wanted) == "right"), None
            )
            if found is None:
                return False
            left.remove(found)
        return not left
    one, other = (answer, gold) if answer.quantities else (gold, answer)
    parts = split_list(other.latex)
    amounts = [parsed(amount.latex) for amount in one.quantities]
    values = [parsed(part) for part in parts]
    return len(parts) == len(amounts) and all(equal(a, v, []) for a, v in zip(amounts, values, strict=True))


def compare_ratios(answer: tuple[str, ...], gold: tuple[str, ...]) -> Outcome:
    """Verdict on a : b : ... being in proportion: a_i g_0 = g_i a_0 for all i."""
    if len(answer) != len(gold):
        return "wrong"
    stated, wanted = [parsed(part) for part in answer], [parsed(part) for part in gold]
    if any(not isinstance(part, Expr) for part in (*stated, *wanted)):
        return "unparsable"
    if answer == gold:
        return "right"
    if all(part.isdecimal() and len(part) == 2 for part in (answer[-1], gold[-1])) and "00" in (answer[-1], gold[-1]):
        return "wrong"
    (a, *others), (g, *golds) = stated, wanted
    if any(part == 0 for part in (*stated, *wanted)):
        return "wrong"
    return "right" if all(equal(x * a, y * g, []) for x, y in zip(golds, others, strict=True)) else "wrong"


def is_set_beside_tuple(one: str, other: str) -> bool:
    r"""True if one answer is a set of values in braces, or \pm 3, and the other a tuple in brackets."""
    a_set, a_tuple = sorted((one, other), key=lambda latex: not latex.startswith(("\\{", "\\pm")))
    return (
        bool(re.fullmatch(r"\\\{[^()\[]*\\\}|\\pm[^(]*", a_set))
        and num_enclosing(a_tuple, "()") == 1
        and "," in a_tuple
    )


def values(gold: ParsedAnswer, answer: ParsedAnswer, wanted: Any, stated: Any) -> list[tuple[Any, Any]]:
    """Pairs of values, at least one of which must agree, given the signs and units of the two answers."""
    if not same_unit(gold.unit, answer.unit):
        return []
    if isinstance(wanted, Expr) and isinstance(stated, Expr) and gold.unit and answer.unit:
        return [(in_base(wanted, gold.unit), in_base(stated, answer.unit))]
    if gold.sign == answer.sign or not (isinstance(wanted, Expr) and isinstance(stated, Expr)):
        return [(wanted, stated)]
    if {gold.sign, answer.sign} == {"percent", "degree"}:
        return []
    bare, unit = (stated, answer.unit) if gold.sign else (wanted, gold.unit)
    if unit and "percent" in (gold.sign, answer.sign):
        return []
    if "degree" in (gold.sign, answer.sign) and (bare.has(pi) or (unit and unit.dimensions == (("angle", 1),))):
        return [(times(wanted, SIGNS[gold.sign]), times(stated, SIGNS[answer.sign]))]
    pairs = [] if "percent" in (gold.sign, answer.sign) and below_one(bare) else [(wanted, stated)]
    return [*pairs, (times(wanted, SIGNS[gold.sign]), times(stated, SIGNS[answer.sign]))]


def same_unit(gold: UnitOfMeasure | None, answer: UnitOfMeasure | None) -> bool:
    """True if two units can measure the same quantity, or if one is missing and the other is not a direction."""
    if gold is None or answer is None:
        return DIRECTIONS.isdisjoint(word for unit in (gold, answer) if unit for word in unit.words)
    temperatures = {(("celsius", 1),), (("fahrenheit", 1),), (("kelvin", 1),)}
    if gold.dimensions in temperatures and answer.dimensions in temperatures:
        return True
    if gold.dimensions is None and answer.dimensions is None:
        return gold.words <= answer.words or answer.words <= gold.words
    return gold.dimensions == answer.dimensions


def in_base(value: Expr, unit: UnitOfMeasure) -> Expr:
    """Value in metres, seconds, kelvin and so on."""
    if unit.dimensions is not None and len(unit.dimensions) == 1 and unit.dimensions[0][0] in OFFSETS:
        factor, offset = OFFSETS[unit.dimensions[0][0]]
        return value * factor + offset
    return times(value, Rational(unit.size)) if unit.dimensions is not None else value


def times(value: Expr, factor: Expr) -> Expr:
    """Product that keeps decimals as they were written."""
    return Mul(value, factor, evaluate=False) if value.has(Float) else value * factor


def below_one(value: Expr) -> bool:
    """True if this is a number below 1, which as a percentage can only mean its hundredth part."""
    return (
        num_digits(value) <= MAX_DIGITS
        and bool(value.is_number)
        and abs(value.evalf(30)).is_Float
        and abs(value.evalf(30)) < 1
    )


_USUAL_FORMS = r"""
\frac{1}{2} 0.5 2\sqrt{3}+x^2 [0,1) \{1,2\} (1,2,3) x=5 x\le{3} \pi{r}^2 1,2 \begin{pmatrix}1&2\\3&4\end{pmatrix}
\log_2{8} \binom{5}{2} 3! \sin{x} 2\pm{1}
"""


def warm_up() -> None:
    """Parse the usual forms once, because the first use of a form takes ten times as long as later ones."""
    for form in _USUAL_FORMS.split():
        compare_answers(read(form), read(form + " "))
        equal(parsed(form), parsed("7"), [])
    judge("She has 3 + 4 = 7 eggs.", "7", "prose")
    judge("7 eggs, which is all of them.", "7", "said")
