"""The bytes that each token of a pretrained tokenizer writes, independent of its neighbours.

    pieces_of(tokenizer, 151936, silent={151643, 151645}, where=folder)    (b"!", b'"', ..., b"\\xe2\\x80", ...)

The library's `decode` turns invalid UTF-8 into U+FFFD and strips spaces, so the text of a part depends on where it was
cut. Bytes do not: the pieces of consecutive tokens add up to the whole.
"""

import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerBase
from transformers.convert_slow_tokenizer import bytes_to_unicode

REPLACEMENT = "\ufffd".encode()
"""Text of ids beyond the vocabulary, which only the embedding has."""
PROBES = ("so 2 + 2 is\n\nfour, (a)b;", "</think>\n\n\\boxed{4}", "Grüße, 你好 🙂\t{x: [1]}")
"""Texts on which the pieces must agree with the library's `decode`."""
_BYTE = re.compile("<0x([0-9A-F]{2})>")


def pieces_of(
    tokenizer: PreTrainedTokenizerBase, size: int, *, silent: Collection[int], where: Path
) -> tuple[bytes, ...]:
    """Bytes of each of `size` ids, none for `silent` ones; raises ValueError if tokens have no text of their own."""
    names = {index: name for name, index in tokenizer.get_vocab().items()}
    backend = getattr(tokenizer, "backend_tokenizer", None)
    decoder = json.loads(backend.to_str())["decoder"] if backend is not None else None
    kinds = {part["type"] for part in _parts(decoder)}
    found = _of_byte_letters(names) if "ByteLevel" in kinds else _of_differences(tokenizer, names, where)
    pieces = tuple(b"" if index in silent else found.get(index, REPLACEMENT) for index in range(size))
    for text in PROBES:
        tokens = [token for token in tokenizer.encode(text, add_special_tokens=False) if token not in silent]
        ours = b"".join(pieces[token] for token in tokens).decode(errors="replace")
        theirs = tokenizer.decode(tokens, clean_up_tokenization_spaces=False)
        if ours.strip() != str(theirs).strip():
            raise ValueError(
                f"{where}: the tokenizer's tokens have no text of their own: {text!r} decodes to {theirs!r}, but token "
                f"by token to {ours!r}; use a byte-level or SentencePiece tokenizer"
            )
    return pieces


def _parts(decoder: Any) -> list[dict[str, Any]]:
    """The steps of a `tokenizers` decoder."""
    if decoder is None:
        return []
    return [part for one in decoder["decoders"] for part in _parts(one)] if "decoders" in decoder else [decoder]


def _of_byte_letters(names: dict[int, str]) -> dict[int, bytes]:
    """Bytes of byte-level tokens, which write each byte as a letter; a name with any other letter is plain text."""
    byte_of = {letter: byte for byte, letter in bytes_to_unicode().items()}
    return {
        index: bytes(byte_of[letter] for letter in name) if all(letter in byte_of for letter in name) else name.encode()
        for index, name in names.items()
    }


def _of_differences(tokenizer: PreTrainedTokenizerBase, names: dict[int, str], where: Path) -> dict[int, bytes]:
    """Text that a token adds after an ordinary one; `<0x0A>` is that byte."""
    anchor = tokenizer.encode("a", add_special_tokens=False)[-1:]
    before = _decoded(tokenizer, [anchor])[0]
    texts = _decoded(tokenizer, [[*anchor, index] for index in names])
    pieces: dict[int, bytes] = {}
    for (index, name), text in zip(names.items(), texts, strict=True):
        byte = _BYTE.fullmatch(name)
        if byte:
            pieces[index] = bytes.fromhex(byte[1])
        elif text.startswith(before):
            pieces[index] = text.removeprefix(before).encode(errors="replace")
        else:
            raise ValueError(
                f"{where}: the tokenizer's token {name!r} changes the text before it ({before!r} becomes {text!r}); "
                f"use a byte-level or SentencePiece tokenizer"
            )
    return pieces


def _decoded(tokenizer: PreTrainedTokenizerBase, rows: list[list[int]]) -> list[str]:
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        return backend.decode_batch(rows, skip_special_tokens=False)
    return [str(tokenizer.decode(row, clean_up_tokenization_spaces=False)) for row in rows]
