"""Decode steps that are captured and replayed, with a graph that computes again from the memory it was captured on."""

import pickle

import pytest
import torch
from trainer.tiny import random_policy, tiny_recipe

from scalerl.model.decode_graphs import REACH, DecodeGraphs
from scalerl.model.kv_cache import Prefill

ROWS, POSITIONS = 6, 12


class Replayed:
    """A graph of the CPU: what a replay computes, it writes where the capture's output lies."""

    def __init__(self, compute):
        self.compute, self.output = compute, compute()

    def replay(self):
        self.output.copy_(self.compute())


class Captures:
    """How often something was captured."""

    def __init__(self):
        self.number = 0

    def __call__(self, compute):
        self.number += 1
        graph = Replayed(compute)
        return graph.replay, graph.output


@pytest.fixture
def cache():
    return random_policy(tiny_recipe()).new_cache(slots=ROWS, positions=POSITIONS)


def steps():
    """Rows that grow and go: tokens and positions of each step."""
    rng = torch.Generator().manual_seed(0)
    for number, position in ((5, 3), (5, 4), (3, 5), (3, 6), (2, 7), (1, 8)):
        yield torch.randint(4, 40, (number,), generator=rng), torch.full((number,), position)


@torch.inference_mode()
def decoded(cache):
    prefill = Prefill(
        tokens=torch.tensor([[9, 2], [7, 5]]), rows=torch.arange(5), prompts=torch.tensor([0, 1, 0, 1, 0])
    )
    found = [cache.logits(torch.tensor([1, 2, 3, 4, 5]), torch.full((5,), 2), prefill).clone()]
    return found + [cache.logits(tokens, position).clone() for tokens, position in steps()]


def test_captured_steps_give_what_plain_ones_give(cache):
    expected = decoded(cache)
    captures, again = Captures(), random_policy(tiny_recipe()).new_cache(slots=ROWS, positions=POSITIONS)
    again.capture_steps(captures)
    for found, plain in zip(decoded(again), expected, strict=True):
        torch.testing.assert_close(found, plain, rtol=0, atol=1e-5)
    assert captures.number == 4  # of 6, 4, 2 and 1 rows; all reach as far as a row can


def test_a_cache_whose_steps_are_captured_travels_to_another_process(cache):
    expected = decoded(cache)
    cache.release()
    cache.capture_steps()  # by CUDA, of which nothing is captured before the first step
    again = pickle.loads(pickle.dumps(cache))
    again.capture_steps(Captures())
    assert all(torch.allclose(one, other, atol=1e-5) for one, other in zip(decoded(again), expected, strict=True))


def test_there_is_a_graph_for_every_bucket():
    graphs = DecodeGraphs(lambda tokens, positions, reach: tokens, slots=48, positions=1000)
    assert [graphs.bucket(rows, 1)[0] for rows in (1, 2, 3, 17, 32, 33, 48)] == [1, 2, 4, 32, 32, 48, 48]
    assert [graphs.bucket(1, reach)[1] for reach in (1, REACH, REACH + 1, 999)] == [REACH, REACH, 2 * REACH, 1000]


def test_a_cache_that_has_moved_is_captured_again(cache):
    captures = Captures()
    cache.capture_steps(captures)
    first = decoded(cache)
    cache.release()
    assert all(torch.equal(one, other) for one, other in zip(decoded(cache), first, strict=True))
    assert captures.number == 8
