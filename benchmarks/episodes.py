"""Processor time of the bookkeeping of turns: episodes beside the same turns as requests of one turn each.

    python benchmarks/episodes.py [--turns 4] [--repeats 7]

A game of some turns is played with the model of recipes/scales/games.yaml. What it asked of the generator is recorded,
step by step, and asked again without episodes: the same prompts, tokens and rows, so that the difference is the
bookkeeping in this process. The environments' own process is measured apart, and so is an optimiser step on the same
number of tokens, since a run trains on what it plays.
"""

import argparse
import gc
import resource
import statistics
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import torch
from record import write_record

from ablations.study.resolve import load_resolved
from scalerl.generator.episode_generator import EpisodeGenerator
from scalerl.generator.generator import Generator
from scalerl.generator.make import make_generator
from scalerl.generator.request import Request
from scalerl.learner.torch_learner import TorchLearner
from scalerl.model.build import new_policy
from scalerl.model.policy import Policy
from scalerl.prompts.judge import Judge
from scalerl.recipe import ResolvedRecipe
from scalerl.recipe.episodes import Episodes, OwnEnvironment
from scalerl.rollout import Rollout
from scalerl.tasks import make_task
from scalerl.tokens import make_tokenizer

GAME = """
from scalerl.environments import Reply

class Rounds:
    def __init__(self, rounds):
        self.rounds = rounds

    def start(self, seed, row):
        return "1-16"

    def act(self, text):
        self.rounds -= 1
        return Reply("+", reward=len(text) / 9, end="won" if self.rounds == 0 else None)
"""
SLOTS, GENERATIONS = 128, 8
Asked = list[tuple[list[Request], list[tuple[int, int]]]]
"""What waits before each decode step, and the episodes that may go on."""


def recipe_of(folder: Path, turns: int, tokens: int) -> ResolvedRecipe:
    """The scale `games` with a game of this many turns of up to `tokens` tokens."""
    (folder / "rounds.py").write_text(GAME)
    recipe = load_resolved("scalerl", "games", ["length_control.type=none"])
    task = Episodes(
        environment=OwnEnvironment(function="rounds:Rounds", folder=str(folder)),
        settings={"rounds": turns},
        turns=turns,
        context_tokens=16 + turns * (tokens + 4),
        train=64,
        validation=2,
    )
    generation = recipe.generation.model_copy(update={"answer": tokens})
    return recipe.model_copy(update={"tasks": (task,), "generation": generation})


class Bench:
    """One game, as episodes and as the same requests without them."""

    def __init__(self, recipe: ResolvedRecipe) -> None:
        self.recipe, self.episodes = recipe, recipe.tasks[0]
        self.tokenizer = make_tokenizer(recipe.model, thinks=False)
        self.task = make_task(recipe.tasks[0], self.tokenizer)
        self.policy = new_policy(recipe)
        self.policy.init_weights(torch.Generator().manual_seed(0))
        prompts = self.task.train
        self.requests = [
            Request(prompt=prompt, group=number, index=i, seed=number * GENERATIONS + i)
            for number, prompt in enumerate(prompts)
            for i in range(GENERATIONS)
        ]

    def generator(self) -> Generator:
        """The built-in generator."""
        assert isinstance(self.episodes, Episodes)
        policy: Policy = self.policy
        return make_generator(self.recipe, policy, slots=SLOTS, max_prompt=self.episodes.context_tokens)

    def played(self, asked: Asked | None = None) -> tuple[float, float, list[Rollout]]:
        """Processor seconds here and in the environments' process, and the episodes; `asked` takes what was asked."""
        assert isinstance(self.episodes, Episodes)
        limit = self.recipe.generation.max_tokens
        tasks = {self.episodes.title: self.episodes}
        generator = EpisodeGenerator(
            self.generator(), tasks, self.tokenizer, max_tokens=limit, temperature=1.0, clock="off"
        )
        generator.submit(self.requests[:1])
        while generator.busy:  # starts the environments' process
            generator.step()
        generator.submit(self.requests)
        rollouts: list[Rollout] = []
        children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        began = time.process_time()
        while generator.busy:
            if asked is not None:
                asked.append((list(generator.inner.waiting), list(generator.inner.unended)))
            rollouts += [one.rollout for one in generator.step()[0]]
        seconds = time.process_time() - began
        generator.close()
        return seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - children, rollouts

    def asked_again(self, asked: Asked) -> float:
        """Processor seconds of the same decode steps without episodes."""
        generator = self.generator()
        seconds = 0.0
        for waiting, unended in asked:
            generator.waiting = deque(waiting)
            for place in set(generator.unended) - set(unended):
                generator.forget(place)
            generator.unended = dict.fromkeys(unended)
            began = time.process_time()
            generator.step()
            seconds += time.process_time() - began
        return seconds

    def trained(self, rollouts: list[Rollout]) -> float:
        """Processor seconds of optimiser steps on these episodes."""
        learner, judge = TorchLearner(new_policy(self.recipe), self.recipe), Judge(self.task, self.recipe)
        by_prompt: dict[str, list[Rollout]] = {}
        for one in rollouts:
            by_prompt.setdefault(one.prompt.id, []).append(one)
        groups = [judge.group(several[0].prompt, tuple(several)) for several in by_prompt.values()]
        size = self.recipe.batch.prompts
        began = time.process_time()
        for start in range(0, len(groups), size):
            learner.step([group for group in groups[start : start + size] if group], 0.0)
        return time.process_time() - began


def measured(turns: int, tokens: int, repeats: int, folder: Path) -> dict[str, Any]:
    """Medians over `repeats` rounds in which everything runs in turn."""
    bench = Bench(recipe_of(folder, turns, tokens))
    asked: Asked = []
    _, _, rollouts = bench.played(asked)
    gc.freeze()  # as a run does before its first step
    rounds = [(*bench.played()[:2], bench.asked_again(asked), bench.trained(rollouts)) for _ in range(repeats)]
    whole, environments, alone, trained = (statistics.median(column) for column in zip(*rounds, strict=True))
    over = statistics.median(one - other for one, _, other, _ in rounds)
    num_turns = turns * len(bench.requests)
    return {
        "turns": turns,
        "tokens_per_turn": float(np.mean([one.num_written for one in rollouts])) / turns,
        "decode_s": alone,
        "train_s": trained,
        "with_turns_s": whole,
        "environments_s": environments,
        "bookkeeping_us_per_turn": 1e6 * over / num_turns,
        "share_of_decoding": over / alone,
        "share_of_run": over / (alone + trained),
    }


def main() -> None:
    """Print a row for each number of turns, and write `results/episodes.json`."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--turns", type=int, nargs="+", default=[1, 4, 8])
    arguments.add_argument("--tokens", type=int, nargs="+", default=[4, 16])
    arguments.add_argument("--repeats", type=int, default=5)
    options = arguments.parse_args()
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for tokens in options.tokens:
            for turns in options.turns:
                rows.append(measured(turns, tokens, options.repeats, Path(folder)))
                print({name: round(value, 4) for name, value in rows[-1].items()}, flush=True)
    write_record("episodes", {"rows": rows})


if __name__ == "__main__":
    main()
