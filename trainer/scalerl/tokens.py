"""The character tokenizer of from-scratch models: one token a symbol, and five special ones.

encode("3:k9a<think>") -> (8, 4, 25, 14, 15, 2)
"""

from pathlib import Path

PAD, EOS, THINK, END_THINK, COLON = "<pad>", "<eos>", "<think>", "</think>", ":"
SYMBOLS = "0123456789abcdefghijklmnopqrstuvwxyz"
VOCABULARY = (PAD, EOS, THINK, END_THINK, COLON, *SYMBOLS)
ID = {token: index for index, token in enumerate(VOCABULARY)}
PAD_ID, EOS_ID, THINK_ID, END_THINK_ID = ID[PAD], ID[EOS], ID[THINK], ID[END_THINK]
VOCABULARY_SIZE = 48
"""Rounded up from len(VOCABULARY), because matrix products like multiples of 16; nothing teaches the spare ids."""


def encode(text: str) -> tuple[int, ...]:
    """Token ids of plain characters; raises KeyError on a character outside the vocabulary."""
    return tuple(ID[character] for character in text)


def decode(tokens: tuple[int, ...] | list[int]) -> str:
    """Text of token ids, special tokens written out."""
    return "".join(VOCABULARY[token] if token < len(VOCABULARY) else "?" for token in tokens)


def save_tokenizer(folder: Path) -> None:
    """Write a tokenizer.json that `transformers` and vLLM load from the folder of a model."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers  # only saving needs it

    tokenizer = Tokenizer(models.WordLevel(ID, unk_token=PAD))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), behavior="isolated")
    tokenizer.add_special_tokens([PAD, EOS, THINK, END_THINK])
    tokenizer.save(str(folder / "tokenizer.json"))
