"""Text to token ids and back, as the libraries that load what we save have it."""

import pytest

from scalerl.generator.interruption_phrase import default_phrase
from scalerl.tokens import TOKENIZERS
from scalerl.tokens.characters import CharacterTokenizer
from scalerl.tokens.symbols import SymbolTokenizer

TEXTS = ("2+2?", "Zürich\n\tπ ≈ 3.14", "", "a<think>b</think>c", "<b>", "</think></think>")


@pytest.mark.parametrize("text", TEXTS)
def test_characters_bring_every_text_back(text):
    tokenizer = CharacterTokenizer()
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_characters_are_bytes_after_four_special_tokens():
    assert CharacterTokenizer().encode("2+2?<think>") == (54, 47, 54, 67, 2)
    assert CharacterTokenizer().encode("ü") == (0xC3 + 4, 0xBC + 4)
    assert CharacterTokenizer().prompt("a") == (101, 2)


def test_ends_and_padding_have_no_text_and_broken_bytes_read_as_the_replacement_character():
    tokenizer = CharacterTokenizer()
    assert tokenizer.decode([101, 1, 0, 0]) == "a"
    assert tokenizer.decode([0xC3 + 4, 101]) == "\N{REPLACEMENT CHARACTER}a"
    assert tokenizer.decode([270]) == "\N{REPLACEMENT CHARACTER}"


def test_the_saved_characters_encode_and_decode_alike(tmp_path):
    from transformers import PreTrainedTokenizerFast

    CharacterTokenizer().save(tmp_path)
    saved = PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    for text in TEXTS:
        ids = saved.encode(text, add_special_tokens=False)
        assert tuple(ids) == CharacterTokenizer().encode(text)
        assert saved.decode(ids) == text


@pytest.mark.parametrize("name", list(TOKENIZERS))
def test_every_interruption_ends_in_the_end_of_thinking(name):
    tokenizer = TOKENIZERS[name]()
    phrase = tokenizer.encode(default_phrase(tokenizer))
    assert phrase[-len(tokenizer.end_think) :] == tokenizer.end_think
    assert max(*phrase, *tokenizer.eos_ids, tokenizer.pad_id) < tokenizer.size


def test_symbols_refuse_what_they_cannot_write():
    with pytest.raises(ValueError, match=r"'A' in 'A1' is not one of the symbols .* `model.tokenizer: characters`"):
        SymbolTokenizer().encode("A1")
