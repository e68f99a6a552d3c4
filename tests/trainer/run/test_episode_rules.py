"""Each rule about episodes on rows that are as it says, and on rows that are nearly so."""

import pytest

from scalerl.rollout import EPISODE_ENDS
from scalerl.run.episode_rules import (
    environment_fails,
    environment_slow,
    episodes_cut,
    rules_broken,
    wins_do_not_follow,
)
from scalerl.run.health import health_warnings

RULES = (environment_fails, rules_broken, episodes_cut, wins_do_not_follow, environment_slow)


def rows(num=100, *, since=50, waits=0.1, earned=(0.2, 0.25), now=None, before=None):
    """Train rows of episodes: ends `before`, and `now` from step `since` on; the rest of the episodes is lost."""
    found = []
    for step in range(1, num + 1):
        shares = (now if step >= since else before) or {"won": 0.4, "rules_broken": 0.1}
        ends = {**dict.fromkeys(EPISODE_ENDS, 0.0), **shares}
        ends["lost"] = 1 - sum(ends.values())
        waited = waits * 10.0 * step
        clock = {"generator": {"decode": 10.0 * step - waited, "wait_environment": waited}}
        paid = earned[step >= since]
        found.append({"step": step, "skipped": False, "loss": 0.1, "ends": ends, "earned": paid, "device_s": clock})
    return found[:60], found[-20:]


@pytest.mark.parametrize(
    ("rule", "wrong", "right", "says"),
    [
        (
            environment_fails,
            {"now": {"timed_out": 0.96, "error": 0.04}},
            {"now": {"error": 0.04}},
            "96% of episodes end by",
        ),
        (
            rules_broken,
            {"now": {"rules_broken": 0.5}},
            {"now": {"rules_broken": 0.4}},
            "50% of .* rules, 10% at the start",
        ),
        (
            episodes_cut,
            {"now": {"too_many_turns": 0.3, "too_long": 0.3}},
            {"now": {"too_many_turns": 0.4}},
            "won or lost: 30% at the limit of turns and 30% for want of room for another turn, 0% at the start",
        ),
        (
            episodes_cut,
            {"before": {"too_long": 0.6, "won": 0.1}, "now": {"too_long": 0.56, "won": 0.1}},
            {"before": {"too_long": 0.6, "won": 0.1}, "now": {"too_long": 0.54, "won": 0.1}},
            "won or lost: 56% for want of room for another turn, 60% at the start",
        ),
        (
            wins_do_not_follow,
            {"earned": (0.2, 0.4)},
            {"earned": (0.2, 0.6), "now": {"won": 0.6}},
            "earns 0.40, 0.20 at the start, and 40% are won, 40% at the start",
        ),
        (wins_do_not_follow, {"earned": (0.2, 0.4)}, {"earned": (0.2, 0.25)}, "earns 0.40"),
        (
            wins_do_not_follow,
            {"earned": (0.2, 0.4)},
            {"earned": (0.2, 0.4), "before": {"won": 0.95}, "now": {"won": 0.95}},
            "earns 0.40",
        ),
        (environment_slow, {"waits": 0.6}, {"waits": 0.4}, "60% of their time"),
    ],
)
def test_each_rule_says_what_it_is_for_and_nothing_else(rule, wrong, right, says):
    found = {one.__name__: one(*rows(**wrong)) for one in RULES}
    assert [name for name, text in found.items() if text] == [rule.__name__]
    with pytest.raises(AssertionError, match=says):
        raise AssertionError(found[rule.__name__])
    assert [one.__name__ for one in RULES if one(*rows(**right))] == []


def test_a_run_warns_of_three_of_them_while_it_trains():
    ill = rows(now={"timed_out": 0.3, "rules_broken": 0.6}, waits=0.9)
    assert set(health_warnings(*ill)) == {"environment fails", "rules broken", "environment slow"}


def test_rows_without_episodes_have_none_of_these_warnings():
    plain = [{"step": step, "skipped": False, "loss": 0.1} for step in range(1, 101)]
    assert [one(plain[:60], plain[-20:]) for one in RULES] == [None] * 5
