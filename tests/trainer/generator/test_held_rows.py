"""Turns of an episode in the row of the turns before them: what is computed, what is charged, and what is not."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from trainer.generator_cases import PHRASE, POLICIES, gap, requests_of, swaps
from trainer.tiny import tiny_recipe
from trainer.tiny_transformers import CONFIGS

from scalerl.generator.request import StepWork
from scalerl.generator.torch_generator import TorchGenerator
from scalerl.model.build import precision_of
from scalerl.model.transformers_load import empty
from scalerl.recipe import Generation
from scalerl.rollout import Rollout
from scalerl.tokens.symbols import SymbolTokenizer

TURNS = 4
LIMITS = Generation(thinking=12, answer=5)


def generator_of(policy=None, **options):
    options = {"slots": 12, "max_prompt": 100, "phrase": PHRASE, **options}
    return TorchGenerator(policy or copy.deepcopy(POLICIES[0]), LIMITS, SymbolTokenizer(), **options)


class Episodes:
    """Four turns of each request, between which an environment says up to seven tokens after some decode steps."""

    def __init__(self, generator, requests, *, delay=lambda request: 0, holds=True):
        self.generator, self.delay, self.holds = generator, delay, holds
        self.parts = {request.place: [] for request in requests}
        self.said, self.late, self.work, self.step = {}, [], StepWork(), 0
        self.generator.submit(requests)
        if holds:
            self.generator.unended = dict.fromkeys(self.parts)

    def played(self, between=lambda step: None):
        while self.generator.busy or self.late:
            between(self.step)
            finished, work = self.generator.step()
            self.work += work
            for one in finished:
                self.hear(one, self.step)
            due = [request for when, request in self.late if when <= self.step]
            self.late = [one for one in self.late if one[0] > self.step]
            self.generator.waiting.extendleft(due)
            self.step += 1
        return [self.whole(place) for place in self.parts]

    def hear(self, one, step):
        place, rollout = one.request.place, one.rollout
        parts = self.parts[place]
        parts.append(rollout)
        if len(parts) == TURNS:
            if self.holds:
                self.generator.forget(place)
            return
        rng = np.random.default_rng((*place, len(parts)))
        said = self.said[(*place, len(parts))] = tuple(rng.integers(4, 40, size=rng.integers(0, 8)).tolist())
        tokens = (*rollout.prompt.tokens, *rollout.tokens.tolist(), *said)
        prompt = replace(rollout.prompt, id=f"{rollout.prompt.id}#{place}.{len(parts)}", tokens=tokens)
        first = (one.request.first or one.request) if self.holds else None
        later = replace(one.request, prompt=prompt, seed=one.request.seed + 1, first=first)
        self.late.append((step + self.delay(one.request), later))

    def whole(self, place):
        """All turns as one rollout; what the environment says is read with the weights of the turn after it."""
        first, *later = self.parts[place]
        columns = {name: getattr(first, name) for name in ("tokens", "logprobs", "versions", "forced")}
        for number, turn in enumerate(later, start=1):
            said = np.array(self.said[(*place, number)], dtype=np.int64)
            none = {
                "tokens": said,
                "logprobs": np.zeros(len(said)),
                "versions": np.full(len(said), turn.versions[0]),
                "forced": np.full(len(said), True),
            }
            columns = {
                name: np.concatenate((column, none[name], getattr(turn, name))) for name, column in columns.items()
            }
        return Rollout(prompt=first.prompt, truncated=False, **columns)


@pytest.mark.parametrize("delay", [0, 3], ids=["at once", "late"])
def test_turns_have_the_log_probabilities_of_a_whole_prefill_and_charge_only_what_is_new(delay):
    requests = requests_of(4)
    held = Episodes(generator_of(), requests, delay=lambda request: delay * (request.group % 2))
    whole = Episodes(generator_of(), requests, holds=False)
    rollouts = held.played()
    assert len({len(rollout.tokens) for rollout in rollouts}) > 8
    assert max(gap(rollout) for rollout in rollouts) < 1e-5
    for ours, theirs in zip(rollouts, whole.played(), strict=True):
        assert ours.tokens.tolist() == theirs.tokens.tolist()
        np.testing.assert_allclose(ours.logprobs, theirs.logprobs, atol=1e-5)
    prompts = {request.prompt.id: len(request.prompt.tokens) for request in requests}
    assert held.work.prefill_tokens == sum(prompts.values()) + sum(map(len, held.said.values()))
    later = [len(turn.prompt.tokens) for parts in whole.parts.values() for turn in parts[1:]]
    assert whole.work.prefill_tokens == sum(prompts.values()) + sum(later)
    assert held.work.sequences == whole.work.sequences


@pytest.mark.parametrize("delay", [0, 3], ids=["at once", "late"])
@pytest.mark.parametrize("recompute", [False, True], ids=["keep", "recompute"])
def test_new_weights_between_turns_change_what_is_held_only_if_it_is_recomputed(recompute, delay):
    generator = generator_of(recompute=recompute)
    played = Episodes(generator, requests_of(4), delay=lambda request: delay * (request.group % 2))
    rollouts = played.played(swaps(generator))
    mixed = [one for one in rollouts if len(set(one.versions.tolist())) > 1]
    assert len(mixed) > 5
    assert max(gap(one, recompute=recompute) for one in mixed) < 1e-4
    assert max(gap(one, recompute=not recompute) for one in mixed) > 0.1


def test_a_row_that_is_held_is_given_up_when_no_other_is_left_and_its_turn_is_prefilled_whole():
    requests = requests_of(8)
    played = Episodes(generator_of(slots=5), requests, delay=lambda request: 2)
    rollouts = played.played()
    assert max(gap(rollout) for rollout in rollouts) < 1e-5
    fewest = sum(map(len, played.said.values()))
    most = sum(len(turn.prompt.tokens) for parts in played.parts.values() for turn in parts[1:])
    assert fewest + 100 < played.work.prefill_tokens < most - 100


@pytest.mark.parametrize("kind", ["qwen2", "mistral windowed"])
def test_a_model_of_transformers_continues_rows_as_the_built_in_one_does(kind):
    policy = empty(CONFIGS[kind], torch.device("cpu"), precision_of(tiny_recipe()))
    policy.init_weights(torch.Generator().manual_seed(0))
    requests = requests_of(2)
    limits = {"slots": 6, "max_prompt": 100}
    played = Episodes(generator_of(policy, **limits), requests, delay=lambda request: request.index)
    for rollout in played.played():
        row = torch.tensor([[*rollout.prompt.tokens, *rollout.tokens.tolist()]])
        scored = policy.score(row, 1.0).logprobs_BT[0, len(rollout.prompt.tokens) :].detach().numpy()
        np.testing.assert_allclose(rollout.logprobs[~rollout.forced], scored[~rollout.forced], atol=1e-5)
    assert played.work.prefill_tokens < 100


def test_a_state_taken_between_turns_holds_their_rows():
    requests, copies = requests_of(4), []
    played = Episodes(generator_of(), requests, delay=lambda request: 3)

    def between(step):
        if played.late and len(copies) == 0 and step > 40:
            copies.append(copy.deepcopy(played))
            state = played.generator.state_dict()
            copies[0].generator = generator_of()
            copies[0].generator.unended = dict(played.generator.unended)
            copies[0].generator.load_state_dict(state)

    expected = played.played(between)
    for ours, theirs in zip(copies[0].played(), expected, strict=True):
        assert ours.tokens.tolist() == theirs.tokens.tolist()
        assert ours.logprobs.tolist() == theirs.logprobs.tolist()
    assert copies[0].work == played.work
