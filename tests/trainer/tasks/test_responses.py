"""A right answer of a model from elsewhere is right, with and without thinking, whatever its tokens."""

import json

import numpy as np
import pytest
from trainer.tiny_text_model import TEMPLATE, text_model

from scalerl.recipe import KSmallest, Math, Modular
from scalerl.tasks import make_task
from scalerl.tokens.pretrained import PretrainedTokenizer
from scalerl.tokens.symbols import SymbolTokenizer


@pytest.fixture
def problems(tmp_path):
    path = tmp_path / "problems.jsonl"
    rows = ({"question": f"What is {n} + 1?", "answer": f"{n} and 1 are {n + 1}\n#### {n + 1}"} for n in range(40))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return Math(path=str(path))


@pytest.mark.parametrize("has_mark", [True, False])
def test_a_right_answer_is_right_with_thinking_and_without(tmp_path, problems, has_mark):
    folder = text_model(tmp_path / "qwen", thinks=has_mark)
    for thinks, before in ((True, "one more, so </think>\n\n"), (True, "</think>"), (False, ""), (False, "It is ")):
        tokenizer = PretrainedTokenizer(folder, thinks=thinks)
        task = make_task(problems, tokenizer)
        prompt = task.train[0]
        for answer, outcome in ((prompt.answer, "right"), (str(int(prompt.answer) + 1), "wrong")):
            text = f"{before}\\boxed{{{answer}}}"
            # As one text, as a tokenizer that knows nothing of marks writes it, and letter by letter.
            whole = tokenizer._tokenizer.encode(text, add_special_tokens=False)
            letters = [token for letter in text for token in tokenizer.encode(letter)]
            for tokens in (tokenizer.encode(text), whole, letters):
                assert task.judge(prompt, [*tokens, tokenizer.eos_ids[0]]).outcome == outcome
    assert task.judge(prompt, list(tokenizer.encode("no"))).outcome == "unparsable"


@pytest.mark.parametrize("thinks", [True, False])
def test_a_demonstration_is_right_and_read_as_it_was_written(tmp_path, problems, thinks):
    own, theirs = SymbolTokenizer(thinks=thinks), PretrainedTokenizer(text_model(tmp_path / "q"), thinks=thinks)
    rng = np.random.default_rng(0)
    response, prompt = (), None
    for settings, tokenizer in ((KSmallest(), own), (Modular(), own), (problems, theirs)):
        task = make_task(settings, tokenizer)
        for _ in range(10):
            prompt, response = task.demonstrate(rng, noise=0.0)
            assert task.judge(prompt, list(response)).outcome == "right"
            assert ("</think>" in tokenizer.decode(response)) == thinks
            assert ("<think>" in tokenizer.decode(prompt.tokens)) == thinks
    assert prompt is not None
    assert " are " in theirs.decode(response)
    assert theirs.decode(response).endswith(f"\\boxed{{{prompt.answer}}}")


def test_a_template_that_opens_thinking_is_refused_where_there_is_none(tmp_path):
    opening = TEMPLATE.replace("assistant\n{% endif %}", "assistant\n<think>\n{% endif %}")
    assert opening != TEMPLATE
    tokenizer = PretrainedTokenizer(text_model(tmp_path / "r1", template=opening), thinks=False)
    with pytest.raises(ValueError, match="the chat template opens thinking with '<think>'"):
        tokenizer.prompt("Hi")


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ raise_exception('roles must alternate') }}", "fails on a single user's turn .roles must alternate"),
        ("{% for x in %}", "fails on a single user's turn"),
        ("{{ messages[3].content }}", "fails on a single user's turn"),
        ("{{ messages[0].content + 1 }}", "fails on a single user's turn"),
        ("<|im_start|>assistant\n", "omits the question 'What is 2"),
    ],
)
def test_a_broken_template_is_named(tmp_path, template, message):
    folder = text_model(tmp_path / "qwen", template=template)
    with pytest.raises(ValueError, match=message):
        PretrainedTokenizer(folder)
