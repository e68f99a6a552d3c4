"""Right answers to each prompt at one evaluation, in one short text: the field `prompt_counts` of a row of the run log.

    "8:8705"        eight judged answers to each of four prompts: 8, 7, 0 and 5 of them right
    "8:8704:8887"   of the last prompt only seven could be judged

A count is a digit to base 36, or as many as the largest needs. The prompts stand in the order in which the task has
them. The recipe alone decides it: it is the same at every evaluation and in every run of a task, whatever its seed.

It is a field of the row because the log is what a checkpoint marks and a resume cuts back: a file of its own would need
a mark of its own. A thousand prompts with sixteen samples each take a kilobyte, and one can read it without a tool.
MLflow and tables take numbers from a row and so leave it out.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

COUNTS_PATTERN = re.compile(r"([1-9][0-9]*):([0-9a-z]+)(?::([0-9a-z]+))?")


@dataclass(frozen=True, kw_only=True, eq=False)
class PromptCounts:
    """Whole numbers of shape (num_prompts,): PromptCounts(right=np.array([8, 7, 0]), judged=np.array([8, 8, 8]))."""

    right: np.ndarray
    judged: np.ndarray
    """Answers that the verifier could judge; only they count."""

    @classmethod
    def of(cls, prompt_ids: Iterable[str], judged: Iterable[tuple[str, bool]]) -> "PromptCounts":
        """Of judged answers, each with the id of its prompt and whether it is right, in any order."""
        places = {prompt_id: place for place, prompt_id in enumerate(prompt_ids)}
        counts = np.zeros((2, len(places)), dtype=int)
        for prompt_id, is_right in judged:
            counts[:, places[prompt_id]] += (is_right, 1)
        return cls(right=counts[0], judged=counts[1])

    @classmethod
    def from_text(cls, text: str) -> "PromptCounts":
        """What `to_text` wrote; ValueError where it cannot have been that."""
        found = COUNTS_PATTERN.fullmatch(text)
        if found is None:
            raise ValueError(f"found {text[:60]!r}; counts look like '8:8705' or '8:8704:8887'")
        most, width = int(found[1]), _width(int(found[1]))
        right = _numbers(found[2], width)
        judged = np.full(right.size, most) if found[3] is None else _numbers(found[3], width)
        if right.size != judged.size or judged.max() != most or np.any(right > judged):
            raise ValueError(f"found {text[:60]!r}, whose counts do not agree with each other")
        return cls(right=right, judged=judged)

    def to_text(self) -> str:
        """The field; at least one answer must have been judged."""
        most = int(self.judged.max())
        parts = [str(most), _text(self.right, _width(most))]
        if np.any(self.judged != most):
            parts.append(_text(self.judged, _width(most)))
        return ":".join(parts)


def _width(most: int) -> int:
    """Digits of the largest count."""
    return len(np.base_repr(most, 36))


def _text(counts: np.ndarray, width: int) -> str:
    return "".join(np.base_repr(int(count), 36).lower().zfill(width) for count in counts)


def _numbers(text: str, width: int) -> np.ndarray:
    if len(text) % width:
        raise ValueError(f"found {len(text)} digits; each count has {width}")
    code = np.frombuffer(text.encode(), dtype=np.uint8).astype(int).reshape(-1, width)
    digits = np.where(code < ord("a"), code - ord("0"), code - ord("a") + 10)
    return digits @ 36 ** np.arange(width)[::-1]
