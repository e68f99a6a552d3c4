"""Write the k smallest symbols of a list of distinct symbols in order, thinking first.

    prompt    3:k9a2<think>            the three smallest of k 9 a 2
    response  29a</think>29a<eos>      a draft, then the answer

Difficulty is the length of the list. Any thought is allowed; only the text after the thinking part is judged. A prompt
whose answer is longer than the answer budget cannot be solved, so the budget keeps the pass rate below 1.
"""

from collections.abc import Iterator
from itertools import cycle

import numpy as np

from scalerl.recipe import KSmallest
from scalerl.rollout import Judgement, Prompt
from scalerl.tasks.responses import demonstrated, ended_answer
from scalerl.tasks.split import draw_split
from scalerl.tasks.task import Written
from scalerl.tokens import Tokenizer
from scalerl.tokens.symbols import COLON, SYMBOLS


class KSmallestTask:
    """Prompts of all lengths in equal shares, split by hash: one residue class in eight is held out."""

    num_judges = 1
    has_demonstrations = True
    newly_left_out: tuple[str, ...] = ()

    def __init__(self, settings: KSmallest, tokenizer: Tokenizer) -> None:
        self.name, self.settings, self.tokenizer = settings.title, settings, tokenizer
        # Padding and ends write nothing, but are not part of the right answer.
        self._silent = {tokenizer.pad_id, *tokenizer.eos_ids}
        wanted = {"train": settings.train_prompts, "validation": settings.validation_prompts}
        self.train, self.validation = draw_split(wanted, self._candidates(), settings.title)

    def _candidates(self) -> Iterator[Prompt]:
        """Endless prompts, with all lengths in turn."""
        rng = np.random.default_rng(0)
        for length in cycle(range(self.settings.min_length, self.settings.max_length + 1)):
            symbols = "".join(SYMBOLS[i] for i in rng.permutation(self.settings.symbols)[:length])
            k = int(rng.integers(1, length + 1))
            text = f"{SYMBOLS[k]}{COLON}{symbols}"
            yield Prompt(
                task=self.name,
                id=text,
                tokens=self.tokenizer.prompt(text),
                answer="".join(sorted(symbols)[:k]),
                difficulty=length,
            )

    def judge(self, prompt: Prompt, response: list[int]) -> Judgement:
        """Right if exactly the answer and the end of the sequence follow the first end of thinking."""
        answer = ended_answer(self.tokenizer, response)
        if answer is None:
            return Judgement("unparsable")
        is_right = answer.text == prompt.answer and self._silent.isdisjoint(answer.tokens)
        return Judgement("right" if is_right else "wrong")

    def written(self, prompt: Prompt) -> Written:
        """The prompt itself and its answer."""
        return Written(where=f"task {self.name}, prompt {prompt.id}", text=prompt.id, answer=prompt.answer)

    def demonstrate(self, rng: np.random.Generator, noise: float) -> tuple[Prompt, tuple[int, ...]]:
        """A draft (the answer or the whole sorted list), each symbol replaced with probability `noise`; then the
        answer.

        The answer repeats the first k symbols of the draft, so a noisy draft leads to a wrong answer.
        """
        prompt = self.train[int(rng.integers(len(self.train)))]
        symbols = prompt.id.split(COLON)[1]
        k = SYMBOLS.index(prompt.id[0])
        draft = sorted(symbols)[: k if rng.random() < 0.5 else None]
        thought = [symbols[int(rng.integers(len(symbols)))] if rng.random() < noise else symbol for symbol in draft]
        return prompt, demonstrated(self.tokenizer, "".join(thought), "".join(thought[:k]))
