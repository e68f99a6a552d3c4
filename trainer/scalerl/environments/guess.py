"""The game of this package: find a number between two bounds, told after each guess whether it lies higher or lower.

    1-32      16      higher      24      lower      20      found

Halving the range finds any of n numbers in log2(n) + 1 turns, rounded down, so fewer turns than that bound the share of
episodes that can be won.
"""

import random
from collections.abc import Mapping
from typing import Any, Literal

from scalerl.environments.protocol import Reply
from scalerl.errors import Rejected

GUESS_ANSWERS = {"words": ("higher", "lower", "found"), "marks": ("+", "-", "=")}


class Guess:
    """Find a number from 1 to `numbers`: 1 for the number, -1 for what is no number from 1 to `numbers`.

    With `rewards` of `each guess`, a guess also earns the share of the numbers still possible that it ruled out, times
    a tenth. `says` are the words of the answers, or single marks, which a model made from scratch reads sooner.
    """

    def __init__(
        self,
        numbers: int = 32,
        rewards: Literal["end", "each guess"] = "end",
        says: Literal["words", "marks"] = "words",
    ) -> None:
        if not 2 <= numbers <= 9999:
            raise Rejected(f"numbers is {numbers}; must be 2 to 9,999")
        if rewards not in ("end", "each guess"):
            raise Rejected(f"rewards is {rewards!r}; must be 'end' or 'each guess'")
        if says not in GUESS_ANSWERS:
            raise Rejected(f"says is {says!r}; must be 'words' or 'marks'")
        self.numbers, self.pays_each = numbers, rewards == "each guess"
        self.higher, self.lower, self.found = GUESS_ANSWERS[says]

    def start(self, seed: int, row: Mapping[str, Any]) -> str:
        """The bounds, as `1-32`."""
        self.secret, self.low, self.high = random.randint(1, self.numbers), 1, self.numbers
        return f"1-{self.numbers}"

    def act(self, text: str) -> Reply:
        """Compare a guess with the number."""
        said = text.strip()
        if not (said.isascii() and said.isdigit() and 1 <= int(said) <= self.numbers):
            return Reply(f"a number from 1 to {self.numbers}", reward=-1.0, end="rules_broken")
        guess = int(said)
        if guess == self.secret:
            return Reply(self.found, reward=1.0, end="won")
        before = self.high - self.low + 1
        if guess < self.secret:
            self.low = max(self.low, guess + 1)
        else:
            self.high = min(self.high, guess - 1)
        ruled_out = (before - (self.high - self.low + 1)) / before
        return Reply(
            self.higher if guess < self.secret else self.lower, reward=0.1 * ruled_out if self.pays_each else 0.0
        )

    def close(self) -> None:
        """Nothing is held."""

    def demonstrate(self) -> str:
        """Any number, whatever was said: the form of a guess, without the play."""
        return str(random.randint(1, self.numbers))
