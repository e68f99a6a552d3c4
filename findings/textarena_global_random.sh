#!/usr/bin/env bash
# textarena 0.7.4: reset(seed) of a game seeds Python's global random, and games roll their dice from it.
#   after a reset the trainer's own draws, of a replay or a shuffle, are the same each time
#   two games in one process change each other: dice after a reset elsewhere are those of the other game's seed
# So a batch of games is not made by its seeds, but by the order in which they are played.
# Expected: a seed belongs to its game.
# Exit status 0 if it is as written here, 1 if the library behaves otherwise now.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check textarena==0.7.4
cd "$folder"
"$folder/venv/bin/python" -W ignore - 2>/dev/null <<'PYTHON'
import random
import re
import sys
from importlib.metadata import version

import textarena


def started(seed):
    game = textarena.make("PigDice-v0-raw")
    game.reset(num_players=2, seed=seed)
    return game


def roll(game):
    said = len(game.state.logs)
    game.get_observation()
    game.step("[roll]")
    text = str(game.state.logs[said + 1 :])
    return int(re.findall(r"\d", text.split("history")[-1].split("Available")[0])[-1]) if "history" in text else 1



alone = [roll(game) for game in [started(7)] for _ in range(4)]
game = started(7)
beside = []
for _ in range(4):
    started(3)  # another game of the batch begins
    beside.append(roll(game))
draws = []
for _ in range(3):
    started(7)
    draws.append(round(random.random(), 6))
print("textarena", version("textarena"))
print(f"dice of a game of seed 7 alone: {alone}; while games of seed 3 begin beside it: {beside}; expected the same")
print(f"the trainer's own random.random() after each of three resets: {draws}; expected three numbers")
sys.exit(not (alone != beside and len(set(beside)) == 1 and len(set(draws)) == 1))
PYTHON
