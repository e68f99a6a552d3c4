"""One token per UTF-8 byte, and four special tokens: any text, at the price of longer sequences.

CharacterTokenizer().encode("2+2?<think>")    (54, 47, 54, 67, 2)
"""

import re
from collections.abc import Sequence
from pathlib import Path

from scalerl.tokens.messages import Said, said_text
from scalerl.tokens.reader import END_THINK, THINK, Reader

SPECIAL_TOKENS = ("<pad>", "<eos>", THINK, END_THINK)
SIZE = 272
"""4 + 256 ids, rounded up to a multiple of 16; spare ids are never trained."""

CHARACTER_PIECES = (b"", b"", THINK.encode(), END_THINK.encode(), *(bytes([byte]) for byte in range(256)))
CHARACTER_PIECES += (b"\xff",) * (SIZE - len(CHARACTER_PIECES))

_PRINTABLE = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
_TOKENS = re.compile("</?think>|.+?(?=</?think>|$)", re.DOTALL)


def letters_of_bytes() -> dict[int, str]:
    """The letter that stands for each byte in GPT-2's vocabulary: itself if printable, else the next from 256 on."""
    others = iter(range(256, 512))
    return {byte: chr(byte if byte in _PRINTABLE else next(others)) for byte in range(256)}


class CharacterTokenizer:
    """Tokenizer of padding, end of sequence, thinking marks and bytes."""

    size = SIZE
    pad_id = 0
    eos_ids: tuple[int, ...] = (1,)
    end_think: tuple[int, ...] = (3,)
    doubts: tuple[str, ...] = ()
    rewritten_turns = ""

    def __init__(self, *, thinks: bool = True) -> None:
        self.reader = Reader(CHARACTER_PIECES, thinks=thinks)

    def encode(self, text: str) -> tuple[int, ...]:
        """Token ids of UTF-8 text."""
        tokens: list[int] = []
        for part in _TOKENS.findall(text):
            if part in (THINK, END_THINK):
                tokens.append(SPECIAL_TOKENS.index(part))
            else:
                tokens.extend(byte + len(SPECIAL_TOKENS) for byte in part.encode())
        return tuple(tokens)

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of token ids; invalid UTF-8 and spare ids become the replacement character."""
        return self.reader.text(tokens)

    def prompt(self, question: Said) -> tuple[int, ...]:
        """The question, then the start of thinking, if the model thinks."""
        return self.encode(said_text(question) + (THINK if self.reader.thinks else ""))

    def next_turn(self, said: Said, *, after: int) -> tuple[int, ...]:
        """The end of the turn unless it has one, then what was said, as a prompt."""
        return (() if after in self.eos_ids else self.eos_ids[:1]) + self.prompt(said)

    def save(self, folder: Path) -> None:
        """Write a tokenizer.json for `transformers` and vLLM."""
        from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # only saving needs it

        letters = letters_of_bytes()
        vocabulary = {name: index for index, name in enumerate(SPECIAL_TOKENS)}
        vocabulary |= {letters[byte]: byte + len(SPECIAL_TOKENS) for byte in range(256)}
        tokenizer = Tokenizer(models.BPE(vocabulary, []))
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        tokenizer.decoder = decoders.ByteLevel()
        tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
        tokenizer.save(str(folder / "tokenizer.json"))
