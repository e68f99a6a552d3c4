"""Every pass of a batch once, as many passes on every rank, none with much more than the others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scalerl.learner.ranks import shares

COSTS = st.lists(st.integers(min_value=1, max_value=1000), min_size=1, max_size=40)
RANKS = st.integers(min_value=1, max_value=9)


def counted(passes):
    return [index for index, counts in passes if counts]


@given(COSTS, RANKS)
def test_every_pass_counts_once_in_its_order_and_no_rank_has_much_more_than_the_others(costs, ranks):
    found = shares(costs, ranks)
    assert len(found) == ranks
    assert sorted(index for passes in found for index in counted(passes)) == list(range(len(costs)))
    assert len({len(passes) for passes in found}) == 1
    assert len(found[0]) == max(len(counted(passes)) for passes in found)
    loads = [sum(costs[index] for index in counted(passes)) for passes in found]
    assert max(loads) <= sum(costs) / ranks + max(costs)
    for passes in found:
        assert counted(passes) == sorted(counted(passes))
        assert [counts for _, counts in passes] == sorted((counts for _, counts in passes), reverse=True)
        assert all(costs[index] == min(costs) for index, counts in passes if not counts)


@pytest.mark.parametrize(
    ("costs", "expected"),
    [
        ([5], [[(0, True)], [(0, False)]]),
        ([9, 1, 8], [[(0, True), (1, False)], [(1, True), (2, True)]]),
    ],
)
def test_shares_by_hand(costs, expected):
    assert shares(costs, 2) == expected
    assert shares([5], 1) == [[(0, True)]]
