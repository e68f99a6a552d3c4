"""Every generator with every learner: what the one decodes the other scores alike, before an update and after it.

One start of each engine serves all pairs: generators leave their rollouts, every learner takes a step on those of each,
and the weights that it has then are given back to the generators.
"""

import json
import pickle
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
import torch
from trainer.generator_cases import (
    LIMITS,
    MAX_PROMPT,
    PHRASE,
    POLICIES,
    RECIPE,
    SLOTS,
    engine_of,
    requests_of,
    run,
    with_engine,
)
from trainer.rank_processes import run_ranks

from scalerl.generator.generator import Generator
from scalerl.generator.torch_generator import TorchGenerator
from scalerl.model.build import new_policy
from scalerl.rollout import Group
from scalerl.tokens.symbols import SymbolTokenizer

pytestmark = [pytest.mark.engines, pytest.mark.timeout(900)]

PROGRAM = Path(__file__).with_name("together_program.py")
GENERATORS = ["torch", "vllm", "vllm async"]
SHARDED = ["zero2", "zero3", "fsdp"]
LEARNERS = [("torch", 1), *((kind, ranks) for ranks in (1, 2) for kind in SHARDED)]
AT_LAG_0, SAME_PROMPT = 1e-5, 1e-4
REQUESTS = requests_of(12, cut=True)


def torch_generator():
    policy = new_policy(RECIPE)
    return TorchGenerator(policy, LIMITS, SymbolTokenizer(), slots=SLOTS, max_prompt=MAX_PROMPT, phrase=PHRASE)


@pytest.fixture(scope="module")
def generators(tmp_path_factory):
    """One of each, with the first of the policies."""
    torch.set_num_threads(1)
    with ExitStack() as stack:
        made: dict[str, Generator] = {"torch": torch_generator()}
        for name, driver in (("vllm", "steps"), ("vllm async", "async")):
            made[name] = with_engine(stack.enter_context(engine_of(driver, tmp_path_factory.mktemp("model"))))
        for generator in made.values():
            generator.set_weights(POLICIES[0].exported_weights(), version=0)
        yield made


@pytest.fixture(scope="module")
def found(generators, tmp_path_factory):
    """By learner and ranks: the mismatch of its first step on the rollouts of each generator, its weights after it."""
    pytest.importorskip("deepspeed", reason="DeepSpeed is not installed; `make engines` installs it")
    folder = tmp_path_factory.mktemp("together")
    groups = {name: grouped(run(generator, REQUESTS)) for name, generator in generators.items()}
    (folder / "groups.pickle").write_bytes(pickle.dumps(groups))
    run_ranks(PROGRAM, 1, str(folder), ",".join(["torch", *SHARDED]))
    run_ranks(PROGRAM, 2, str(folder), ",".join(SHARDED))
    mismatches = {ranks: json.loads((folder / f"found{ranks}.json").read_text()) for ranks in (1, 2)}
    weights = {(kind, ranks): torch.load(folder / f"{kind} {ranks}.pt") for kind, ranks in LEARNERS}
    return mismatches, weights


def grouped(finished):
    by_group = {}
    for one in sorted(finished, key=lambda one: (one.request.group, one.request.index)):
        by_group.setdefault(one.request.group, []).append(one.rollout)
    return [
        Group(
            prompt=rollouts[0].prompt,
            rollouts=tuple(rollouts),
            rewards=(1.0, -1.0, -1.0),
            outcomes=("right", "wrong", "wrong"),
        )
        for rollouts in by_group.values()
    ]


@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize(("learner", "ranks"), LEARNERS)
def test_a_learner_scores_what_was_decoded_with_its_own_weights_alike(found, generator, learner, ranks):
    mismatch = found[0][ranks][f"{learner} {generator}"]
    print("mismatch", mismatch)
    assert 0 < mismatch <= AT_LAG_0


@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize(("learner", "ranks"), LEARNERS)
def test_prompts_that_were_answered_before_are_read_by_the_weights_of_the_update(
    generators, found, generator, learner, ranks
):
    weights, one = found[1][learner, ranks], generators[generator]
    scorer, before = torch_generator(), torch_generator()
    scorer.set_weights(weights, 1)
    before.set_weights(POLICIES[0].exported_weights(), 0)
    one.set_weights(weights, one.version + 1)
    gaps, moved = [], []
    for each in run(one, REQUESTS):
        own, rollout = ~each.rollout.forced, each.rollout
        tokens, first = (*rollout.prompt.tokens, *rollout.tokens.tolist()), len(rollout.prompt.tokens) - 1
        gaps.append(np.abs(scorer.score(tokens)[first:] - rollout.logprobs)[own])
        moved.append(np.abs(before.score(tokens)[first:] - rollout.logprobs)[own])
    largest = float(np.concatenate(gaps).max())
    print("same prompt after an update", largest)
    assert largest <= SAME_PROMPT
    assert np.concatenate(moved).max() > 0.1, "the update must be one that would be seen"
