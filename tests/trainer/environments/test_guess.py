"""The game of this package: bounds, answers, rewards and the ways in which it ends."""

import random

import pytest

from scalerl.environments.guess import Guess
from scalerl.environments.protocol import Reply
from scalerl.errors import Rejected


def begun(secret, **settings):
    game = Guess(numbers=16, **settings)
    assert game.start(0, {}) == "1-16"
    game.secret = secret
    return game


def test_halving_finds_the_number_and_each_answer_says_where_it_lies():
    game = begun(11)
    assert [game.act(guess) for guess in ("8", " 12 ", "10")] == [Reply("higher"), Reply("lower"), Reply("higher")]
    assert game.act("11") == Reply("found", reward=1.0, end="won")


def test_every_number_is_found_by_halving_within_five_turns():
    for secret in range(1, 17):
        game, low, high = begun(secret), 1, 16
        said = []
        while low <= high and "found" not in said:
            middle = (low + high) // 2
            said.append(game.act(str(middle)).text)
            low, high = (middle + 1, high) if said[-1] == "higher" else (low, middle - 1)
        assert said[-1] == "found", secret
        assert len(said) <= 5


@pytest.mark.parametrize("text", ["", "x", "0", "17", "-3", "1.5", "٣", "8 9", "９"])
def test_what_is_no_number_in_the_bounds_breaks_the_rules(text):
    assert begun(11).act(text) == Reply("a number from 1 to 16", reward=-1.0, end="rules_broken")


def test_a_guess_earns_a_tenth_of_the_share_that_it_rules_out():
    game = begun(11, rewards="each guess", says="marks")
    replies = [game.act(guess) for guess in ("8", "12", "15", "11")]
    assert [reply.text for reply in replies] == ["+", "-", "-", "="]
    # 9 to 16 are left, then 9 to 11; 15 rules out nothing.
    assert [reply.reward for reply in replies] == pytest.approx([0.1 * 8 / 16, 0.1 * 5 / 8, 0.0, 1.0])


def test_the_number_is_drawn_from_the_state_of_random():
    random.seed(5)
    game = Guess(numbers=9999)
    game.start(0, {})
    random.seed(5)
    assert game.secret == random.randint(1, 9999)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"numbers": 1}, "numbers is 1; must be 2 to 9,999"),
        ({"rewards": "turn"}, "rewards is 'turn'; must be 'end' or 'each guess'"),
        ({"says": "signs"}, "says is 'signs'; must be 'words' or 'marks'"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, says):
    with pytest.raises(Rejected, match=says):
        Guess(**settings)
