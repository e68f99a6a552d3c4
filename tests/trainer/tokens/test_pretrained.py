"""A pretrained model's tokenizer: its template, its ends, and thinking marks that merge with nothing."""

import pytest
from trainer.tiny_text_model import END, END_OF_TEXT, SPARE_ROWS, TEMPLATE, text_model
from transformers import AutoTokenizer

from scalerl.evaluation.kept_rollouts import spans
from scalerl.generator.interruption_phrase import PHRASE
from scalerl.tokens.pretrained import PretrainedTokenizer


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    folder = text_model(tmp_path_factory.mktemp("model") / "qwen")
    return PretrainedTokenizer(folder), AutoTokenizer.from_pretrained(folder)


def test_a_question_becomes_a_users_turn_with_thinking_opened(both):
    ours, theirs = both
    text = "<|im_start|>user\nWhat is 2 + 2?<|im_end|>\n<|im_start|>assistant\n<think>\n"
    assert theirs.decode(ours.prompt("What is 2 + 2?")) == text
    assert ours.prompt("What is 2 + 2?") == tuple(theirs.encode(text, add_special_tokens=False))


def test_a_template_that_opens_thinking_itself_is_left_alone(tmp_path):
    template = TEMPLATE.replace("assistant\\n", "assistant\\n<think>\\n").replace("assistant\n", "assistant\n<think>\n")
    ours = PretrainedTokenizer(text_model(tmp_path / "qwen", template=template))
    assert ours.decode(ours.prompt("Hi")).count("<think>") == 1
    assert ours.decode(ours.prompt("Hi")).endswith("assistant\n<think>\n")


def test_without_a_template_the_question_stays_as_it_is(tmp_path):
    ours = PretrainedTokenizer(text_model(tmp_path / "base", template=None))
    assert ours.decode(ours.prompt("Hi there")) == "Hi there<think>\n"


def test_ends_are_the_tokenizers_own_first_and_those_of_the_generation_settings(both):
    ours, theirs = both
    assert ours.eos_ids == tuple(theirs.convert_tokens_to_ids([END, END_OF_TEXT]))
    assert ours.pad_id == theirs.convert_tokens_to_ids(END_OF_TEXT)
    assert ours.size == len(theirs) + SPARE_ROWS


def test_the_end_of_thinking_is_one_token_where_the_vocabulary_has_it(both, tmp_path):
    ours, theirs = both
    assert ours.end_think == (theirs.convert_tokens_to_ids("</think>"),)
    without = PretrainedTokenizer(text_model(tmp_path / "plain", thinks=False))
    assert len(without.end_think) > 1
    assert without.decode(without.end_think) == "</think>"
    for one in (ours, without):
        phrase = one.encode(PHRASE)
        assert phrase[-len(one.end_think) :] == one.end_think
        assert one.decode(phrase) == PHRASE
        # Neither merges with what stands before or after, so the generator finds it wherever it is written.
        tokens = one.encode("x </think>\ny")
        assert any(tokens[i : i + len(one.end_think)] == one.end_think for i in range(len(tokens)))


def test_text_comes_back_without_ends_and_padding(both):
    ours, _ = both
    tokens = (*ours.encode("<think>so 4</think>Grüße 4"), *ours.eos_ids, ours.pad_id)
    assert ours.decode(tokens) == "<think>so 4</think>Grüße 4"
    assert ours.decode((*ours.encode("a"), ours.size - 1, *ours.encode("b"))) == "a\ufffdb"


def test_its_files_are_copied_beside_a_model(both, tmp_path):
    ours, theirs = both
    ours.save(tmp_path)
    again = AutoTokenizer.from_pretrained(tmp_path)
    assert again.encode("a<think>") == theirs.encode("a<think>")
    assert again.chat_template == TEMPLATE


def test_a_tokenizer_larger_than_the_embedding_is_refused(tmp_path):
    folder = text_model(tmp_path / "qwen")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens(["one", "two", "three", "four"])
    tokenizer.save_pretrained(folder)
    with pytest.raises(ValueError, match="they do not belong together"):
        PretrainedTokenizer(folder)


def test_a_kept_prompt_shows_the_ends_of_turns_and_a_kept_answer_does_not(both):
    ours, theirs = both
    prompt = ours.prompt("Hi")
    assert [span["text"] for span in spans(ours.reader, prompt)] == [theirs.decode(prompt)]
    answer = [*ours.encode("4"), ours.eos_ids[0]]
    assert [span["text"] for span in spans(ours.reader, answer, [0, 0])] == ["4"]
