#!/usr/bin/env bash
# reasoning-gym 0.1.25: data sets of neighbouring seeds are nearly one data set. Item i of seed s is item i - 1 of seed s + 1.
# Training on seed 42 and evaluating on seed 43, each of 1,000 items, shares 999 of them; runs with seeds 1, 2, 3 train on
# nearly the same problems. Items draw from Random(seed + index).
# Expected: another seed gives other items, up to chance.
# Exit status 0 if it is as written here, 1 if the library behaves otherwise now.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check reasoning-gym==0.1.25
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import sys
from importlib.metadata import version

import reasoning_gym

print("reasoning-gym", version("reasoning-gym"))
as_written = True
for name in ("chain_sum", "countdown", "letter_counting", "simple_equations", "spell_backward", "propositional_logic"):
    train, held_out, far = (
        [item["question"] for item in reasoning_gym.create_dataset(name, size=200, seed=seed)] for seed in (42, 43, 4_200)
    )
    shared, by_chance = len(set(train) & set(held_out)), len(set(train) & set(far))
    as_written &= train[1:] == held_out[:-1]
    print(f"{name}: seeds 42 and 43 share {shared} of 200 questions, seeds 42 and 4200 {by_chance}; expected about as many")
sys.exit(not as_written)
PYTHON
