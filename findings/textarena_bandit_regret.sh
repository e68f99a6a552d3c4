#!/usr/bin/env bash
# textarena 0.7.4: Bandit-v0 pays the regret of the last choice. The best button earns 0, the worst earns most, and none earns 1.
# env.py compares the button with the whole table of means (button == game_state['ground_truth']), so no choice is the right one.
# Training on this reward teaches to press the worst button.
# Expected: 1 for the button with the highest mean, and less for others.
# Exit status 0 if it is as written here, 1 if the library behaves otherwise now.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check textarena==0.7.4
cd "$folder"
"$folder/venv/bin/python" - <<'PYTHON'
import sys
from importlib.metadata import version

import textarena

print("textarena", version("textarena"))


def reward_of(button):
    game = textarena.make("Bandit-v0-raw")
    game.reset(num_players=1, seed=3)
    while not game.step(f"[{button}]")[0]:
        pass
    rewards, facts = game.close()
    return rewards[0], facts[0]["reason"]


game = textarena.make("Bandit-v0-raw")
game.reset(num_players=1, seed=3)
means = game.state.game_state["ground_truth"]
earned = {}
for button in sorted(means, key=means.get, reverse=True):
    earned[button], reason = reward_of(button)
    print(f"{button:6} mean {means[button]:.3f} earns {earned[button]:.3f}: {reason}")
falling = sorted(means, key=means.get, reverse=True)
as_written = sorted(earned, key=earned.get) == falling and earned[falling[0]] == 0.0
print("expected: the first earns 1")
sys.exit(not as_written)
PYTHON
