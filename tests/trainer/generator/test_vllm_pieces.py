"""What the generator makes of what vLLM says, without vLLM."""

import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from trainer.generator_cases import LIMITS, PHRASE, SLOTS, requests_of, with_engine

from scalerl.generator.interruption_phrase import tokens_with_phrase
from scalerl.generator.vllm_async import pieces_by_weights
from scalerl.generator.vllm_engine import Piece, PreemptionCount
from scalerl.generator.vllm_import import LOGGING


def delta(*tokens):
    """As vLLM says what is new: token t has the log-prob -t."""
    return SimpleNamespace(token_ids=list(tokens), logprobs=[{t: SimpleNamespace(logprob=-float(t))} for t in tokens])


def test_tokens_of_two_sets_of_weights_that_came_together_are_two_pieces():
    # Tokens 0 to 3 of the ask by weights 4, tokens 4 and 5 by weights 5; the first three came before.
    pieces = list(pieces_by_weights("a", delta(13, 14, 15), 3, [("4", 0), ("5", 4)], is_last=True))
    assert pieces == [
        Piece(name="a", tokens=[13], logprobs=[-13.0], version=4, is_last=False),
        Piece(name="a", tokens=[14, 15], logprobs=[-14.0, -15.0], version=5, is_last=True),
    ]
    (alone,) = pieces_by_weights("a", delta(13), 3, [("4", 0)], is_last=False)
    assert alone == Piece(name="a", tokens=[13], logprobs=[-13.0], version=4, is_last=False)


class RecordingEngine:
    """Chooses token 5 for every ask at each step, and keeps what it was told."""

    def __init__(self):
        self.asked, self.dropped, self.version, self.preemptions = {}, [], 0, PreemptionCount()
        self.is_silent = False

    def ask(self, ask):
        self.asked[ask.name] = ask

    def drop(self, name):
        self.dropped.append(self.asked.pop(name).salt)

    def step(self):
        names = [] if self.is_silent else list(self.asked)
        return [Piece(name=name, tokens=[5], logprobs=[-1.0], version=self.version, is_last=False) for name in names]

    def set_weights(self, weights, version, *, recompute):
        self.version = version


@pytest.mark.parametrize("recompute", [False, True])
def test_what_older_weights_may_have_read_without_a_token_of_theirs_is_asked_for_again(recompute):
    engine = RecordingEngine()
    generator = with_engine(engine, recompute=recompute)
    generator.submit(requests_of(2))
    generator.step()
    engine.is_silent = True
    generator.submit(requests_of(1, first=7))
    generator.step()
    generator.set_weights({}, 1)
    # Groups 0 and 1 go on with their cache. Of group 7 no token has come; its salt keeps it from what was cached.
    salts = sorted(ask.salt for ask in engine.asked.values())
    assert engine.dropped == ([] if recompute else ["7.0"] * 3)
    assert salts == ["0.0"] * 3 + ["1.0"] * 3 + (["7.0"] if recompute else ["7.1"]) * 3
    assert generator.active == 9
    assert len({ask.seed for ask in engine.asked.values()}) == 9
    engine.is_silent = False
    finished = [one for _ in range(tokens_with_phrase(LIMITS, PHRASE)) for one in generator.step()[0]]
    versions = {one.request.group: np.unique(one.rollout.versions).tolist() for one in finished}
    assert versions == {0: [0, 1], 1: [0, 1], 7: [1]}
    assert generator.has_room
    assert SLOTS > 9


@pytest.mark.parametrize("happens", ["nothing", "new weights", "recompute", "taken back", "rewritten"])
def test_a_later_turn_keeps_its_salt_and_is_charged_for_what_is_new(happens):
    engine = RecordingEngine()
    generator = with_engine(engine, recompute=happens == "recompute")
    first, other = requests_of(1)[:2]
    generator.unended = {first.place: None, other.place: None}
    generator.submit([first, other])
    size = len(first.prompt.tokens)
    assert generator.step()[1].prefill_tokens == size  # the prompt of both
    finished = [one for _ in range(tokens_with_phrase(LIMITS, PHRASE)) for one in generator.step()[0]]
    earlier = {one.request.place: one.rollout.tokens.tolist() for one in finished}
    assert earlier.keys() == generator.unended.keys()
    if happens in ("new weights", "recompute"):
        generator.set_weights({}, 1)
    said = (7, 8, 9)
    prompts = {place: (*first.prompt.tokens, *written, *said) for place, written in earlier.items()}
    if happens == "rewritten":
        prompts[first.place] = (4, *prompts[first.place][1:])
    later = [
        replace(one, prompt=replace(one.prompt, id=f"#{one.index}", tokens=prompts[one.place]), first=one)
        for one in (first, other)
    ]
    engine.asked.clear()
    engine.is_silent = happens == "taken back"
    generator.submit(later)
    read = generator.step()[1].prefill_tokens
    if happens == "taken back":
        assert read == 2 * len(said)
        generator.set_weights({}, 1)  # nothing says how much of what is new the old weights have read
        engine.is_silent = False
        read = generator.step()[1].prefill_tokens
    whole, salts = len(prompts[other.place]), {one.tokens: one.salt for one in engine.asked.values()}
    group = first.group
    expected = {
        "nothing": (2 * len(said), f"{group}.0"),
        "new weights": (2 * len(said), f"{group}.0"),
        "recompute": (2 * whole, f"{group}.1"),
        "taken back": (2 * whole, f"{group}.1"),
        "rewritten": (len(said) + len(prompts[first.place]), f"{group}.0"),
    }[happens]
    assert (read, salts[prompts[first.place]]) == expected


SAYS = """
import json, logging, sys
from logging.config import dictConfig
from pathlib import Path

dictConfig(json.loads(Path(sys.argv[1]).read_text()))
inside = logging.getLogger("vllm.engine")
inside.warning("%s is not found in LD_PRELOAD. For best performance", "libtcmalloc")
inside.warning("Enforce eager set, disabling torch.compile")
inside.info("Available KV cache memory: 1 GiB")
inside.warning("cache is %d %% full", 99)
inside.error("Worker proc %s died unexpectedly", "VllmWorker-1")
"""


def test_the_log_of_vllm_is_its_warnings_without_those_of_every_start():
    # In a process of its own: other libraries change the loggers of the one that runs the tests.
    said = subprocess.run([sys.executable, "-c", SAYS, LOGGING], capture_output=True, text=True, check=True)
    assert said.stderr == ""
    assert [line.partition(") ")[2] for line in said.stdout.splitlines()] == [
        "WARNING: cache is 99 % full",
        "ERROR: Worker proc VllmWorker-1 died unexpectedly",
    ]
