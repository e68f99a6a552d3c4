#!/usr/bin/env bash
# The 15-puzzle of textarena 0.7.4 and of gem-llm 0.1.0: a board is the tiles in any order, and half of all orders cannot be solved.
# TextArena's cannot be won either: the move that solves it raises AttributeError, as SinglePlayerState has no set_winners.
# Expected: every board has a solution, and the last move of one ends the game with reward 1.
# Exit status 0 if it is as written here, 1 if a library behaves otherwise now.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check textarena==0.7.4 gem-llm==0.1.0
cd "$folder"
"$folder/venv/bin/python" - 2>/dev/null <<'PYTHON'
import sys
from importlib.metadata import version

import gem
import textarena

print("textarena", version("textarena"), "gem-llm", version("gem-llm"))
BOARDS = 400


def neighbours(board):  # of a board of two rows of two
    empty = board.index(None)
    for other in (empty ^ 1, empty ^ 2):
        moved = list(board)
        moved[empty], moved[other] = moved[other], None
        yield tuple(moved)


def reachable():
    seen, last = {(1, 2, 3, None)}, [(1, 2, 3, None)]
    while last:
        last = [new for board in last for new in neighbours(board) if new not in seen and not seen.add(new)]
    return seen


def has_solution(board):  # of four rows: inversions and the row of the gap, counted from below, have an odd sum
    tiles = [tile for tile in board if tile]
    inversions = sum(one > two for at, one in enumerate(tiles) for two in tiles[at:])
    return (inversions + 4 - board.index(None) // 4) % 2 == 1


def flat(board):
    return tuple(tile for row in board for tile in row)


def shuffled(seed):
    game = textarena.make("FifteenPuzzle-v0-raw")
    game.reset(num_players=1, seed=seed)
    return flat(game.board)


def shuffled_by_gem(seed):
    game = gem.make("game:FifteenPuzzle-v0-easy")
    game.reset(seed=seed)
    return flat(game.board)


solvable = reachable()
shares = {
    "textarena, 4 x 4": sum(has_solution(shuffled(seed)) for seed in range(BOARDS)) / BOARDS,
    "gem, 2 x 2": sum(shuffled_by_gem(seed) in solvable for seed in range(BOARDS)) / BOARDS,
}
for name, share in shares.items():
    print(f"{name}: {share:.2f} of {BOARDS} boards can be solved; expected: all")

game = textarena.make("FifteenPuzzle-v0-raw")
game.reset(num_players=1, seed=0)
game.board[:] = [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, None, 15]]
try:
    seen = f"{game.step('[left]')[0]}, {game.close()[0]}"
except AttributeError as error:
    seen = f"AttributeError: {error}"
print(f"textarena, the move that solves it: {seen}; expected: True, {{0: 1.0}}")
sys.exit(not (all(0.4 < share < 0.6 for share in shares.values()) and "set_winners" in seen))
PYTHON
