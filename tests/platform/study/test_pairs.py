"""Some of the pairs of changes, every change in about as many."""

import itertools
from collections import Counter

import pytest

from ablations.study.pairs import balance_text, balanced_pairs, pair_names


@pytest.mark.parametrize("num_changes", range(3, 10))
def test_changes_are_in_equally_many_pairs_or_differ_by_one(num_changes):
    changes = [f"c{number}" for number in range(num_changes)]
    every = list(itertools.combinations(changes, 2))
    for number in range(1, len(every) + 1):
        chosen = balanced_pairs(every, number)
        assert chosen == [pair for pair in every if pair in chosen]  # in their order, each once
        assert len(chosen) == number
        counts = Counter(itertools.chain.from_iterable(chosen))
        each = [counts[change] for change in changes]
        assert max(each) - min(each) <= 1, (number, chosen)
        assert sum(each) == 2 * number


def test_the_balance_in_words():
    every = list(itertools.combinations("abcd", 2))
    assert balance_text(every, every) == "all 6 pairs of changes, each change in 3 of them"
    assert balance_text([("a", "b"), ("c", "d")], every) == "2 of 6 pairs of changes, each change in 1 of them"
    assert balance_text([("a", "b")], every) == "1 of 6 pairs of changes, each change in 0 or 1 of them"
    assert balance_text([("a", "b"), ("a", "c")], every) == "2 of 6 pairs of changes, each change in 0 to 2 of them"
    assert pair_names([("a", "b"), ("c", "d")]) == "a+b, c+d"
