"""One token per symbol and five special ones: the smallest vocabulary for the synthetic tasks.

SymbolTokenizer().encode("3:k9a<think>")    (8, 4, 25, 14, 15, 2)
"""

import re
from collections.abc import Sequence
from pathlib import Path

PAD, EOS, THINK, END_THINK, COLON = "<pad>", "<eos>", "<think>", "</think>", ":"
SYMBOLS = "0123456789abcdefghijklmnopqrstuvwxyz"
VOCABULARY = (PAD, EOS, THINK, END_THINK, COLON, *SYMBOLS)
ID = {token: index for index, token in enumerate(VOCABULARY)}
PAD_ID, EOS_ID, THINK_ID, END_THINK_ID = ID[PAD], ID[EOS], ID[THINK], ID[END_THINK]
VOCABULARY_SIZE = 48
"""Rounded up from len(VOCABULARY), because matrix products like multiples of 16; the spare ids are never trained."""

_TOKENS = re.compile("</?think>|.", re.DOTALL)


class SymbolTokenizer:
    """Digits, small letters, a colon and the thinking marks."""

    size = VOCABULARY_SIZE
    pad_id = PAD_ID
    eos_ids = (EOS_ID,)
    end_think = (END_THINK_ID,)
    interruption = END_THINK

    def encode(self, text: str) -> tuple[int, ...]:
        """Token ids; raises ValueError on a character outside the vocabulary."""
        tokens = _TOKENS.findall(text)
        if unknown := [token for token in tokens if token not in ID]:
            raise ValueError(
                f"{unknown[0]!r} in {text[:60]!r} is none of the symbols {COLON}{SYMBOLS}; "
                "`model.tokenizer: characters` can write any text"
            )
        return tuple(ID[token] for token in tokens)

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of token ids; padding and ends of sequence are left out, spare ids become "?"."""
        skipped = (PAD_ID, EOS_ID)
        return "".join(VOCABULARY[i] if i < len(VOCABULARY) else "?" for i in tokens if i not in skipped)

    def prompt(self, question: str) -> tuple[int, ...]:
        """The question, then the start of thinking."""
        return (*self.encode(question), THINK_ID)

    def save(self, folder: Path) -> None:
        """Write a tokenizer.json that `transformers` and vLLM load from the folder of a model."""
        from tokenizers import Regex, Tokenizer, models, pre_tokenizers  # only saving needs it

        tokenizer = Tokenizer(models.WordLevel(ID, unk_token=PAD))
        tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), behavior="isolated")
        tokenizer.add_special_tokens([PAD, EOS, THINK, END_THINK])
        tokenizer.save(str(folder / "tokenizer.json"))
