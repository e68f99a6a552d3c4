"""Text to token ids and back. A map of the room:

symbols     digits and letters, one token each: the synthetic tasks of scales `smoke` and `laptop`
characters  every byte of UTF-8, one token each: any text, for a model made from scratch
pretrained  the tokenizer and chat template in a pretrained model's folder
chat_template  a question as a user's turn, the model's turn opened after it
pieces      the bytes that each of its tokens writes
reader      what tokens write, where thinking ends in it, and the answer
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from scalerl.recipe import Model
from scalerl.tokens.characters import CharacterTokenizer
from scalerl.tokens.reader import Reader
from scalerl.tokens.symbols import SymbolTokenizer


class Tokenizer(Protocol):
    """What a model reads and writes. `decode` leaves out padding and ends of sequence, but not `</think>`."""

    @property
    def size(self) -> int:
        """Rows of the embedding; every id lies below it."""
        ...

    @property
    def pad_id(self) -> int:
        """Fills rows up; never sampled on purpose."""
        ...

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """Each of them ends a sequence; demonstrations end with the first."""
        ...

    @property
    def end_think(self) -> tuple[int, ...]:
        """`</think>` as demonstrations and interruptions write it; a model may write it with other tokens."""
        ...

    @property
    def doubts(self) -> tuple[str, ...]:
        """What is odd about its chat template, as sentences."""
        ...

    @property
    def reader(self) -> Reader:
        """Reads responses: their text, and where thinking ends in it."""
        ...

    @property
    def interruption(self) -> str:
        """Text that is forced when thinking is cut short, unless the recipe has its own; it ends in `</think>`."""
        ...

    def encode(self, text: str) -> tuple[int, ...]:
        """Token ids of `text`, `<think>` and `</think>` as their own tokens; ValueError for what has none."""
        ...

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of token ids."""
        ...

    def prompt(self, question: str) -> tuple[int, ...]:
        """Token ids of the prompt that asks `question` and, if the model thinks, opens the thinking part."""
        ...

    def save(self, folder: Path) -> None:
        """Write what `transformers` and vLLM load beside a model."""
        ...


TOKENIZERS = {"symbols": SymbolTokenizer, "characters": CharacterTokenizer}


def make_tokenizer(model: Model, *, thinks: bool = True) -> Tokenizer:
    """The tokenizer of the model that `model` describes; `thinks` is that of the recipe's `generation`."""
    if model.type == "pretrained":
        from scalerl.tokens.pretrained import read_tokenizer  # imports `transformers`, which takes seconds

        return read_tokenizer(model.path, model.path_sha256, thinks)
    return TOKENIZERS[model.tokenizer](thinks=thinks)
