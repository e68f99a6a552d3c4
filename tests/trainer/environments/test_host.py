"""What happens in the process of environments: own random numbers, a time limit, and replies that are checked."""

import random
import re
import time

import numpy as np
import pytest
from trainer.own_games import own_task

from scalerl.environments.host import EnvironmentCall, Host
from scalerl.environments.protocol import Reply


def host_of(task):
    return Host(task.environment, task.settings, task.time_limit_s)


def started(host, key, seed=0):
    return host.answer(EnvironmentCall(what="start", key=key, seed=seed))


def act(host, key, text):
    return host.answer(EnvironmentCall(what="act", key=key, text=text))


def boards(host, seeds):
    """What the episodes of these seeds say, played turn by turn beside each other."""
    said = [[started(host, key, seed).text] for key, seed in enumerate(seeds)]
    for turn in range(5):
        for key, texts in enumerate(said):
            texts.append(act(host, key, f"turn {turn}").text)
            random.random()
            np.random.random()  # as others in this process do
    return said


def test_sixteen_episodes_in_one_process_say_what_each_says_alone(tmp_path):
    task = own_task(tmp_path, "Dice")
    together = boards(host_of(task), range(16))
    assert together == [boards(host_of(task), [seed])[0] for seed in range(16)]
    assert len({tuple(said) for said in together}) == 16


def test_the_first_draws_of_an_episode_are_those_of_its_seed(tmp_path):
    expected = f"{random.Random(3).random()} {np.random.RandomState(3).random_sample()}"
    assert started(host_of(own_task(tmp_path, "Dice")), 0, seed=3).text == expected


def test_the_game_of_the_package_is_the_same_alone_and_among_fifteen_others():
    def played(seeds):
        host = Host("guess", {"numbers": 9999}, 10.0)
        for key, seed in enumerate(seeds):
            started(host, key, seed)
        guesses = [1 << bit for bit in range(13)]
        return [[act(host, key, str(guess)) for guess in guesses] for key in range(len(seeds))]

    assert played(range(16)) == [played([seed])[0] for seed in range(16)]


FAULTS = {
    "raise": r"my_games.py:\d+: Faulty raised ValueError: no such move: raise",
    "text": "Faulty raised TypeError: act returned a str; must return a Reply",
    "number": r"act returned Reply\(text=5, .*a Reply has a text and a number as its reward",
    "reward": r"act returned Reply\(text='x', reward='1'.*a Reply has a text and a number",
    "infinite": "act returned the reward inf; must be finite",
    "end": "act returned the end 'victory'; must be won, lost, rules_broken",
}


@pytest.mark.parametrize("text", FAULTS)
def test_a_faulty_answer_ends_its_own_episode_with_the_reason(text, tmp_path):
    host = host_of(own_task(tmp_path, "Faulty"))
    started(host, 0)
    started(host, 1)
    reply = act(host, 0, text)
    assert reply.end == "error"
    assert re.search(FAULTS[text], reply.text), reply.text
    assert act(host, 1, "x") == Reply("yes")


def test_a_call_past_its_time_limit_ends_its_episode_as_timed_out(tmp_path):
    host = host_of(own_task(tmp_path, "Faulty", time_limit_s=1))
    started(host, 0)
    began = time.monotonic()
    assert act(host, 0, "sleep") == Reply("took more than 1 s", end="timed_out")
    assert time.monotonic() - began < 30
    assert act(host, 0, "x") == Reply("yes")


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("NumberFirst", {}, "start returned a int; must return the first text"),
        ("Faulty", {"at_start": "raise"}, r"my_games.py:\d+: Faulty raised ValueError: no such move: raise"),
        ("NoAct", {}, "NoAct has no method act"),
        ("NeedsLevel", {"level": 9}, "NeedsLevel raised ValueError: level is 9; must be 1 to 3"),
        ("NeedsLevel", {}, "NeedsLevel raised TypeError: .* missing 1 required positional argument: 'level'"),
        ("Missing", {}, r"my_games.py:1: defines no function 'Missing'; it has Reply, Dice"),
    ],
)
def test_an_episode_that_cannot_start_says_why(name, settings, says, tmp_path):
    reply = started(host_of(own_task(tmp_path, name, settings=settings)), 0)
    assert reply.end == "error"
    assert re.search(says, reply.text), reply.text
