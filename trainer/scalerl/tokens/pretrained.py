"""The tokenizer in a pretrained model's folder, which puts its chat template around every question.

PretrainedTokenizer(folder).prompt("2 + 2?")    <|im_start|>user\n2 + 2?<|im_end|>\n<|im_start|>assistant\n<think>\n
"""

import json
import re
import shutil
from collections.abc import Sequence
from functools import cached_property, lru_cache
from itertools import zip_longest
from pathlib import Path

from transformers import AutoTokenizer, PreTrainedTokenizerBase

from scalerl.tokens.chat_template import QUESTION, SAID, ChatTemplate
from scalerl.tokens.messages import Said
from scalerl.tokens.reader import END_THINK, THINK, Reader
from scalerl.tokens.token_bytes import pieces_of

FILES = ("tokenizer*", "special_tokens_map.json", "added_tokens.json", "vocab.*", "merges.txt", "*.jinja", "*.model")
"""Patterns of tokenizer files in all supported families."""

_PARTS = re.compile("(</?think>)")


class PretrainedTokenizer:
    """Text to the model's own tokens; `<think>` and `</think>` are never merged with neighbouring text."""

    def __init__(self, folder: Path, *, thinks: bool = True) -> None:
        self.folder = folder
        self._tokenizer = _read(folder)
        self.size = _rows(folder)
        most = max(self._tokenizer.get_vocab().values(), default=-1)
        if most >= self.size:
            raise ValueError(
                f"{folder}: the tokenizer has token ids up to {most}, but the model's embedding has {self.size} rows; "
                f"they do not belong together"
            )
        self._template = ChatTemplate(self._tokenizer, folder, thinks=thinks)
        self.eos_ids = self._ends()
        pad = self._tokenizer.pad_token_id
        self.pad_id = pad if isinstance(pad, int) else self.eos_ids[0]
        self.end_think = self.encode(END_THINK)
        silent = {self.pad_id, *self.eos_ids}
        pieces = pieces_of(self._tokenizer, self.size, silent=silent, where=folder)
        marks = {token: str(self._tokenizer.convert_ids_to_tokens(token)).encode() for token in silent}
        self.reader = Reader(pieces, thinks=thinks, marks=marks)
        if thinks and self.reader.answer(self.end_think) is None:
            raise ValueError(
                f"{folder}: the tokenizer writes {END_THINK!r} as {self.decode(self.end_think)!r}, so the end of "
                f"thinking cannot be found; set generation.thinking to 'none', or use a tokenizer with these characters"
            )

    def _ends(self) -> tuple[int, ...]:
        """Ends of sequence, in order: the tokenizer's own, those in the generation settings, the end of a turn."""
        ends = [] if self._tokenizer.eos_token_id is None else [self._tokenizer.eos_token_id]
        settings = self.folder / "generation_config.json"
        if settings.exists():
            try:
                named = json.loads(settings.read_text()).get("eos_token_id")
            except ValueError as error:
                raise ValueError(f"{settings} is not JSON ({error})") from None
            ends += named if isinstance(named, list) else [] if named is None else [named]
        if not ends:
            raise ValueError(
                f"{self.folder}: neither the tokenizer nor generation_config.json names an end of sequence, so no "
                f"answer would ever end; set eos_token in tokenizer_config.json, or eos_token_id in "
                f"generation_config.json"
            )
        self.doubts = tuple(self._template.doubts(ends))
        if self._template.end_id is not None:
            ends.append(self._template.end_id)
        ids = [end for end in ends if isinstance(end, int) and 0 <= end < self.size]
        if outside := [end for end in ends if end not in ids]:
            raise ValueError(
                f"{self.folder}: eos_token_id {outside[0]!r} is not among the model's {self.size} token ids"
            )
        return tuple(dict.fromkeys(ids))

    def encode(self, text: str) -> tuple[int, ...]:
        """Token ids of `text`, without the special tokens that the tokenizer would add around it."""
        tokens: list[int] = []
        for part in _PARTS.split(text):
            if part:
                tokens += self._tokenizer.encode(part, add_special_tokens=False)
        return tuple(tokens)

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of token ids, without a space that `encode` added; ids that only the embedding has become U+FFFD."""
        text = self.reader.text(tokens)
        return text.removeprefix(" ") if self._begins_with_space else text

    @cached_property
    def _begins_with_space(self) -> bool:
        """True if encoding adds a leading space, as SentencePiece vocabularies do."""
        return self.reader.text(self.encode("a")) == " a"

    def prompt(self, question: Said) -> tuple[int, ...]:
        """The question as a user's turn, or unchanged if the tokenizer has no chat template.

        The start of thinking follows if the model thinks."""
        return self.encode(self._opened(self._template.turn(question)))

    def _opened(self, text: str) -> str:
        """Text up to the model's turn, with its thinking opened if it thinks."""
        opened = text.rstrip().endswith(THINK)
        if self.reader.thinks:
            return text if opened else f"{text}{THINK}\n"
        if opened:
            raise ValueError(
                f"{self.folder}: the chat template opens thinking with {THINK!r}, so a response is not all answer, as "
                f"generation.thinking 'none' requires; set generation.thinking to a number of tokens"
            )
        return text

    def next_turn(self, said: Said, *, after: int) -> tuple[int, ...]:
        """What the chat template writes between two turns of the model, with its end of a turn unless that is there."""
        tokens, end = self.encode(self._opened(self._template.between_turns(said))), self._template.end_id
        if end is None:
            return tokens if after in self.eos_ids or self._template.exists else (self.eos_ids[0], *tokens)
        return tokens[tokens.index(end) + 1 :] if after == end else tokens

    @property
    def rewritten_turns(self) -> str:
        """Difference between the template's own conversation and one put together turn by turn; empty without one."""
        template = self._template
        if not template.exists:
            return ""
        thought = f"{THINK}\nIt is a sum.\n{END_THINK}\n\n" if self.reader.thinks else ""
        answers = [f"{thought}It is {number}." for number in (4, 6)]
        put = self._opened(template.turn(QUESTION))
        for answer, said in zip(answers, (SAID, "And 4 + 4?"), strict=True):
            put = re.sub(rf"{THINK}\s*\Z", "", put) + answer
            put += self._opened(template.between_turns(said))
        whole = self._opened(template.conversation(QUESTION, answers[0], SAID, answers[1], "And 4 + 4?"))
        # Space beside an answer is the model's own to write.
        beside = re.compile(rf"\s*({'|'.join(map(re.escape, answers))})\s*")
        ours, theirs = (beside.sub(r"\1", text) for text in (put, whole))
        if ours == theirs:
            return ""
        same = next(i for i, (a, b) in enumerate(zip_longest(ours, theirs)) if a != b)
        return (
            f"{self.folder}: the chat template writes earlier turns in another way once later ones follow: "
            f"{ours[max(0, same - 20) : same + 60]!r} becomes {theirs[max(0, same - 20) : same + 60]!r}"
        )

    def save(self, folder: Path) -> None:
        """Copy the tokenizer files for `transformers` and vLLM."""
        for pattern in (*FILES, "generation_config.json"):
            for path in self.folder.glob(pattern):
                shutil.copyfile(path, folder / path.name)


@lru_cache(maxsize=4)
def read_tokenizer(path: str, digest: str, thinks: bool) -> PretrainedTokenizer:
    """Tokenizer of the folder with this content; cached, since reading a large vocabulary is slow."""
    return PretrainedTokenizer(Path(path), thinks=thinks)


def _read(folder: Path) -> PreTrainedTokenizerBase:
    """The library's tokenizer; raises ValueError if it cannot be read."""
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder)
    except Exception as error:  # the library raises many types for a damaged file
        raise ValueError(f"{folder}: cannot read the tokenizer: {type(error).__name__}: {error}") from error
    assert isinstance(tokenizer, PreTrainedTokenizerBase)
    return tokenizer


def _rows(folder: Path) -> int:
    """Number of rows in the model's embedding, also if the configuration nests the text part."""
    config = json.loads((folder / "config.json").read_text())
    rows = config.get("vocab_size", config.get("text_config", {}).get("vocab_size"))
    if not isinstance(rows, int):
        raise ValueError(f"{folder}: config.json lacks vocab_size, the number of rows in the model's embedding")
    return rows
