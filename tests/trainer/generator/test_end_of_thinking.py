"""Where a generator ends thinking, forces it and counts the answer, when the vocabulary merges `</think>` with more."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from trainer.tokens.test_reader import CORPORA, byte_level

from scalerl.generator.generator import decode_all
from scalerl.generator.interruption_phrase import default_phrase
from scalerl.generator.request import NEVER, Request
from scalerl.generator.torch_generator import TorchGenerator
from scalerl.model.policy import Policy
from scalerl.recipe import Generation
from scalerl.rollout import Prompt
from scalerl.tokens.reader import Reader
from scalerl.tokens.symbols import SymbolTokenizer
from scalerl.tokens.token_bytes import pieces_of

EOS = 0
THINKING, ANSWER = 40, 6


class Script:
    """A policy that writes given tokens, whatever it reads: one row at a time, after a prompt of one token."""

    device = torch.device("cpu")
    keeps_idle_rows = True

    def __init__(self, size: int) -> None:
        self.size, self.tokens = size, [EOS]
        self.kv = torch.zeros(1, 1, 1, 2, 1, 1)

    def new_cache(self, **_: Any) -> "Script":
        return self

    def taken(self, rows: int, positions: int) -> torch.Tensor:
        return self.kv

    def put(self, kept: torch.Tensor) -> None:
        pass

    def exported_weights(self) -> dict[str, torch.Tensor]:
        return {}

    def import_weights(self, weights: Any) -> None:
        pass

    def logits(self, tokens_n: torch.Tensor, position_n: torch.Tensor, *prefills: Any) -> torch.Tensor:
        logits = torch.full((1, self.size), -1e9)
        logits[0, self.tokens[int(position_n[0])]] = 0.0
        return logits


@pytest.fixture(scope="module", params=list(CORPORA))
def vocabulary(request):
    """A trained tokenizer, and what of it a generator needs; its id 0 ends a sequence."""
    inner = byte_level(CORPORA[request.param])
    size = len(inner)
    reader = Reader(pieces_of(inner, size, silent={EOS}, where=Path(request.param)), thinks=True)
    return inner, SimpleNamespace(
        size=size,
        eos_ids=(EOS,),
        reader=reader,
        interruption="time is up </think>",
        encode=lambda text: tuple(inner.encode(text, add_special_tokens=False)),
    )


def rollout_of(tokenizer, tokens, *, cut=NEVER, thinks=True, stop_at=None):
    """What becomes of a policy that would write these tokens; with `stop_at` it is taken over by another generator."""
    own = SimpleNamespace(**{**vars(tokenizer), "reader": Reader(tokenizer.reader.pieces, thinks=thinks)})
    script = Script(own.size)
    script.tokens = [*tokens, *[EOS] * 200]
    settings = Generation(thinking=THINKING if thinks else "none", answer=ANSWER)

    def new() -> TorchGenerator:
        return TorchGenerator(cast(Policy, script), settings, cast(Any, own), slots=1, max_prompt=1)

    generator = new()
    prompt = Prompt(task="t", id="p", tokens=(5,), answer=None, difficulty=0.0)
    request = Request(prompt=prompt, group=0, index=0, seed=0, cut=cut)
    if stop_at is None:
        return decode_all(generator, [request])[0].rollout
    generator.submit([request])
    for _ in range(stop_at):
        if found := generator.step()[0]:
            return found[0].rollout
    other = new()
    other.load_state_dict(generator.state_dict())
    return decode_all(other, [])[0].rollout


def written_in_any_cut(inner, text, rng):
    place = int(rng.integers(len(text) + 1))
    return [one for part in (text[:place], text[place:]) for one in inner.encode(part, add_special_tokens=False)]


def test_the_answer_limit_counts_from_the_end_of_thinking_in_the_text(vocabulary):
    inner, tokenizer = vocabulary
    rng = np.random.default_rng(0)
    for before in ("so", "2 < 3 <", "é</thi", "x</", "think"):
        for after in ("\n\n4 is the long answer to all of it", ">\n\n", "4"):
            tokens = written_in_any_cut(inner, f"{before}</think>{after}", rng)
            end = next(n for n in range(len(tokens) + 1) if "</think>" in tokenizer.reader.text(tokens[:n]))
            if end > THINKING:
                continue
            rollout = rollout_of(tokenizer, tokens)
            own = min(ANSWER, len(tokens) - end + 1)  # with the end of sequence
            assert len(rollout.tokens) == end + own
            assert rollout.truncated == (rollout.tokens[-1] != EOS)
            answer = tokenizer.reader.answer(rollout.tokens.tolist())
            assert answer is not None
            assert len(answer.tokens) == own
            for stop_at in (1, end - 1, end, end + 1):
                again = rollout_of(tokenizer, tokens, stop_at=stop_at)
                np.testing.assert_array_equal(again.tokens, rollout.tokens)


def test_an_interruption_leaves_thinking_that_has_ended_alone_and_ends_all_other(vocabulary):
    inner, tokenizer = vocabulary
    rng = np.random.default_rng(1)
    forced = 0
    for text in ("a</think>\n\n4", "<</think", "</think >4", "🙂 so it is 4, I think> and think", "x</think>"):
        for cut in range(1, 12):
            tokens = written_in_any_cut(inner, text, rng)
            ended = "</think>" in tokenizer.reader.text(tokens[:cut]) or EOS in [*tokens, EOS][:cut]
            rollout = rollout_of(tokenizer, tokens, cut=cut)
            assert rollout.forced.any() == (not ended)
            if not ended:
                forced += 1
                place = int(np.flatnonzero(rollout.forced)[0])
                assert place == cut
                phrase = rollout.tokens[rollout.forced].tolist()
                assert tokenizer.reader.text(phrase) == default_phrase(tokenizer)
                answer = tokenizer.reader.answer(rollout.tokens.tolist())
                assert answer is not None
                assert len(answer.tokens) == len(rollout.tokens) - cut - len(phrase)
    assert forced > 10


def test_without_thinking_the_answer_limit_is_the_only_one_and_nothing_is_forced(vocabulary):
    inner, tokenizer = vocabulary
    tokens = inner.encode("a</think>b and much more of it", add_special_tokens=False)
    rollout = rollout_of(tokenizer, tokens, thinks=False)
    assert rollout.tokens.tolist() == tokens[:ANSWER]
    assert rollout.truncated
    assert not rollout.forced.any()
    short = rollout_of(tokenizer, tokens[:2], thinks=False)
    assert short.tokens.tolist() == [*tokens[:2], EOS]
    assert not short.truncated


def test_a_phrase_that_does_not_end_thinking_is_refused():
    tokenizer = SymbolTokenizer()
    for text in ("9", "9</think>9"):
        with pytest.raises(ValueError, match="must end with '</think>'"):
            TorchGenerator(
                cast(Policy, Script(tokenizer.size)), Generation(thinking=5, answer=5), tokenizer, slots=1,
                max_prompt=1, phrase=tokenizer.encode(text),
            )  # fmt: skip
