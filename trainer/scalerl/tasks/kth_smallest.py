"""Name the k-th smallest symbol of a list of distinct symbols, thinking first.

    prompt    3:k9a2<think>          the 3rd smallest of k 9 a 2
    response  29a</think>a<eos>      a prefix of the sorted list, then the answer

Difficulty is the length of the list. Any thought is allowed; only the symbol after the thinking part is judged.
"""

import hashlib

import numpy as np

from scalerl.batch import Prompt, Status
from scalerl.recipe import KthSmallest
from scalerl.tokens import COLON, END_THINK_ID, EOS_ID, ID, SYMBOLS, THINK_ID, encode


class KthSmallestTask:
    """Prompts of all lengths in equal shares, split by hash: one residue class in eight is held out."""

    name = "kth_smallest"

    def __init__(self, settings: KthSmallest) -> None:
        self.settings = settings
        self.train, self.validation = self._draw()

    def _draw(self) -> tuple[tuple[Prompt, ...], tuple[Prompt, ...]]:
        rng = np.random.default_rng(0)
        settings = self.settings
        wanted = {"train": settings.train_prompts, "validation": settings.validation_prompts}
        found: dict[str, dict[str, Prompt]] = {"train": {}, "validation": {}}
        lengths = range(settings.min_length, settings.max_length + 1)
        attempt = 0
        while any(len(found[split]) < wanted[split] for split in wanted):
            prompt = self._prompt(rng, lengths[attempt % len(lengths)])
            split = "validation" if held_out(prompt.id) else "train"
            if prompt.id not in found[split] and len(found[split]) < wanted[split]:
                found[split][prompt.id] = prompt
            attempt += 1
            if attempt > 100 * sum(wanted.values()):
                raise ValueError(f"tasks: too few distinct prompts for {wanted}; raise symbols or max_length")
        return tuple(found["train"].values()), tuple(found["validation"].values())

    def _prompt(self, rng: np.random.Generator, length: int) -> Prompt:
        symbols = "".join(SYMBOLS[i] for i in rng.permutation(self.settings.symbols)[:length])
        k = int(rng.integers(1, length + 1))
        text = f"{SYMBOLS[k]}{COLON}{symbols}"
        return Prompt(
            task=self.name,
            id=text,
            tokens=(*encode(text), THINK_ID),
            answer=sorted(symbols)[k - 1],
            difficulty=length,
        )

    def verify(self, prompt: Prompt, response: list[int]) -> Status:
        """Right when exactly the answer and the end of the sequence follow the first end of thinking."""
        if END_THINK_ID not in response:
            return "unparsable"
        answer = response[response.index(END_THINK_ID) + 1 :]
        if not answer or answer[-1] != EOS_ID:
            return "unparsable"
        return "right" if answer[:-1] == [ID[prompt.answer]] else "wrong"

    def demonstrate(self, rng: np.random.Generator, noise: float) -> tuple[Prompt, tuple[int, ...]]:
        """A sorted prefix up to the k-th symbol, or the whole sorted list, each symbol replaced with chance `noise`.

        The answer is the k-th symbol of the written thought, so a noisy thought leads to a wrong answer.
        """
        prompt = self.train[int(rng.integers(len(self.train)))]
        symbols = prompt.id.split(COLON)[1]
        k = SYMBOLS.index(prompt.id[0])
        thought = sorted(symbols)[: k if rng.random() < 0.5 else None]
        for i in range(len(thought)):
            if rng.random() < noise:
                thought[i] = symbols[int(rng.integers(len(symbols)))]
        answer = thought[k - 1]
        return prompt, (*encode("".join(thought)), END_THINK_ID, ID[answer], EOS_ID)


def held_out(prompt_id: str) -> bool:
    """Whether a prompt belongs to the validation split, by the hash of its id alone."""
    return hashlib.sha256(prompt_id.encode()).digest()[0] % 8 == 0
