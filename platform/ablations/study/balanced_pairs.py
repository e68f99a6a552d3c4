"""Which pairs of changes to train where all cost too much: some of them, every change in about as many."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from ablations.text import TOGETHER

TwoChanges = tuple[str, str]


def balanced_pairs(pairs: Sequence[TwoChanges], number: int) -> list[TwoChanges]:
    """`number` of the pairs, in their order, chosen by the order alone.

    If any two changes may be a pair, the changes are in equally many pairs, or differ by one.

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
    """How many of the possible pairs these are: `10 of 45 pairs of changes, each change in 2 of them`."""
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


def _swaps(
    chosen: Sequence[TwoChanges], spare: Sequence[TwoChanges], counts: Counter[str]
) -> Iterator[tuple[TwoChanges, TwoChanges]]:
    """Pairs to replace by one in which a change makes room for another that is in two pairs fewer, or in even less."""
    for out in chosen:
        for into in spare:
            left, joining = set(out) - set(into), set(into) - set(out)
            if len(left) == 1 and counts[left.pop()] > counts[joining.pop()] + 1:
                yield out, into
