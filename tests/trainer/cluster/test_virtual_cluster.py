"""Episodes on the virtual clock: moments and accounts of a schedule worked out by hand, whose steps take a second."""

import random
from dataclasses import replace
from typing import cast

import numpy as np
import pytest
from trainer.engines import ListGenerator
from trainer.tiny import random_policy, tiny_recipe

from scalerl.cluster.cluster import Assembly
from scalerl.cluster.virtual_cluster import VirtualCluster
from scalerl.generator.episode_generator import EpisodeGenerator
from scalerl.generator.generator import Generator
from scalerl.generator.request import Finished, Request, StepWork
from scalerl.learner.torch_learner import TorchLearner
from scalerl.prompts.mixed_pool import make_pool
from scalerl.recipe.episodes import Episodes
from scalerl.rollout import Rollout
from scalerl.tasks import all_tasks
from scalerl.tokens import make_tokenizer

ANSWERS = {"A": ("N2", "x"), "B": ("N", "xx"), "C": ("N2", "x")}
"""What each episode answers in its two turns: a wrong number, and then what is no number. A letter takes one step."""


class SpellingGenerator(Generator):
    """Spells the answers of three episodes, one letter of each of its two rows in a step."""

    version = 0

    def __init__(self, tokenizer, answers):
        super().__init__(slots=2)
        self.tokenizer, self.answers, self.rows = tokenizer, answers, []

    @property
    def active(self):
        return len(self.rows)

    def step(self):
        while self.waiting and len(self.rows) < self.slots:
            request = self.waiting.popleft()
            turn = request.prompt.id.rpartition(".")[2] if request.first else "0"
            self.rows.append([request, self.tokenizer.encode(self.answers[request.group][int(turn)]), 0])
        for row in self.rows:
            row[2] += 1
        done = [row for row in self.rows if row[2] == len(row[1])]
        work = StepWork(sequences=len(self.rows), context_tokens=len(self.rows)) if self.rows else StepWork()
        self.rows = [row for row in self.rows if row[2] < len(row[1])]
        return [self.finished(request, np.array(tokens)) for request, tokens, _ in done], work

    def finished(self, request, tokens):
        ones = {
            "logprobs": np.zeros(len(tokens), np.float32),
            "versions": np.zeros(len(tokens), np.int32),
            "forced": np.zeros(len(tokens), np.bool_),
        }
        rollout = Rollout(prompt=request.prompt, tokens=tokens, truncated=False, **ones)
        return Finished(request=request, rollout=rollout)

    def set_weights(self, weights, version):
        raise NotImplementedError

    def score(self, tokens):
        raise NotImplementedError

    def state_dict(self):
        raise NotImplementedError

    def load_state_dict(self, state):
        raise NotImplementedError


def secret_of(seed):
    random.seed(seed)
    return random.randint(1, 9)


@pytest.fixture
def cluster(request):
    latency_s = request.param
    task = {
        "type": "episodes", "environment": "guess", "settings": {"numbers": 9}, "turns": 3, "latency_s": latency_s,
        "context_tokens": 60, "train": 3, "validation": 2,
    }  # fmt: skip
    recipe = tiny_recipe(
        model={"hidden": 16, "layers": 1, "heads": 2, "mlp": 16, "tokenizer": "characters"},
        tasks=[task],
        generation={"thinking": "none", "answer": 4},
        length_control={"type": "none"},
        cluster={"generators": 1, "trainers": 1, "slots": 2},
    )
    tokenizer = make_tokenizer(recipe.model, thinks=False)
    trained = all_tasks(recipe.tasks, (), tokenizer).trained
    wrong = {prompt.id: str(secret_of(int(prompt.id)) % 9 + 1) for prompt in trained.train}
    answers = [
        [text.replace("N2", "0" + wrong[prompt.id]).replace("N", wrong[prompt.id]) for text in ANSWERS[name]]
        for name, prompt in zip("ABC", trained.train, strict=True)
    ]
    inner = SpellingGenerator(tokenizer, answers)
    policy = random_policy(recipe)
    made = VirtualCluster(
        recipe=recipe,
        generator=EpisodeGenerator(
            inner, {"guess": cast(Episodes, recipe.tasks[0])}, tokenizer, max_tokens=4, temperature=1.0, clock="virtual"
        ),
        off_clock=ListGenerator([(1,)]),
        learner=TorchLearner(policy, recipe),
        pool=make_pool(recipe, trained, (0, 3)),
        task=trained,
        rng=np.random.default_rng(0),
    )
    rest = {name: 0.0 for name, value in vars(made.cost).items() if name.endswith("_s")}
    made.cost = replace(made.cost, **{**rest, "decode_base_s": 1.0, "flops_per_s": 1.0})
    for group, prompt in enumerate(trained.train):
        made.assembling[group] = Assembly(prompt=prompt, start_version=0, rollouts=[None, None])
        made.submit([Request(prompt=prompt, group=group, index=0, seed=group)])
    yield made
    made.close()


def ends(cluster):
    """When each episode ended."""
    found = {}
    while cluster.is_generating:
        cluster.advance()
        for group, assembly in cluster.assembling.items():
            if assembly.rollouts[0] is not None:
                found.setdefault("ABC"[group], cluster.clock.now)
    return found


@pytest.mark.parametrize("cluster", [3.0], indirect=True)
def test_while_an_environment_takes_its_time_its_slot_decodes_another_episode(cluster):
    # seconds  0    1    2    3    4    5    6    7    8    9    10
    # slots      AB   AC   C    -    B    AB   C    -    -    -        first turns, then second turns
    # answers    B: 1 to 4   A: 2 to 5   C: 3 to 6   A, B: 6 to 9   C: 7 to 10
    assert ends(cluster) == {"A": 9.0, "B": 9.0, "C": 10.0}
    assert cluster.clock.now == 10.0
    assert cluster.accounts["generator"].seconds == {"decode": 6.0, "wait_environment": 4.0}
    assert cluster.clock.generator_busy == 6.0
    assert cluster.clock.tokens == 9


@pytest.mark.parametrize("cluster", [0.0], indirect=True)
def test_without_latency_an_episode_goes_on_in_the_next_step(cluster):
    # seconds  0    1    2    3    4    5    6
    # slots      AB   AB   AB   C    C    C
    assert ends(cluster) == {"A": 3.0, "B": 3.0, "C": 6.0}
    assert cluster.accounts["generator"].seconds == {"decode": 6.0}


@pytest.mark.parametrize("cluster", [0.25], indirect=True)
def test_a_reply_that_arrives_during_a_step_is_heard_at_its_end(cluster):
    # seconds  0    1    2    3    4    5    5.25
    # slots      AB   AC   BC   AB   C    -
    # answers    B: 1 to 1.25   A: 2 to 2.25   C: 3 to 3.25   A, B: 4 to 4.25   C: 5 to 5.25
    assert ends(cluster) == {"A": 5.0, "B": 5.0, "C": 5.25}
    assert cluster.accounts["generator"].seconds == {"decode": 5.0, "wait_environment": 0.25}
