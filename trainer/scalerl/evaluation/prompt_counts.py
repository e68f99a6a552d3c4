"""Right answers to each prompt at one evaluation, as a short text: the field `prompt_counts` of a run-log row.

    "8:8705"        eight judged answers to each of four prompts: 8, 7, 0 and 5 of them right
    "8:8704:8887"   the last prompt has only seven judged answers

A count has one digit to base 36, or as many as the largest count needs. Prompts are in the task's order, which depends
only on the recipe: the order is the same at every evaluation and in every run, for any seed.

Counts are a field of the row because checkpoints mark the log and a resume truncates it; a separate file would need its
own mark. A thousand prompts with sixteen samples each take a kilobyte and are readable without a tool. MLflow and
tables use only the numbers in a row, so they skip this field.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

DIGIT_OF_CODE = np.zeros(256, dtype=int)
"""The digit to base 36 of each character's code."""
DIGIT_OF_CODE[np.frombuffer(b"0123456789abcdefghijklmnopqrstuvwxyz", dtype=np.uint8)] = np.arange(36)
IS_DIGIT = np.zeros(256, dtype=bool)
IS_DIGIT[np.frombuffer(b"0123456789abcdefghijklmnopqrstuvwxyz", dtype=np.uint8)] = True
COUNTS_PATTERN = re.compile(r"([1-9][0-9]*):([0-9a-z]+)(?::([0-9a-z]+))?")


@dataclass(frozen=True, kw_only=True, eq=False)
class PromptCounts:
    """Integers of shape (num_prompts,): PromptCounts(right=np.array([8, 7, 0]), judged=np.array([8, 8, 8]))."""

    right: np.ndarray
    judged: np.ndarray
    """Number of answers that the verifier could judge; only they count."""

    @classmethod
    def of(cls, prompt_ids: Iterable[str], judged: Iterable[tuple[str, bool]]) -> "PromptCounts":
        """Counts from judged answers in any order, each with its prompt's id and True if it is right."""
        places = {prompt_id: place for place, prompt_id in enumerate(prompt_ids)}
        counts = np.zeros((2, len(places)), dtype=int)
        for prompt_id, is_right in judged:
            counts[:, places[prompt_id]] += (is_right, 1)
        return cls(right=counts[0], judged=counts[1])

    @classmethod
    def from_text(cls, text: str) -> "PromptCounts":
        """Inverse of `to_text`; raises ValueError for invalid text."""
        found = COUNTS_PATTERN.fullmatch(text)
        if found is None:
            raise ValueError(f"found {text[:60]!r}; counts look like '8:8705' or '8:8704:8887'")
        most, width = int(found[1]), _width(int(found[1]))
        right = _numbers(found[2].encode(), width)
        judged = np.full(right.size, most) if found[3] is None else _numbers(found[3].encode(), width)
        is_consistent = (
            right.max() <= most
            if found[3] is None
            else right.size == judged.size and judged.max() == most and bool((right <= judged).all())
        )
        if not is_consistent:
            raise ValueError(f"found {text[:60]!r}, whose counts are inconsistent")
        return cls(right=right, judged=judged)

    @classmethod
    def from_texts(cls, texts: Sequence[str]) -> "PromptCounts | None":
        """Counts of several evaluations, both of shape (num_texts, num_prompts), found together; None unless each text
        is valid and as long as the first, with that many judged answers to every prompt."""
        first = COUNTS_PATTERN.fullmatch(texts[0])
        if first is None or first[3] is not None:
            return None
        start, size, most = f"{first[1]}:", len(texts[0]), int(first[1])
        codes = "".join(text[len(start) :] for text in texts).encode("ascii", "replace")
        is_alike = all(len(text) == size and text.startswith(start) for text in texts)
        if not is_alike or not IS_DIGIT[np.frombuffer(codes, dtype=np.uint8)].all() or len(first[2]) % _width(most):
            return None
        right = _numbers(codes, _width(most)).reshape(len(texts), -1)
        return None if right.max() > most else cls(right=right, judged=np.full(right.shape, most))

    def to_text(self) -> str:
        """The field's text; at least one answer must have been judged."""
        most = int(self.judged.max())
        parts = [str(most), _text(self.right, _width(most))]
        if np.any(self.judged != most):
            parts.append(_text(self.judged, _width(most)))
        return ":".join(parts)


def _width(most: int) -> int:
    return len(np.base_repr(most, 36))


def _text(counts: np.ndarray, width: int) -> str:
    return "".join(np.base_repr(int(count), 36).lower().zfill(width) for count in counts)


def _numbers(codes: bytes, width: int) -> np.ndarray:
    if len(codes) % width:
        raise ValueError(f"found {len(codes)} digits; each count has {width}")
    digits = DIGIT_OF_CODE[np.frombuffer(codes, dtype=np.uint8)]
    return digits if width == 1 else digits.reshape(-1, width) @ 36 ** np.arange(width)[::-1]
