"""Environments of a user's own for tests, in a file beside the recipe that names them."""

from pathlib import Path

from scalerl.recipe.episodes import Episodes, OwnEnvironment

GAMES = '''\
import os
import random
import sys
import time

import numpy

from scalerl.environments import Reply

COUNT = 0


class Dice:
    """Draws from both generators in every call, and says what it drew."""

    def start(self, seed, row):
        return f"{random.random()} {numpy.random.random()}"

    def act(self, text):
        drawn = f"{text} {random.random()} {numpy.random.random()}"
        return Reply(drawn, end="lost" if text == "stop" else None)


class Faulty:
    """Does what its answer says."""

    def __init__(self, at_start=""):
        self.at_start = at_start

    def start(self, seed, row):
        self.act(self.at_start)
        return "go on"

    def act(self, text):
        global COUNT
        if text == "raise":
            raise ValueError(f"no such move: {text}")
        if text == "sleep":
            time.sleep(60)
        if text == "swallow":
            while True:
                try:
                    time.sleep(60)
                except BaseException:
                    pass
        if text == "exit":
            os._exit(7)
        if text == "print":
            print("noise")
            os.write(1, b"noise")
            sys.stderr.write("noise")
            return Reply(f"read {sys.stdin.read()!r}")
        if text == "text":
            return "just a text"
        if text == "number":
            return Reply(5)
        if text == "reward":
            return Reply("x", reward="1")
        if text == "infinite":
            return Reply("x", reward=float("inf"))
        if text == "end":
            return Reply("x", end="victory")
        if text == "count":
            COUNT += 1
            return Reply(str(COUNT))
        return Reply("yes")


class Shaky:
    """Won by an even digit; every third board cannot be played, and every second held-out one."""

    def start(self, seed, row):
        self.seed = seed
        return "even"

    def act(self, text):
        if self.seed % 3 == 0 and self.seed < 1_000_000:
            raise ValueError(f"no board {self.seed}")
        if self.seed % 2 and self.seed >= 1_000_000:
            raise ValueError(f"no view of {self.seed}")
        won = text in ("0", "2", "4", "6", "8")
        return Reply("yes" if won else "no", reward=float(won), end="won" if won else "lost")


class Sets(Faulty):
    def start(self, seed, row):
        return " ".join({str(number) for number in range(99)})


class Rounds:
    """Is won after some answers, each of which takes some seconds; may say what nobody can repeat.

    With a path it answers when that file is there.
    """

    def __init__(self, rounds=3, seconds=0.0, draws=False, path=""):
        self.rounds, self.seconds, self.draws, self.path = rounds, seconds, draws, path

    def start(self, seed, row):
        return "go"

    def act(self, text):
        while self.path and not os.path.exists(self.path):
            time.sleep(0.01)
        time.sleep(self.seconds)
        self.rounds -= 1
        said = os.urandom(2).hex() if self.draws else "on"
        return Reply(said, reward=0.1 * (len(text) % 3), end="won" if self.rounds == 0 else None)


class Gate:
    """Answers when a file is there."""

    def __init__(self, path):
        self.path = path

    def start(self, seed, row):
        return "go"

    def act(self, text):
        while not os.path.exists(self.path):
            time.sleep(0.01)
        return Reply("on")


class NoAct:
    def start(self, seed, row):
        return "hello"


class NumberFirst(Faulty):
    def start(self, seed, row):
        return 5


class NeedsLevel(Faulty):
    def __init__(self, level):
        if level > 3:
            raise ValueError(f"level is {level}; must be 1 to 3")


class Leaver(Faulty):
    def __init__(self):
        os._exit(3)
'''


def own_task(folder: Path, environment: str, more: str = "", **settings: object) -> Episodes:
    """A task of the class of this name in a file with `more` classes."""
    (folder / "my_games.py").write_text(GAMES + more)
    own = OwnEnvironment(function=f"my_games:{environment}", folder=str(folder))
    return Episodes.model_validate({"environment": own, **settings})
