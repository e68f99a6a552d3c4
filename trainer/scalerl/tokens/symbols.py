"""One token per symbol, and five special tokens: the smallest vocabulary for the synthetic tasks.

SymbolTokenizer().encode("3:k9a<think>")    (8, 4, 25, 14, 15, 2)
"""

import re
from collections.abc import Sequence
from pathlib import Path

from scalerl.tokens.messages import Said, said_text
from scalerl.tokens.reader import END_THINK, THINK, Reader

PAD, EOS, COLON = "<pad>", "<eos>", ":"
SYMBOLS = "0123456789abcdefghijklmnopqrstuvwxyz"
VOCABULARY = (PAD, EOS, THINK, END_THINK, COLON, *SYMBOLS)
ID = {token: index for index, token in enumerate(VOCABULARY)}
PAD_ID, EOS_ID, THINK_ID, END_THINK_ID = ID[PAD], ID[EOS], ID[THINK], ID[END_THINK]
VOCABULARY_SIZE = 48
"""len(VOCABULARY) rounded up to a multiple of 16 for fast matrix products; spare ids are never trained."""

SYMBOL_PIECES = tuple(b"" if token in (PAD, EOS) else token.encode() for token in VOCABULARY)
SYMBOL_PIECES += (b"?",) * (VOCABULARY_SIZE - len(VOCABULARY))

_TOKENS = re.compile("</?think>|.", re.DOTALL)


class SymbolTokenizer:
    """Tokenizer of digits, lower-case letters, a colon and the thinking marks."""

    size = VOCABULARY_SIZE
    pad_id = PAD_ID
    eos_ids: tuple[int, ...] = (EOS_ID,)
    end_think: tuple[int, ...] = (END_THINK_ID,)
    doubts: tuple[str, ...] = ()
    rewritten_turns = ""

    def __init__(self, *, thinks: bool = True) -> None:
        self.reader = Reader(SYMBOL_PIECES, thinks=thinks)

    def encode(self, text: str) -> tuple[int, ...]:
        """Token ids; raises ValueError on a character outside the vocabulary."""
        tokens = _TOKENS.findall(text)
        if unknown := [token for token in tokens if token not in ID]:
            raise ValueError(
                f"{unknown[0]!r} in {text[:60]!r} is not one of the symbols {COLON}{SYMBOLS}; "
                "set `model.tokenizer: characters` for arbitrary text"
            )
        return tuple(ID[token] for token in tokens)

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of token ids; padding and ends of sequence are omitted, spare ids become "?"."""
        return self.reader.text(tokens)

    def prompt(self, question: Said) -> tuple[int, ...]:
        """The question, then the start of thinking, if the model thinks."""
        tokens = self.encode(said_text(question))
        return (*tokens, THINK_ID) if self.reader.thinks else tokens

    def next_turn(self, said: Said, *, after: int) -> tuple[int, ...]:
        """The end of the turn unless it has one, then what was said, as a prompt."""
        return (() if after in self.eos_ids else (EOS_ID,)) + self.prompt(said)

    def save(self, folder: Path) -> None:
        """Write a tokenizer.json for `transformers` and vLLM."""
        from tokenizers import Regex, Tokenizer, models, pre_tokenizers  # only saving needs it

        tokenizer = Tokenizer(models.WordLevel(ID, unk_token=PAD))
        tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), behavior="isolated")
        tokenizer.add_special_tokens([PAD, EOS, THINK, END_THINK])
        tokenizer.save(str(folder / "tokenizer.json"))
