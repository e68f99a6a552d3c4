#!/usr/bin/env bash
# reasoning-gym 0.1.25: curricula offer levels that their own data sets refuse, and levels that change nothing.
#   no level of knight_swap makes a data set; caesar_cipher, survo, modulo_grid and rubiks_cube have levels that do not
#   all levels of self_reference and of word_ladder make the same problems
#   the last level of maze, as of most sets with ranges, makes the problems of the level before
# Training with a curriculum stops with an AssertionError as soon as it succeeds, or reports a difficulty that never rose.
# Expected: every level makes a data set, and another one than the level before.
# Exit status 0 if it is as written here, 1 if the library behaves otherwise now.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check reasoning-gym==0.1.25
"$folder/venv/bin/python" -W ignore - <<'PYTHON'
import sys
from importlib.metadata import version

from reasoning_gym.factory import DATASETS, create_curriculum

SEEN = {  # x: refused, =: the problems of the level before, +: others
    "knight_swap": "xxxxx",
    "caesar_cipher": "++xx",
    "survo": "++xx",
    "modulo_grid": "+x++++",
    "rubiks_cube": "++++x",
    "self_reference": "+=========",
    "word_ladder": "+==",
    "maze": "+++=",
}


def levels(name):
    """One sign for each level, reached by raising every attribute by one."""
    curriculum, found, before = create_curriculum(name), "", None
    while True:
        try:
            source = DATASETS[name][0](curriculum.generate_configuration({"seed": 7, "size": 3}))
            made = [source[number]["question"] for number in range(3)]
            found += "=" if made == before else "+"
            before = made
        except AssertionError as error:
            found += "x"
            reasons.setdefault(name, str(error))
        if not any([curriculum.increment_attr_level(attribute) for attribute in curriculum._attributes]):
            return found


reasons = {}
print("reasoning-gym", version("reasoning-gym"), "levels: x refused, = the problems of the level before, + others")
as_written = True
for name, seen in SEEN.items():
    found = levels(name)
    as_written &= found == seen
    print(f"{name}: {found} {reasons.get(name, '')}; expected {'+' * len(found)}")
sys.exit(not as_written)
PYTHON
