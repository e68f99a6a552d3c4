"""Environments of libraries: what an adapter makes of their texts, rewards and ends. A missing library is named."""

import json
import sys

import pytest

from scalerl.environments.catalogue import EnvironmentUnusable, known_id, make_environment
from scalerl.environments.gymnasium_texts import SteppedText
from scalerl.environments.host import EnvironmentCall, Host
from scalerl.environments.protocol import Reply
from scalerl.errors import Rejected
from scalerl.recipe.episodes import ENVIRONMENT_LIBRARIES, Episodes


def played(name, texts, *, settings=None, row=None, seed=3):
    """Replies of an episode, the first text among them."""
    host = Host(name, settings or {}, 30.0)
    replies = [host.answer(EnvironmentCall(what="start", key=0, seed=seed, row=row or {}))]
    replies += [host.answer(EnvironmentCall(what="act", key=0, text=text)) for text in texts]
    return replies


def ends(replies):
    return [(reply.reward, reply.end) for reply in replies[1:]]


# --- without any library ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", ENVIRONMENT_LIBRARIES)
def test_a_missing_library_is_named_with_the_line_that_installs_it(library, monkeypatch):
    package = ENVIRONMENT_LIBRARIES[library]
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"scalerl.environments.{package.module}", raising=False)
    with pytest.raises(EnvironmentUnusable, match=rf"environment '{library}:x': .*pip install "):
        make_environment(f"{library}:x", {})


def test_a_recipe_names_the_line_for_a_library_that_is_not_installed(monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(ValueError, match=r"environment 'gem:game:X' needs the package gem-llm: pip install gem-llm"):
        Episodes(environment="gem:game:X")


def test_a_mistyped_id_is_answered_with_those_near_it():
    ids = ["Wordle-v0", "Wordle-v0-raw", "Sudoku-v0"]
    assert known_id("Sudoku-v0", ids) == "Sudoku-v0"
    with pytest.raises(Rejected, match=r"no such id; near it are Wordle-v0, Wordle-v0-raw$"):
        known_id("Wordel-v0", ids)
    with pytest.raises(Rejected, match=r"no such id; among its ids are Sudoku-v0, Wordle-v0, Wordle-v0-raw$"):
        known_id("qqq", ids)


class Stepped:
    """An environment with Gymnasium's methods that answers with what it is given."""

    def __init__(self, *steps):
        self.steps = iter(steps)

    def reset(self, seed):
        return f"seed {seed}", {"suffix": "the board"}

    def step(self, action):
        return (action, *next(self.steps))


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([(0.5, False, False, {}), (0.5, True, False, {})], "won"),
        ([(0.1, False, False, {})] * 9 + [(0.1, True, False, {})], "won"),  # ten tenths are less than 1 in floats
        ([(0.5, False, False, {}), (0.4, True, True, {})], "too_many_turns"),
        ([(0.5, False, False, {}), (-0.1, True, False, {})], "rules_broken"),
        ([(1.0, False, False, {}), (0.0, True, False, {})], "lost"),  # all is found, and then a mine
        ([(0.0, True, False, {})], "lost"),
        ([(0.0, True, True, {})], "lost"),  # one turn is all that it has
    ],
)
def test_an_end_of_gymnasium_is_told_by_the_sum_of_rewards_and_its_last_one(steps, expected):
    environment = SteppedText(Stepped(*steps), solved=1.0, rule_broken=-0.1)
    assert environment.start(7, {}) == "seed 7\nthe board"
    replies = [environment.act(f"move {number}") for number in range(len(steps))]
    assert [reply.end for reply in replies] == [None] * (len(steps) - 1) + [expected]
    assert replies[-1] == Reply(f"move {len(steps) - 1}", steps[-1][0], expected)


# --- reasoning-gym, which the tests have ------------------------------------------------------------------------------


def test_a_problem_of_reasoning_gym_is_an_episode_of_one_turn():
    settings = {"min_terms": 2, "max_terms": 2, "min_digits": 1, "max_digits": 1, "allow_negation": False}
    question = played("reasoning_gym:chain_sum", [], settings=settings)[0].text
    left, sign, right = question.rpartition(": ")[2].removesuffix(" =").split()
    answer = int(left) + int(right) if sign == "+" else int(left) - int(right)
    assert ends(played("reasoning_gym:chain_sum", [f" {answer} "], settings=settings)) == [(1.0, "won")]
    assert ends(played("reasoning_gym:chain_sum", [str(answer + 100)], settings=settings)) == [(-1.0, "lost")]
    assert len({played("reasoning_gym:chain_sum", [], settings=settings, seed=one)[0].text for one in range(9)}) > 4


def test_a_data_set_or_key_that_reasoning_gym_lacks_is_refused():
    with pytest.raises(EnvironmentUnusable, match=r"found dataset 'chain_summ'; reasoning-gym has .*chain_sum"):
        make_environment("reasoning_gym:chain_summ", {})
    with pytest.raises(EnvironmentUnusable, match=r"found config key 'term'; data set chain_sum has min_terms"):
        make_environment("reasoning_gym:chain_sum", {"term": 3})


# --- libraries that are here where they are installed -----------------------------------------------------------------


@pytest.fixture
def textarena():
    return pytest.importorskip("textarena")


HANOI = ["[A C]", "[A B]", "[C B]", "[A C]", "[B A]", "[B C]", "[A C]"]


def test_a_textarena_game_says_only_what_is_new_and_is_won_by_a_reward_of_1(textarena):
    replies = played("textarena:TowerOfHanoi-v0", HANOI)
    assert ends(replies) == [(0.0, None)] * 6 + [(1.0, "won")]
    assert replies[1].text == "You moved disk 1 from A to C.\nCurrent Board: \nA: [3, 2]\nB: []\nC: [1]\n."
    assert played("textarena:TowerOfHanoi-v0-raw", HANOI) == replies
    assert played("textarena:TowerOfHanoi-v0-train", HANOI) == replies


def test_a_textarena_game_ends_by_broken_rules_and_by_its_own_limit_of_turns(textarena):
    assert ends(played("textarena:TowerOfHanoi-v0", ["x", "y"])) == [(0.0, None), (0.0, "rules_broken")]
    late = played("textarena:TowerOfHanoi-v0", ["[A C]", "[A B]", "[C B]"], settings={"max_turns": 2})
    assert late[-1].end == "too_many_turns"
    assert "turn limit" in late[-1].text


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("TowerOfHanio-v0", {}, "the library has no such id; near it are TowerOfHanoi-v0"),
        ("QuantumTicTacToe-v0", {}, "the game has several players; training needs a game for one player"),
        ("TowerOfHanoi-v0", {"disks": 3}, "with settings {'disks': 3}: TypeError: "),
    ],
)
def test_a_textarena_game_that_cannot_be_played_says_why(name, settings, says, textarena):
    assert says in played(f"textarena:{name}", [], settings=settings)[0].text


def test_a_gem_game_shows_its_board_and_adds_up_its_rewards():
    pytest.importorskip("gem")
    name, settings = "gem:game:TowerofHanoi-v0-easy", {"num_disks": 2}
    replies = played(name, [r"\boxed{A B}", r"\boxed{A C}", r"\boxed{B C}"], settings=settings)
    assert ends(replies) == [(0.0, None), (0.0, None), (1.0, "won")]
    assert "C" in replies[1].text.split("\n", 1)[1]
    assert ends(played(name, ["none"], settings=settings)) == [(-0.1, "rules_broken")]


def test_a_skyrl_environment_is_made_from_its_row():
    pytest.importorskip("skyrl_gym")
    row = {
        "prompt": [{"role": "system", "content": "Add."}, {"role": "user", "content": "1 + 1 ="}],
        "reward_spec": {"ground_truth": "2"},
        "extra_info": {"max_turns": 2},
    }
    assert played("skyrl_gym:gsm8k", [], row=row)[0].text == "Add.\n\n1 + 1 ="
    assert ends(played("skyrl_gym:gsm8k", ["#### 2"], row=row)) == [(1.0, "won")]
    assert ends(played("skyrl_gym:gsm8k", ["#### 3"], row=row)) == [(0.0, "lost")]
    twice = ends(played("skyrl_gym:gsm8k_multi_turn", ["x", "y"], row=row))
    assert twice == [(0.0, None), (0.0, "too_many_turns")]
    assert "a row needs a prompt" in played("skyrl_gym:gsm8k", [])[0].text


def test_an_environment_of_gymnasium_without_text_is_refused():
    pytest.importorskip("gymnasium")
    with pytest.raises(EnvironmentUnusable, match=r"has Box.* where observations and actions must be .*Text"):
        make_environment("gymnasium:CartPole-v1", {})


def test_what_a_library_answers_is_plain_json():
    pytest.importorskip("gem")
    replies = played("gem:game:Mastermind-v0-easy", [r"\boxed{1 2}"])
    assert json.loads(json.dumps([[reply.text, reply.reward, reply.end] for reply in replies]))
