"""Write the k smallest symbols of a list of distinct symbols in order, thinking first.

    prompt    3:k9a2<think>            the three smallest of k 9 a 2
    response  29a</think>29a<eos>      a draft, then the answer

Difficulty is the length of the list. Any thought is allowed; only what follows the thinking part is judged. A prompt
whose answer is longer than the answer budget cannot be solved, so the budget sets a ceiling below 1.
"""

import hashlib

import numpy as np

from scalerl.batch import Outcome, Prompt
from scalerl.recipe import KSmallest
from scalerl.tokens import Tokenizer
from scalerl.tokens.symbols import COLON, SYMBOLS


class KSmallestTask:
    """Prompts of all lengths in equal shares, split by hash: one residue class in eight is held out."""

    name = "k_smallest"
    num_judges = 1

    def __init__(self, settings: KSmallest, tokenizer: Tokenizer) -> None:
        self.settings, self.tokenizer = settings, tokenizer
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
            tokens=self.tokenizer.prompt(text),
            answer="".join(sorted(symbols)[:k]),
            difficulty=length,
        )

    def verify(self, prompt: Prompt, response: list[int]) -> Outcome:
        """Right when exactly the answer and the end of the sequence follow the first end of thinking."""
        answer = after_thinking(response, self.tokenizer.end_think)
        if answer is None or not answer or answer[-1] not in self.tokenizer.eos_ids:
            return "unparsable"
        return "right" if tuple(answer[:-1]) == self.tokenizer.encode(prompt.answer) else "wrong"

    def demonstrate(self, rng: np.random.Generator, noise: float) -> tuple[Prompt, tuple[int, ...]]:
        """A draft of the answer, or the whole sorted list, each symbol replaced with chance `noise`; then the answer.

        The answer repeats the first k symbols of the draft, so a noisy draft leads to a wrong answer.
        """
        prompt = self.train[int(rng.integers(len(self.train)))]
        symbols = prompt.id.split(COLON)[1]
        k = SYMBOLS.index(prompt.id[0])
        thought = sorted(symbols)[: k if rng.random() < 0.5 else None]
        for i in range(len(thought)):
            if rng.random() < noise:
                thought[i] = symbols[int(rng.integers(len(symbols)))]
        draft, answer = (self.tokenizer.encode("".join(part)) for part in (thought, thought[:k]))
        return prompt, (*draft, *self.tokenizer.end_think, *answer, self.tokenizer.eos_ids[0])


def after_thinking(response: list[int], end_think: tuple[int, ...]) -> list[int] | None:
    """The tokens after the first end of thinking; None where there is none."""
    size = len(end_think)
    for start in range(len(response) - size + 1):
        if tuple(response[start : start + size]) == end_think:
            return response[start + size :]
    return None


def held_out(prompt_id: str) -> bool:
    """Whether a prompt belongs to the validation split, by the hash of its id alone."""
    return hashlib.sha256(prompt_id.encode()).digest()[0] % 8 == 0
