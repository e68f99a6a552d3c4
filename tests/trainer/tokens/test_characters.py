"""One token per byte, in a file that `transformers` reads as we do."""

from scalerl.tokens.characters import CharacterTokenizer, letters_of_bytes


def test_letters_of_bytes_are_gpt_2s():
    from transformers.convert_slow_tokenizer import bytes_to_unicode

    assert letters_of_bytes() == bytes_to_unicode()


def test_what_is_saved_reads_as_it_is(tmp_path):
    from transformers import PreTrainedTokenizerFast

    CharacterTokenizer().save(tmp_path)
    theirs = PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    text = "2+2? é € \n\t\x00 naïve"
    assert tuple(theirs.encode(text)) == CharacterTokenizer().encode(text)
    assert theirs.decode(theirs.encode(text)) == text
