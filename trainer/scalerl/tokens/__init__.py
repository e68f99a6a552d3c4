"""Text to token ids and back. A map of the room:

symbols     one token per digit and letter, for the synthetic tasks of scales `smoke` and `laptop`
characters  one token per UTF-8 byte, so any text; for models made from scratch
pretrained  the tokenizer and chat template in a pretrained model's folder
messages    what is said to the policy: a user's text, or messages with their roles
chat_template  a question as a user's turn, followed by the opening of the model's turn
token_bytes the bytes that each token of a pretrained tokenizer writes
reader      the text of tokens, the end of thinking in it, and the answer
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from scalerl.recipe import Model
from scalerl.tokens.characters import CharacterTokenizer
from scalerl.tokens.messages import Said
from scalerl.tokens.reader import Reader
from scalerl.tokens.symbols import SymbolTokenizer


class Tokenizer(Protocol):
    """Text to tokens and back. `decode` omits padding and ends of sequence, but keeps `</think>`."""

    size: int
    """Number of embedding rows; every id is below it."""
    pad_id: int
    """Id that pads rows; never sampled on purpose."""
    eos_ids: tuple[int, ...]
    """Ids that end a sequence; demonstrations end with the first."""
    end_think: tuple[int, ...]
    """`</think>` as demonstrations and interruptions write it; a model may use other tokens for it."""
    doubts: tuple[str, ...]
    """Oddities of the chat template, as sentences."""
    reader: Reader
    """Reader of responses: their text, and the end of thinking in it."""

    def encode(self, text: str) -> tuple[int, ...]:
        """Token ids of `text`, with `<think>` and `</think>` as separate tokens; raises ValueError for unknown text."""
        ...

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of token ids."""
        ...

    def prompt(self, question: Said) -> tuple[int, ...]:
        """Token ids of the prompt for `question`; opens the thinking part if the model thinks."""
        ...

    def next_turn(self, said: Said, *, after: int) -> tuple[int, ...]:
        """Token ids between two turns of the policy: the end of the turn unless its last token `after` is that, what
        was said to it, and the opening of its next turn. Raises ValueError for unknown text."""
        ...

    @property
    def rewritten_turns(self) -> str:
        """How the chat template writes earlier turns in another way once later ones follow, as a sentence; empty if it
        does not. Raises ValueError if it writes no conversation."""
        ...

    def save(self, folder: Path) -> None:
        """Write tokenizer files for `transformers` and vLLM beside a model."""
        ...


TOKENIZERS = {"symbols": SymbolTokenizer, "characters": CharacterTokenizer}


def make_tokenizer(model: Model, *, thinks: bool = True) -> Tokenizer:
    """Tokenizer of a model; `thinks` comes from the recipe's `generation`."""
    if model.type == "pretrained":
        from scalerl.tokens.pretrained import read_tokenizer  # imports `transformers`, which takes seconds

        return read_tokenizer(model.path, model.path_sha256, thinks)
    return TOKENIZERS[model.tokenizer](thinks=thinks)
