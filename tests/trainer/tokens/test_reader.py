"""The end of thinking is found in the text of a response, however its tokens are cut, by generator and judge alike."""

from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from trainer.tiny_text_model import END, text_model
from transformers import PreTrainedTokenizerFast

from scalerl.tokens.pretrained import PretrainedTokenizer
from scalerl.tokens.reader import ENDED, Reader, StatedAnswer
from scalerl.tokens.token_bytes import pieces_of

ALPHABET = pre_tokenizers.ByteLevel.alphabet()
CORPORA = {
    "next lines": ["so</think>\n\nThe answer", "a>\n\nb", "hm </think>\n\n4"] * 9,
    "neighbours": ["sink>k> k></", "i </ </thin </th", "think think", "x></think>y<</"] * 9,
    "code": ["std::vector<int>\n", "a << b </div>\n", "<thing></thing>", "</thinker>"] * 9,
    "bytes": ["你好", "Grüße 🙂🙂", "<é>", "</ünk>"] * 9,
}
PARTS = [
    *["</think>", "</", "think", ">", ">\n\n", "</th", "ink>", "<", "<<", "</think", "/think>", "k>", "<think>", " "],
    *["\n", "é", "🙂", "你", "4", "The answer", "</thinker>", "<</think>>"],
]  # fmt: skip


def byte_level(corpus, size=320):
    inner = Tokenizer(models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.decoder = decoders.ByteLevel()
    inner.train_from_iterator(
        corpus, trainers.BpeTrainer(vocab_size=size, initial_alphabet=ALPHABET, show_progress=False)
    )
    return PreTrainedTokenizerFast(tokenizer_object=inner)


def sentence_piece():
    """As Llama 2: words begin with "▁", unknown characters are bytes, decoding strips the first space."""
    letters = sorted(set("".join(line for lines in CORPORA.values() for line in lines)) - set("你好🙂") - {" "})
    names = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *letters, "</", "▁</", "think", "k>", ">\n\n"]
    inner = Tokenizer(models.Unigram([(name, -float(i)) for i, name in enumerate(names)], unk_id=0, byte_fallback=True))
    inner.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    inner.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="<unk>")


@pytest.fixture(scope="module", params=[*CORPORA, "sentence piece"])
def vocabulary(request):
    """A trained tokenizer and the reader of its responses."""
    tokenizer = sentence_piece() if request.param == "sentence piece" else byte_level(CORPORA[request.param])
    pieces = pieces_of(tokenizer, len(tokenizer) + 3, silent={0}, where=Path(request.param))
    return tokenizer, Reader(pieces, thinks=True)


def random_texts(count, seed):
    rng = np.random.default_rng(seed)
    return ["".join(PARTS[i] for i in rng.integers(len(PARTS), size=rng.integers(1, 30))) for _ in range(count)]


def test_what_tokens_write_is_what_the_library_decodes(vocabulary):
    tokenizer, reader = vocabulary
    for text in random_texts(200, seed=0):
        tokens = [token for token in tokenizer.encode(text, add_special_tokens=False) if token != 0]
        assert reader.text(tokens).strip() == tokenizer.decode(tokens, clean_up_tokenization_spaces=False).strip()


def test_the_split_is_that_of_the_text_for_any_tokens(vocabulary):
    tokenizer, reader = vocabulary
    rng = np.random.default_rng(1)
    ends = 0
    for text in random_texts(400, seed=2):
        # Any two tokenizations in a row, and any tokens at all among them: a policy samples what it likes.
        cut = int(rng.integers(len(text) + 1))
        tokens = [one for part in (text[:cut], text[cut:]) for one in tokenizer.encode(part, add_special_tokens=False)]
        place = int(rng.integers(len(tokens) + 1))
        tokens[place:place] = rng.integers(len(reader.pieces), size=rng.integers(3)).tolist()
        check(reader, tokens)
        ends += reader.answer(tokens) is not None
    assert 50 < ends < 390


def test_the_split_is_that_of_the_text_where_the_mark_is_cut_anywhere(vocabulary):
    tokenizer, reader = vocabulary
    text = "so é</think>\n\n4🙂"
    for first in range(len(text)):
        for second in range(first, len(text)):
            parts = (text[:first], text[first:second], text[second:])
            tokens = [one for part in parts for one in tokenizer.encode(part, add_special_tokens=False)]
            check(reader, tokens)


def check(reader, tokens):
    """The answer against the decoded text of all tokens, and the table against the answer at every prefix."""
    whole = b"".join(reader.pieces[token] for token in tokens)
    _, mark, after = whole.partition(b"</think>")
    found = reader.answer(tokens)
    assert found is None if not mark else found is not None and found.text == after.decode(errors="replace")
    assert ("</think>" in reader.text(tokens)) == bool(mark)
    if found is not None:
        assert reader.text(tokens).endswith(found.text)
    written = 0
    for count, token in enumerate(tokens, start=1):
        written = int(reader.table[token, written])
        assert (written == ENDED) == (reader.answer(tokens[:count]) is not None)
    assert written == reader.written(tokens)


def test_an_answer_begins_after_the_token_that_ends_thinking():
    reader = Reader((b"so", b"</", b"think", b">\n\n4", b"2", b"", b"a</think>b", b"c</think>d"), thinks=True)
    assert reader.answer([0, 1, 2, 3, 4, 5]) == StatedAnswer(text="\n\n42", tokens=[4, 5])
    assert reader.answer([0, 1, 2, 4, 3]) is None
    assert reader.answer([1, 5, 2, 5, 3]) == StatedAnswer(text="\n\n4", tokens=[])
    assert reader.answer([6, 7]) == StatedAnswer(text="bc</think>d", tokens=[7])  # only the first end counts


def test_without_thinking_the_whole_response_is_the_answer():
    reader = Reader((b"so</think>", b"4", b""), thinks=False)
    assert reader.answer([0, 1, 2]) == StatedAnswer(text="so</think>4", tokens=[0, 1, 2])


def test_a_character_that_is_cut_by_an_interruption_does_not_hide_the_end(tmp_path):
    ours = PretrainedTokenizer(text_model(tmp_path / "model", thinks=False))
    first_byte = ours.encode("é")[:1]
    assert first_byte != ours.encode("é")
    answer = ours.reader.answer([*first_byte, *ours.encode("time is up </think>4")])
    assert answer is not None
    assert answer.text == "4"


def test_a_tokenizer_that_cannot_write_the_end_of_thinking_is_refused_unless_the_model_does_not_think(tmp_path):
    folder = text_model(tmp_path / "model")
    inner = Tokenizer(
        models.BPE({letter: i for i, letter in enumerate(["<unk>", END, *sorted(set(ALPHABET) - {"<"})])}, [])
    )
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.decoder = decoders.ByteLevel()
    inner.model.unk_token = "<unk>"
    PreTrainedTokenizerFast(tokenizer_object=inner, eos_token=END, unk_token="<unk>").save_pretrained(folder)
    (folder / "generation_config.json").unlink()
    with pytest.raises(ValueError, match=r"writes '</think>' as '.*/think>', so the end of thinking cannot be found"):
        PretrainedTokenizer(folder)
    answers = PretrainedTokenizer(folder, thinks=False)
    assert answers.reader.text(answers.encode("4 > 3")) == "4 > 3"
