"""Two changes at once, `pairs` in a sweep file: named pairs, all pairs, or a number of pairs spread evenly over the
changes."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, combinations

from ablations.errors import Place
from ablations.files.source import Source
from ablations.nearest_name import did_you_mean
from ablations.study.draft import MAX_COMBINATIONS, Draft
from ablations.study.sweep import Sweep
from ablations.text import TOGETHER, counted

TwoChanges = tuple[str, str]


def balanced_pairs(pairs: Sequence[TwoChanges], number: int) -> list[TwoChanges]:
    """Choose `number` of the pairs and keep their order, on which alone the choice depends.

    If any two changes may form a pair, the numbers of pairs per change differ by at most one.

    >>> balanced_pairs([("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "d")], 2)
    [('a', 'b'), ('c', 'd')]
    """
    counts, chosen = Counter[str](), list[TwoChanges]()
    spare = list(pairs)
    for _ in range(number):
        best = min(spare, key=lambda pair: counts[pair[0]] + counts[pair[1]])
        spare.remove(best)
        chosen.append(best)
        counts.update(best)
    while swap := next(_swaps(chosen, spare, counts), None):
        out, into = swap
        chosen[chosen.index(out)], spare[spare.index(into)] = into, out
        counts.subtract(out)
        counts.update(into)
    return [pair for pair in pairs if pair in chosen]


def balance_text(pairs: Sequence[TwoChanges], possible: Sequence[TwoChanges]) -> str:
    """The number of these pairs among the possible ones: `10 of 45 pairs of changes, each change in 2 of them`."""
    if len(possible) == 1:
        return "the only pair of changes"
    counts = Counter(chain.from_iterable(pairs))
    every = [counts[change] for change in dict.fromkeys(chain.from_iterable(possible))]
    least, most = min(every), max(every)
    each = f"{most}" if least == most else f"{least} or {most}" if least + 1 == most else f"{least} to {most}"
    share = f"all {len(pairs)}" if len(pairs) == len(possible) else f"{len(pairs)} of {len(possible)}"
    return f"{share} pairs of changes, each change in {each} of them"


def pair_names(pairs: Sequence[TwoChanges]) -> str:
    """The names of the variants with both changes: `a+b, c+d`."""
    return ", ".join(f"{first}{TOGETHER}{second}" for first, second in pairs)


def paired(sweep: Sweep, source: Source, single: Sequence[Draft]) -> Iterator[Draft]:
    """The drafts of `pairs`: two changes at once."""
    if isinstance(sweep.pairs, tuple):
        asked = [_asked(names, source.place(("pairs", n)), single) for n, names in enumerate(sweep.pairs)]
    else:
        place = source.place(("pairs",))
        asked = [(place, pair) for pair in _number_of(sweep.pairs, place, single)] if sweep.pairs else []
    for place, (first, second) in asked:
        name = f"{first.name}{TOGETHER}{second.name}"
        yield Draft(name=name, overrides=(*first.overrides, *second.overrides), place=place)


def _number_of(asked: int, place: Place, single: Sequence[Draft]) -> list[tuple[Draft, Draft]]:
    """All possible pairs if asked for True, else so many of them."""
    found = possible(single)
    if not found:
        raise place.error("no two variants change different settings", "remove it, or add one")
    if asked is not True and asked > len(found):
        raise place.error(f"found {asked}, of {counted(len(found), 'possible pair')}", "write true for all of them")
    number = len(found) if asked is True else asked
    if number > MAX_COMBINATIONS:
        raise place.error(f"{number} pairs", f"write how many to train, at most {MAX_COMBINATIONS}, or list them")
    chosen = balanced_pairs([(first.name, second.name) for first, second in found], number)
    return [pair for pair in found if (pair[0].name, pair[1].name) in chosen]


def possible(single: Iterable[Draft]) -> list[tuple[Draft, Draft]]:
    """Every pair of drafts that change different settings."""
    return [pair for pair in combinations(single, 2) if not _clash(*pair)]


def _swaps(
    chosen: Sequence[TwoChanges], spare: Sequence[TwoChanges], counts: Counter[str]
) -> Iterator[tuple[TwoChanges, TwoChanges]]:
    """Pairs to replace by one in which a change makes room for another that is in two pairs fewer, or in even less."""
    for out in chosen:
        for into in spare:
            left, joining = set(out) - set(into), set(into) - set(out)
            if len(left) == 1 and counts[left.pop()] > counts[joining.pop()] + 1:
                yield out, into


def _asked(names: tuple[str, str], place: Place, single: Sequence[Draft]) -> tuple[Place, tuple[Draft, Draft]]:
    known = {draft.name: draft for draft in single}
    for name in names:
        if name not in known:
            raise place.error(f"unknown variant '{name}'", did_you_mean(name, known, "variants"))
    first, second = (known[name] for name in names)
    if paths := _clash(first, second):
        raise place.error(
            f"'{first.name}' and '{second.name}' both set {paths[0]}", "pair variants that change different settings"
        )
    return place, (first, second)


def _clash(first: Draft, second: Draft) -> list[str]:
    """Paths of the first draft that the second one also sets, or whose parent or part it sets."""
    others = [one.path for one in second.overrides]
    return [
        one.path
        for one in first.overrides
        if any(f"{one.path}.".startswith(f"{path}.") or f"{path}.".startswith(f"{one.path}.") for path in others)
    ]
