"""Lists of named values, such as x = 3, y = 4: their names, and the same values without names in their order."""

import re
from collections import Counter

from scalerl.rollout import Outcome
from scalerl.verifiers.mathematics.notation import num_enclosing
from scalerl.verifiers.mathematics.parser import parsed, split_list
from scalerl.verifiers.mathematics.values import decimals, equal

_RELATION = r"(?:[<>]|\\[lg]e(?![a-z]))"
_BOUNDED = re.compile(rf"(?<![A-Za-z\\])([A-Za-z])\s*(?={_RELATION})|{_RELATION}\s*(?=([A-Za-z])(?![A-Za-z(]))")
_LISTED_NAME = re.compile(r"(?:^|[,;{}]|(?<![A-Za-z])(?:or|and)(?![A-Za-z]))\s*([A-Za-z])(?:_\{?\w+\}?)?\s*=")


def listed_names(latex: str) -> set[str]:
    """Names of the values in a list such as a = 1 or a = 2, without subscripts; none if only one value has a name."""
    names = _LISTED_NAME.findall(latex)
    return set(names) if len(names) > 1 else set()


def other_condition(one: str, other: str) -> bool:
    """True if two conditions are on different symbols: 1 < x < 2 beside 1 < y < 2."""
    mine, its = ({a or b for a, b in _BOUNDED.findall(text)} for text in (one, other))
    return len(mine) == len(its) == 1 and mine != its


def other_repeats(answer: str, gold: str) -> bool:
    """True if the gold list repeats a value more often than the other list: 1, 1, 2 beside 1, 2."""
    mine, its = (Counter(part.rpartition("=")[2].strip() for part in split_list(text)) for text in (answer, gold))
    if mine.total() < 2 or its.total() == len(its) or re.search(r"\d,\d{3}(?!\d)", f"{answer} {gold}"):
        return False
    return mine.total() != its.total() or (mine.keys() == its.keys() and mine != its)


def in_order_of_names(answer: str, gold: str) -> Outcome | None:
    """Verdict on values of x = 3, y = 4 beside 3, 4 or (3, 4), which names them in alphabetical order."""
    named, bare = (gold, answer) if listed_names(gold) else (answer, gold)
    bare = bare[1:-1] if num_enclosing(bare, "()") == 1 else bare
    names, parts = _LISTED_NAME.findall(named), split_list(bare)
    if listed_names(bare) or len(set(names)) != len(names) or len(names) != len(parts) or len(names) < 2:
        return None
    if "=" in bare or bare.startswith(("(", "[", "\\{")) or len(split_list(named)) != len(names):
        return None
    given = sorted(zip(names, split_list(named), strict=True))
    values = [parsed(part.rpartition("=")[2]) for _, part in given]
    steps = decimals(answer, gold)
    is_same = all(equal(value, parsed(part), steps) for value, part in zip(values, parts, strict=True))
    return "right" if is_same else "wrong"


def operands_sorted(text: str) -> str:
    r"""The text with the operands of \lor, \land, \cup and \cap sorted: p\land q for q\land p."""
    if not re.search(r"[=<>,;:\\]", re.sub(r"\\(?:neg|lor|land|cup|cap|overline)", "", text)):
        for mark in (r"\lor", r"\land", r"\cup", r"\cap"):
            if len(operands := split_list(text.replace(mark, ","))) > 1:
                return mark.join(sorted(map(operands_sorted, operands)))
    return text
